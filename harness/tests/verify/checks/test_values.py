"""Updates under load of which a share of the answers is judged: none kept, none written late."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from harness.tests.verify.subjects import exchange
from harness.verify.checks.evidence import Case, Evidence, Exchange, Look
from harness.verify.checks.registry import CHECKS
from harness.verify.checks.values import pairs

ROWS = 20  # each request writes
SHARE = 300  # answers that are judged


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """A second of a server that writes rows, and looks at its table."""

    requests: int = 2500  # in a second in which it does not stand still
    late: float = -0.01  # seconds from an answer until its rows are written; negative, for an honest server
    latency: float = 0.012
    runs: Callable[[float], bool] = lambda _: True  # or stands still
    adds: int | None = None  # to the numbers that the table holds before, instead of drawing new ones

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
        looks = [Look({"world": dict(enumerate(first.tolist())), "World": {}})]
        for at in np.cumsum(dice.uniform(0.1, 0.4, 12)):
            if at > 1.0:
                break
            for place in np.flatnonzero((until < written) & (written <= at)):
                table[ids[place]] = numbers[place]
            until = at
            looks.append(Look({"world": dict(enumerate(table.tolist())), "World": {}}, at, at + 0.0002))
        judged = dice.choice(len(answered), SHARE, replace=False)
        return Evidence(
            test_type="update",
            under_load=True,
            whole=False,
            looks=looks,
            crowd=[self._answer(answered[one], ids[one].tolist(), numbers[one].tolist()) for one in judged],
            rows_each=ROWS * len(answered) / SHARE,
        )

    def _answer(self, at: float, ids: list[int], numbers: list[int]) -> Exchange:
        rows = ",".join(f'{{"id":{i},"randomNumber":{n}}}' for i, n in zip(ids, numbers, strict=True))
        case = Case(name="20 rows", count=ROWS)
        return exchange(f"[{rows}]", case, sent_at=at - self.latency, received_at=at)


def objections(simulated: Simulated, trials: int = 4) -> set[str]:
    """In any of some trials of a process."""
    found: set[str] = set()
    seen: Counter[tuple[float, bool]] = Counter()
    for seed in range(trials):
        evidence = simulated.load(seed)
        evidence.pairs = seen = seen + pairs(evidence)
        checks = (CHECKS[name] for name in ("update-stored", "numbers-change"))
        found |= {check.name for check in checks if list(check.find(evidence))}
    return found


@pytest.mark.parametrize("requests", [500, 2500, 5000])
def test_who_writes_before_it_answers_passes(requests: int) -> None:
    assert objections(Simulated(requests=requests)) == set()


@pytest.mark.parametrize("runs", [lambda at: 0.4 < at < 0.7, lambda at: at % 0.25 < 0.05, lambda at: at % 0.3 > 0.2])
def test_so_does_one_that_stands_still_for_most_of_the_time(runs: Callable[[float], bool]) -> None:
    assert objections(Simulated(requests=10_000, runs=runs), trials=8) == set()


@pytest.mark.parametrize(
    ("requests", "late"), [(1000, 0.003), (2500, 0.005), (2500, 0.01), (5000, 0.01), (2500, 0.05), (2500, 9.0)]
)
def test_who_writes_a_moment_later_is_seen(requests: int, late: float) -> None:
    assert objections(Simulated(requests=requests, late=late)) == {"update-stored"}


@pytest.mark.parametrize("adds", [0, 1, 9_999])
def test_numbers_that_follow_from_those_of_before_are_seen_although_the_table_holds_them(adds: int) -> None:
    assert objections(Simulated(adds=adds), trials=1) == {"numbers-change"}
