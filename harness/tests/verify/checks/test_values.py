"""Checks of sampled responses reject servers that lose or delay updates under load, and accept honest servers."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from harness.tests.approve import approve
from harness.tests.verify.subjects import exchange
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant, TableSnapshot
from harness.verify.checks.registry import CHECKS
from harness.verify.checks.values import count_age_pairs

ROWS = 20  # rows per request
SHARE = 300  # number of responses that are checked


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """A simulated server that updates rows for a second while tfb takes snapshots of the table."""

    requests: int = 2500  # in one second, without pauses
    late: float = -0.01  # seconds from the response to the write; negative for honest servers
    latency: float = 0.012
    runs: Callable[[float], bool] = lambda _: True  # whether the server runs at this time; otherwise it pauses
    adds: int | None = None  # add this to the old numbers instead of drawing new ones

    def load(self, seed: int) -> Evidence:
        dice = np.random.default_rng(seed)
        answered = np.array([at for at in np.sort(dice.uniform(0, 1, self.requests)) if self.runs(at)])
        ids = dice.integers(1, 10_001, (len(answered), ROWS))
        numbers = dice.integers(1, 10_001, (len(answered), ROWS))
        first = dice.integers(1, 10_001, 10_001)
        if self.adds is not None:
            numbers = (first[ids] + self.adds - 1) % 10_000 + 1
        written = answered + self.late
        table, until = first.copy(), -1.0
        looks = [TableSnapshot({"world": dict(enumerate(first.tolist())), "World": {}})]
        for at in np.cumsum(dice.uniform(0.1, 0.4, 12)):
            if at > 1.0:
                break
            for place in np.flatnonzero((until < written) & (written <= at)):
                table[ids[place]] = numbers[place]
            until = at
            looks.append(TableSnapshot({"world": dict(enumerate(table.tolist())), "World": {}}, at, at + 0.0002))
        judged = dice.choice(len(answered), SHARE, replace=False)
        return Evidence(
            test_type="update",
            under_load=True,
            complete=False,
            snapshots=looks,
            concurrent=[self._answer(answered[one], ids[one], numbers[one]) for one in judged],
            rows_per_response=ROWS * len(answered) / SHARE,
        )

    def _answer(self, at: float, ids: Iterable[int], numbers: Iterable[int]) -> Exchange:
        return answer(at - self.latency, at, zip(ids, numbers, strict=True))


def answer(sent_at: float, received_at: float, rows: Iterable[tuple[int, int]], **fields: Any) -> Exchange:
    text = ",".join(f'{{"id":{i},"randomNumber":{n}}}' for i, n in rows)
    case = QueryVariant(name=f"{ROWS} rows", count=ROWS)
    return exchange(f"[{text}]", case, sent_at=sent_at, received_at=received_at, **fields)


def objections(simulated: Simulated, trials: int = 4) -> set[str]:
    """Return the checks that a process fails during its trials."""
    failed: set[str] = set()
    seen: Counter[tuple[float, bool]] = Counter()
    for seed in range(trials):
        evidence = simulated.load(seed)
        evidence.age_pairs = seen = seen + count_age_pairs(evidence)
        checks = (CHECKS[name] for name in ("update-stored", "numbers-change"))
        failed |= {check.name for check in checks if list(check.find(evidence))}
    return failed


@pytest.mark.parametrize("requests", [500, 2500, 5000])
def test_writes_before_responses_pass(requests: int) -> None:
    assert objections(Simulated(requests=requests)) == set()


@pytest.mark.simulation
@pytest.mark.parametrize("runs", [lambda at: 0.4 < at < 0.7, lambda at: at % 0.25 < 0.05, lambda at: at % 0.3 > 0.2])
def test_servers_with_long_pauses_pass(runs: Callable[[float], bool]) -> None:
    assert objections(Simulated(requests=10_000, runs=runs), trials=8) == set()


@pytest.mark.parametrize(
    ("requests", "late"), [(1000, 0.003), (2500, 0.005), (2500, 0.01), (5000, 0.01), (2500, 0.05), (2500, 9.0)]
)
def test_slightly_late_writes_fail(requests: int, late: float) -> None:
    assert objections(Simulated(requests=requests, late=late)) == {"update-stored"}


@pytest.mark.parametrize("adds", [0, 1, 9_999])
def test_numbers_derived_from_old_numbers_fail(adds: int) -> None:
    assert objections(Simulated(adds=adds), trials=1) == {"numbers-change"}


At = tuple[float, float, int]  # (time of the request, time of the response, row id)


OLD: At = (9.6, 9.61, 9)  # the table contains the updates of rows 8 and 9


def counted(*answers: At) -> str:
    """Count pairs of a younger and an older row of which exactly one is lost."""
    looks = [TableSnapshot({"world": {8: 8, 9: 9}, "World": {}}, 10.0, 10.0001)]
    crowd = [answer(sent, received, [(row, row)]) for sent, received, row in answers]
    crowd.append(answer(9.9, 9.999, [(1, 1)], response=None))
    return f"{sorted(count_age_pairs(Evidence(test_type='update', snapshots=looks, concurrent=crowd)).items())}"


def said(evidence: Evidence) -> list[str]:
    return [f"{f.message} | {f.expected} | {f.actual}" for f in CHECKS["update-stored"].find(evidence)]


def lost(rows_each: float, *received: float) -> list[str]:
    """Return the findings if the table contains no row of the responses received at these times."""
    rows = [[(20 * place + n, 1) for n in range(1, 21)] for place in range(len(received))]
    crowd = [answer(at - 0.01, at, of_one) for at, of_one in zip(received, rows, strict=True)]
    crowd.append(answer(received[0] - 0.01, received[0], [(9999, 1)], status=500))
    looks = [TableSnapshot({"world": {}, "World": {}}, 10.0, 10.001)]
    return said(
        Evidence(test_type="update", complete=False, concurrent=crowd, snapshots=looks, rows_per_response=rows_each)
    )


def late(young: int, older: int) -> list[str]:
    counts = {(0.002, True): young, (0.002, False): older, (0.02, True): young + 1, (0.005, False): 90}
    return said(Evidence(test_type="update", complete=False, age_pairs=counts, snapshots=[TableSnapshot({})]))


def test_findings_for_sampled_rows_are_as_approved() -> None:
    findings = {
        "young one": counted(OLD, (9.9, 9.999, 1)),
        "older one": counted((9.6, 9.61, 1), (9.9, 9.999, 9)),
        **{f"one of {at}": counted(OLD, (9.9, at, 1)) for at in (9.996, 9.99, 9.9, 9.9996)},
        "at once": counted(OLD, (9.6, 9.999, 1)),
        "old": counted((9.4, 9.49, 9), (9.9, 9.999, 1)),
        "rather young": counted((9.98, 9.985, 9), (9.99, 9.999, 1)),
        "neither": counted(OLD, (9.9, 9.999, 8)),
        "both": counted((9.6, 9.61, 2), (9.9, 9.999, 1)),
        "two for two": counted(OLD, (9.62, 9.63, 9), (9.9, 9.9985, 1), (9.9, 9.999, 8)),
        "lost": lost(200, *[9.99 - n / 10_000 for n in range(20)]),
        "of ages": lost(100, *[9.99, 9.985, 9.95, 9.945, 9.7, 9.65] * 4),
        "too old and too young": lost(20, *[9.4, 9.5, 9.9996, 10.1] * 9),
        "before a pause": lost(40, *[9.75 + n / 1000 for n in range(20)]),
        "overwritten": lost(20_000, *[9.95] * 20),
        "late": late(29, 0),
        "not late": late(28, 0),
        "hardly late": late(60, 8),
    }
    approve("verify-rows", findings)
