"""The noise floor is the largest difference that identical servers may have."""

import numpy as np
import pytest
from scipy import stats

from harness.rank.noise import floor, noise_floor


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
