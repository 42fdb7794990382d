"""A difference of two means has the interval that its two variances leave."""

import numpy as np
import pytest
from scipy import stats as reference

from harness.stats import contrasts
from harness.stats.contrasts import Means


def means(error: float, freedom: float, *, moderated: bool, mean: float = 0.0) -> Means:
    return Means(
        mean=np.array([mean]), squared_error=np.array([error]), freedom=np.array([freedom]), moderated=moderated
    )


def half(one: Means, other: Means, confidence: float = 0.95) -> float:
    return float(contrasts.differences(one, other).half_width(confidence)[0])


def test_without_moderation_it_is_welchs_interval() -> None:
    a, b = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.5, 2.2, 2.9])
    first, second = (means(x.var(ddof=1) / len(x), len(x) - 1.0, moderated=False, mean=x.mean()) for x in (a, b))
    expected = reference.ttest_ind(a, b, equal_var=False)
    found = contrasts.differences(first, second)
    assert found.p_value()[0] == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert half(first, second) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize(("one", "other"), [((1.0, 8.0), (1.0, 8.0)), ((4.0, 6.0), (1.0, 12.0))])
def test_a_moderated_difference_has_the_quantiles_of_a_difference_of_two_ts(
    one: tuple[float, float], other: tuple[float, float]
) -> None:
    generator = np.random.default_rng(6)
    drawn = [np.sqrt(error) * generator.standard_t(freedom, 400_000) for error, freedom in (one, other)]
    simulated = np.quantile(np.abs(drawn[0] - drawn[1]), [0.95, 0.99])
    first, second = (means(*side, moderated=True) for side in (one, other))
    assert [half(first, second, 0.95), half(first, second, 0.99)] == pytest.approx(simulated, rel=0.02)


def test_as_degrees_of_freedom_come_down_to_four_the_interval_does_not_jump() -> None:
    above, below = (means(1.0, freedom, moderated=True) for freedom in (4.0001, 3.9999))
    assert half(above, above, 0.999) == pytest.approx(half(below, below, 0.999), rel=0.001)


def test_two_rows_of_equal_figures_differ_by_exactly_nothing() -> None:
    row = means(0.0, 2.0, moderated=False)
    assert half(row, row) == 0.0
    assert np.isnan(contrasts.differences(row, row).p_value()[0])
