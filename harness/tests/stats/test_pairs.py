"""All pairs at once give what testing them one by one gives."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from harness.stats import contrasts, estimates, pairs
from harness.stats.basis import Comparable
from harness.stats.contrasts import Means
from harness.stats.moderation import UNLEARNED
from harness.stats.values import Matrix


def comparable(logs: Matrix, paired: bool) -> Comparable:
    """A table compared by the textbook's tests, as where no prior can be learned."""
    stats = estimates.moments(logs)
    with np.errstate(invalid="ignore"):
        error = stats.variance / stats.count
    means = Means(mean=stats.mean, squared_error=error, freedom=stats.count - 1, moderated=False)
    basis: contrasts.Basis = "paired" if paired else "welch"
    return Comparable(logs=logs, means=means, basis=basis, prior=UNLEARNED, blocks_removed=paired)


def moderated(mean: Matrix, error: Matrix, freedom: Matrix) -> Comparable:
    means = Means(mean=mean, squared_error=error, freedom=freedom, moderated=True)
    return Comparable(logs=mean[:, None], means=means, basis="moderated", prior=UNLEARNED, blocks_removed=False)


def p_values(logs: Matrix, paired: bool) -> dict[tuple[int, int], float]:
    """The textbook's test of each pair of rows by itself, all in one call."""
    places = list(combinations(range(len(logs)), 2))
    one, other = logs[[i for i, _ in places]], logs[[j for _, j in places]]
    found = (
        reference.ttest_rel(one, other, axis=1) if paired else reference.ttest_ind(one, other, axis=1, equal_var=False)
    )
    return dict(zip(places, np.asarray(found.pvalue).tolist(), strict=True))


def one_by_one(found: Mapping[tuple[int, int], float], alpha: float) -> set[tuple[int, int]]:
    """Holm's correction as it is written."""
    rejected = set()
    for place, (pair, value) in enumerate(sorted(found.items(), key=lambda item: item[1])):
        if value > alpha / (len(found) - place):
            break
        rejected.add(pair)
    return rejected


@pytest.mark.parametrize("paired", [True, False])
@given(seed=st.integers(0, 10_000), servers=st.integers(2, 9), spread=st.sampled_from([0.0, 0.5, 2.0, 20.0]))
@settings(max_examples=60, deadline=None)
def test_decisions_equal_those_of_single_tests_with_holms_correction(
    paired: bool, seed: int, servers: int, spread: float
) -> None:
    generator = np.random.default_rng(seed)
    logs = generator.normal(size=(servers, 5)) + spread * np.arange(servers)[:, None]
    family = pairs.significant(comparable(logs, paired), 0.05)
    found = {(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(family.rejected)), strict=True)}
    assert found == one_by_one(p_values(logs, paired), 0.05)
    assert (family.rejected == family.rejected.T).all()
    assert family.size == servers * (servers - 1) // 2


def test_incomplete_blocks_give_the_same_paired_decision_as_their_shared_blocks() -> None:
    generator = np.random.default_rng(7)
    logs = generator.normal(size=(2, 8)) + np.array([[0.0], [3.0]])
    holes = logs.copy()
    holes[0, 6:] = np.nan
    holes[1, 0] = np.nan
    statistics = pairs._paired(holes)
    expected = reference.ttest_rel(logs[0, 1:6], logs[1, 1:6])
    difference, error = statistics.rows(0, 2)
    t = difference[0, 1] / np.sqrt(error[0, 1])
    assert t == pytest.approx(expected.statistic)
    assert statistics.shared[0, 1] == 5


def test_a_pair_with_a_single_replicate_is_not_tested() -> None:
    logs = np.array([[0.0, np.nan], [9.0, np.nan], [0.0, 0.1], [5.0, 5.1]])
    assert pairs.significant(comparable(logs, False), 0.05).size == 1
    assert not pairs.significant(comparable(logs, True), 0.05).rejected[0, 1]


def test_identical_values_are_a_tie() -> None:
    assert not pairs.significant(comparable(np.zeros((3, 5)), True), 0.05).rejected.any()


def test_holm_rejects_in_order_until_the_first_failure() -> None:
    p_values = np.array([0.001, 0.02, 0.04, 0.013])
    assert pairs.holm(p_values, 0.05).tolist() == [True, True, True, True]
    assert pairs.holm(np.array([0.01, 0.04, 0.03, 0.005]), 0.05).tolist() == [True, False, False, True]


def test_half_widths_are_those_of_the_intervals() -> None:
    logs = np.log([[100.0, 104.0, 98.0], [90.0, 95.0, 99.0]])
    within = reference.ttest_rel(logs[0], logs[1]).confidence_interval(0.95)
    over_all = reference.ttest_ind(logs[0], logs[1], equal_var=False).confidence_interval(0.95)
    assert pairs.half_widths(comparable(logs, True), 0.95)[0, 1] == pytest.approx((within.high - within.low) / 2)
    assert pairs.half_widths(comparable(logs, False), 0.95)[0, 1] == pytest.approx((over_all.high - over_all.low) / 2)


def test_better_has_the_direction_of_the_metric() -> None:
    logs = np.log([[100.0, 101.0, 100.5], [200.0, 201.0, 199.0]])
    table = comparable(logs, True)
    decided = pairs.significant(table, 0.05).rejected
    assert pairs.better(table, decided, 0.0, higher=True).tolist() == [[False, False], [True, False]]
    assert pairs.better(table, decided, 0.0, higher=False).tolist() == [[False, True], [False, False]]


@given(seed=st.integers(0, 10_000), servers=st.integers(2, 12), spread=st.sampled_from([0.0, 0.1, 0.5, 3.0]))
@settings(max_examples=60, deadline=None)
def test_decisions_of_moderated_rows_equal_those_of_single_contrasts(seed: int, servers: int, spread: float) -> None:
    """Bounds of critical values save work, and decide nothing else."""
    generator = np.random.default_rng(seed)
    table = moderated(
        spread * generator.normal(size=servers),
        0.01 * generator.lognormal(sigma=1.0, size=servers),
        generator.choice([2.0, 4.5, 8.0, 40.0], size=servers),
    )
    against = [table.against(i).p_value() for i in range(servers)]
    alone = {(i, j): float(against[i][j]) for i, j in combinations(range(servers), 2)}
    expected = one_by_one(alone, 0.05)
    family = pairs.significant(table, 0.05)
    assert {(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(family.rejected)), strict=True)} == expected
    assert family.level == pytest.approx(0.05 / max(len(alone) - len(expected), 1))
