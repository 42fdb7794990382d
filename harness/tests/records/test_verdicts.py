"""Tests for the words that express verdicts."""

import pytest

from harness.records.verdicts import is_equivalent, worst


@pytest.mark.parametrize(
    ("low", "high", "equivalent"),
    [
        (0.97, 0.99, True),
        (0.98, 1.04, True),
        (1.01, 1.04, True),
        (0.94, 1.0, False),
        (1.0, 1.06, False),
        (None, 1.0, False),
    ],
)
def test_equivalence_needs_the_interval_within_the_margin(low: float | None, high: float, equivalent: bool) -> None:
    assert is_equivalent(low, high, 0.05) is equivalent


def test_the_worst_verdict_ignores_requests_that_base_lacks() -> None:
    assert worst(("same", "not in base", "faster", "cannot tell")) == "cannot tell"
    assert worst(("not in base",), "same") == "same"
