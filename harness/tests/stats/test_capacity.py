"""What is published of loads at given rates: medians over replicates, and nothing where a rate was not held."""

import pytest

from harness.records.models import Closed, Errors, Gate, Latency, Outcome, RateSample
from harness.stats.capacity import points


def sample(block: int, p99: float, *, failed: str = "", answered: int = 1000, share: float | None = 0.5) -> RateSample:
    gates = (Gate(name=failed, outcome=Outcome.FAIL, value=1.0, threshold=0.0, word=failed),) if failed else ()
    return RateSample(
        id=f"a/{block}",
        implementation="a",
        test_type="json",
        level=Closed(connections=64),
        block=block,
        process=block,
        purpose="share" if share else "common",
        asked_rate=500.0 + block,
        share=share,
        started_at=0.0,
        duration=2.0,
        due=1000,
        answered=answered,
        achieved_rate=500.0,
        unfinished=0,
        errors=Errors(),
        late=0,
        latency=Latency(
            basis="open-loop, intended send time",
            mean=p99 / 4,
            stdev=0.0,
            min=0.0,
            max=2 * p99,
            percentiles={"50": p99 / 4, "99": p99, "99.9": 1.5 * p99},
        ),
        lag_p99=1e-5,
        gates=gates,
    )


def test_a_percentile_is_the_median_of_the_loads_own_and_its_interval_is_over_them() -> None:
    (point,) = points([sample(0, 0.002), sample(1, 0.004), sample(2, 0.003)])
    p99 = point.percentiles["99"]
    assert (p99.values, p99.blocks) == ((0.002, 0.004, 0.003), (0, 1, 2))
    assert p99.median == pytest.approx(0.003)
    assert p99.low is not None
    assert p99.high is not None
    assert 0.001 < p99.low < 0.002
    assert 0.004 < p99.high < 0.008
    assert (point.rate, point.share, point.maximum) == (501.0, 0.5, 0.008)


def test_a_percentile_that_one_load_was_too_short_for_is_not_shown() -> None:
    (point,) = points([sample(0, 0.002), sample(1, 0.004, answered=400)])
    assert sorted(point.percentiles) == ["50"]


@pytest.mark.parametrize("gate", ["errors", "achieved-rate", "unfinished", "response-size"])
def test_a_rate_that_was_not_held_in_one_replicate_shows_nothing_of_the_others(gate: str) -> None:
    (point,) = points([sample(0, 0.002), sample(1, 0.004), sample(2, 0.003, failed=gate)])
    assert (point.percentiles, point.maximum, point.replicates, point.dropped) == ({}, None, 2, 1)
    assert point.words == (gate,)


def test_a_late_generator_costs_its_own_load_only() -> None:
    (point,) = points([sample(0, 0.002), sample(1, 0.004), sample(2, 0.3, failed="generator-lag")])
    assert point.percentiles["99"].values == (0.002, 0.004)


def test_shares_and_common_rates_are_points_of_their_own_in_the_order_of_rates() -> None:
    low = sample(0, 0.002, share=None).model_copy(update={"asked_rate": 100.0})
    assert [point.purpose for point in points([sample(0, 0.002), low])] == ["common", "share"]
