"""The randomness checks have exact error rates: honest servers pass, and biased servers fail."""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from harness.tests.approve import approve
from harness.tests.verify.subjects import exchange
from harness.verify import verification
from harness.verify.checks import Finding
from harness.verify.checks.evidence import Evidence, QueryVariant
from harness.verify.checks.randomness import (
    FALSE_ALARM,
    MIN_VALUES_FOR_PASS,
    binomial_tails,
    occupancy_distribution,
    plausible_counts,
)
from harness.verify.checks.registry import CHECKS

TRIALS = 50
Draw = Callable[[random.Random, int], list[int]]

OF_CHANCE = [check for check in CHECKS.values() if check.rule.startswith("random")]


def crowd(name: str, answers: Sequence[Sequence[int]]) -> Evidence:
    """Return evidence of responses with these ids, sent on eight connections in turn."""
    case = QueryVariant(name="rows", count=None if name == "db" else len(answers[0]))
    exchanges = []
    for index, ids in enumerate(answers):
        rows = [f'{{"id":{i},"randomNumber":{i % 9999 + 1}}}' for i in ids]
        body = rows[0] if name == "db" else f"[{','.join(rows)}]"
        exchanges.append(exchange(body, case, connection=index % 8, sent_at=index))
    return Evidence(test_type=name, concurrent=exchanges)


def objections(evidence: Evidence) -> list[Finding]:
    return [finding for check in OF_CHANCE if check.applies_to(evidence) for finding in check.find(evidence)]


def independent(dice: random.Random, count: int) -> list[int]:
    return [dice.randint(1, 10_000) for _ in range(count)]


def different(dice: random.Random, count: int) -> list[int]:
    return sorted(dice.sample(range(1, 10_001), count))


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("name", "requests", "count", "draw"),
    [("db", 800, 1, independent), ("query", 100, 20, independent), ("update", 100, 20, different)],
)
def test_honest_servers_never_fail(name: str, requests: int, count: int, draw: Draw) -> None:
    """A check rejects an honest server with a probability of 10^-9, so a failure here indicates a defect."""
    dice = random.Random(20260509)
    for _ in range(TRIALS):
        assert objections(crowd(name, [draw(dice, count) for _ in range(requests)])) == []


def test_five_responses_fail_only_a_fixed_row() -> None:
    dice = random.Random(1)
    assert objections(crowd("db", [[7]] * 5)) != []
    assert objections(crowd("db", [[7]] * 2)) == [], "two equal draws are possible at 10^-9"
    assert objections(crowd("db", [independent(dice, 1) for _ in range(5)])) == []


def near(reach: int) -> Draw:
    return lambda dice, n: [
        (first + one) % 10_000 + 1 for first in (dice.randrange(10_000),) for one in dice.sample(range(reach), n)
    ]


OTHER: dict[str, tuple[str, int, Draw]] = {  # name -> (test type, number of requests, function that draws ids)
    "even": ("query", 100, lambda dice, n: [2 * dice.randint(1, 5_000) for _ in range(n)]),
    "smaller of two": ("query", 100, lambda dice, n: [min(independent(dice, 2)) for _ in range(n)]),
    "a quarter": ("update", 100, lambda dice, n: [(37 * dice.randint(1, 2_500)) % 10_000 + 1 for _ in range(n)]),
    "the same": ("query", 100, lambda dice, n: random.Random(5).sample(range(1, 10_001), n)),
    "near": ("query", 30, near(20)),
    "too few near": ("query", 29, near(20)),
    "on a page": ("query", 300, near(500)),
    "in a part": ("query", 300, near(4_000)),
}


def test_findings_for_other_draws_are_as_approved() -> None:
    dice = random.Random(7)
    crowds = {name: crowd(kind, [draw(dice, 20) for _ in range(many)]) for name, (kind, many, draw) in OTHER.items()}
    crowds |= {f"a walk of {n}": crowd("db", [[7 * one % 10_000 + 1] for one in range(n)]) for n in (598, 600)}
    drawn = independent(dice, 300)
    pairs = [[one] for first in drawn for one in (first, (first + 4) % 10_000 + 1)]
    crowds |= {f"pairs of {n}": crowd("db", pairs[:n]) for n in (598, 600)}
    findings = {
        name: [f"{one.message} | {one.expected} | {one.actual}" for one in objections(evidence)]
        for name, evidence in crowds.items()
    }
    approve("verify-randomness", {name: [f"{len(own)} objections", *own[:1]] for name, own in findings.items()})


def test_the_occupancy_distribution_is_exact() -> None:
    assert occupancy_distribution(1).tolist() == [0.0, 1.0]
    assert occupancy_distribution(2) == pytest.approx([0, 1e-4, 1 - 1e-4])
    distribution = occupancy_distribution(800)
    assert distribution.sum() == pytest.approx(1.0)
    # On average, n draws from N values yield N (1 - (1 - 1/N)^n) distinct values.
    assert float(np.dot(distribution, np.arange(801))) == pytest.approx(10_000 * (1 - (1 - 1e-4) ** 800))
    # The probability that all n draws are distinct is the product of (N - i) / N for i < n.
    assert distribution[800] == pytest.approx(math.prod((10_000 - i) / 10_000 for i in range(800)), rel=1e-9)


@pytest.mark.parametrize("total", [300, 800, 2000])
def test_plausible_counts_follow_binomial_tails(total: int) -> None:
    from scipy.stats import binom  # imported here, because the import slows down test collection

    limit = FALSE_ALARM / 80
    low, high = plausible_counts(total)
    counts = np.arange(total + 1)
    accepted = (binom.cdf(counts, total, 0.05) >= limit) & (binom.sf(counts - 1, total, 0.05) >= limit)
    assert (low, high) == (counts[accepted].min(), counts[accepted].max())
    assert binomial_tails(0, total, 0.05) == pytest.approx((0.95**total, 1.0))
    assert binomial_tails(total, total, 0.05) == pytest.approx((1.0, 0.05**total))


def named(evidence: Evidence) -> set[str]:
    return {result.check for result in verification.run_checks(evidence)} & {check.name for check in OF_CHANCE}


@pytest.mark.parametrize(
    ("draw", "ids"),
    [
        # A tenth of the rows is never drawn.
        (lambda dice, count: [dice.randint(1, 9_000) for _ in range(count)], 490),
        # No row is drawn again until every row has been drawn once.
        (lambda dice, count: dice.sample(range(1, 10_001), count), MIN_VALUES_FOR_PASS),
    ],
)
def test_enough_ids_always_fail_dishonest_servers(draw: Draw, ids: int) -> None:
    dice = random.Random(20261123)
    for count, outcome in ((ids, True), (ids * 3 // 4, False)):
        assert all(bool(objections(crowd("db", [[i] for i in draw(dice, count)]))) is outcome for _ in range(20))


def test_few_responses_omit_passes_of_randomness() -> None:
    dice = random.Random(1)
    assert named(crowd("db", [independent(dice, 1) for _ in range(MIN_VALUES_FOR_PASS - 1)])) == set()
    assert named(crowd("db", [independent(dice, 1) for _ in range(MIN_VALUES_FOR_PASS)])) == {
        "ids-uniform",
        "ids-repeat-by-chance",
        "ids-independent",
    }
    assert named(crowd("db", [[7]] * 200)) == {"ids-repeat-by-chance"}
