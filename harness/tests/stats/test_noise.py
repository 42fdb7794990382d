"""The noise floor is the largest difference that identical servers may have."""

import numpy as np
import pytest
from scipy import stats

from harness.stats.noise import floor, measured, noise_floor
from harness.tests.stats.records import LEVEL, sample


def test_the_floor_is_the_farther_end_of_the_interval_of_the_mean_log_ratio() -> None:
    pairs = [(101.0, 100.0), (99.0, 100.0), (102.0, 100.0), (100.0, 101.0)]
    ratios = np.log([a / b for a, b in pairs])
    half = stats.t.ppf(0.975, 3) * ratios.std(ddof=1) / 2
    assert floor(pairs) == pytest.approx(np.expm1(abs(ratios.mean()) + half))


def test_more_pairs_lower_the_part_that_is_chance() -> None:
    pairs = [(101.0, 100.0), (99.0, 100.0), (102.0, 100.0), (98.0, 100.0)]
    assert floor(pairs * 4) < floor(pairs) / 2


def test_a_lasting_advantage_of_one_copy_stays_however_many_the_pairs() -> None:
    generator = np.random.default_rng(3)
    assert floor([(104.0 * luck, 100.0) for luck in generator.lognormal(sigma=0.01, size=200)]) > 0.04


def test_the_record_holds_both_metrics() -> None:
    pairs = [(101.0, 100.0), (99.0, 100.0), (100.5, 100.0)]
    costs = [(1.0, 1.001), (1.0, 0.999), (1.0, 1.0)]
    record = noise_floor(
        implementation="a", profile="standard", measured_at=7.0, throughput=pairs, cpu_per_request=costs
    )
    assert (record.pairs, record.throughput, record.cpu_per_request) == (3, floor(pairs), floor(costs))


def test_one_pair_is_no_floor() -> None:
    with pytest.raises(ValueError, match="at least two A/A pairs, there are 1"):
        floor([(1.0, 1.0)])


def test_of_the_samples_of_a_run_the_block_is_the_unit_and_cells_of_one_copy_alone_are_left_out() -> None:
    figures = [(1010.0, 1000.0), (990.0, 1000.0), (1005.0, 1000.0)]
    samples = [
        sample(name, block, value * factor, test_type=kind)
        for block, pair in enumerate(figures)
        for name, value in zip(("a", "a~twin"), pair, strict=True)
        for kind, factor in (("json", 1.0), ("db", 4.0))
    ]
    alone = [sample("a", block, 5.0, test_type="query", level=LEVEL) for block in range(3)]
    found = measured([*samples, *alone], ("a", "a~twin"), profile="quick", measured_at=7.0)
    assert (found.implementation, found.pairs) == ("a", 3)
    assert found.throughput == pytest.approx(floor(figures))
    assert found.cpu_per_request == pytest.approx(floor([(1 / a, 1 / b) for a, b in figures]))
    with pytest.raises(ValueError, match="at least two A/A pairs, there are 0"):
        measured(alone, ("a", "a~twin"), profile="quick", measured_at=7.0)
