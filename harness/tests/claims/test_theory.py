"""What theory predicts on so many CPUs, held against the talks' own figures on theirs."""

import pytest

from harness.claims.claim import Claim, read
from harness.claims.theory import Theory, count

WITH_THEORY = [
    pytest.param(claim, index, id=f"{claim.name}: {each.name}")
    for claim in read().claims.values()
    for index, each in enumerate(claim.compare)
    if each.theory and each.ratio
]


@pytest.mark.parametrize(("claim", "index"), WITH_THEORY)
def test_on_the_talks_own_cpus_theory_gives_the_figure_that_it_showed(claim: Claim, index: int) -> None:
    comparison = claim.compare[index]
    assert comparison.predicted(claim.cpus or 4) == pytest.approx(comparison.ratio, rel=0.13)


@pytest.mark.parametrize(("cpus", "pool", "stream"), [(2, 20, 10), (3, 10, 7), (10, 3, 2), (64, 1, 1)])
def test_fewer_cpus_mean_more_rounds_of_the_common_pool(cpus: int, pool: int, stream: int) -> None:
    calls = next(claim for claim in read().claims.values() if claim.name == "twenty-slow-calls")
    by_name = {each.name.split(" against")[0]: each.predicted(cpus) for each in calls.compare}
    assert (by_name["common pool"], by_name["parallel stream"], by_name["one by one"]) == (pool, stream, 20)


@pytest.mark.parametrize(("text", "number"), [("4", 4), ("cpus", 8), ("2 * cpus", 16), ("cpus - 1", 7)])
def test_a_count_may_depend_on_the_cpus(text: str, number: int) -> None:
    assert count(text, 8) == number


def test_a_pool_is_never_empty() -> None:
    assert count("cpus - 1", 1) == 1


@pytest.mark.parametrize("text", ["", "cpus + 1", "-1", "__import__('os')"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is none of 4, cpus"):
        count(text, 2)


def test_a_pool_is_limited_by_its_threads_or_by_who_asks() -> None:
    law = {"law": "pool", "of_at_once": "200", "to_at_once": "20", "to_connections": 1000, "why": "w"}
    assert Theory.model_validate({**law, "of_connections": 1000}).ratio(2) == 10
    assert Theory.model_validate({**law, "of_connections": 100}).ratio(2) == 5
