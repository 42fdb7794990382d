"""Tests for the order service's use cases, and for the plan that the load generator gets."""

import json
import re

import pytest

from harness.extras.orders.test_type import USE_CASES
from harness.plan.scenarios import plan


def test_factor_1_has_445_arrivals_per_minute() -> None:
    """The numbers come from the talk that defines the order service's load."""
    assert sum(case.arrivals_per_minute for case in USE_CASES) == 445
    assert sum(case.arrivals_per_minute * len(case.steps) for case in USE_CASES) == 1000


def test_the_factor_scales_the_arrivals_and_nothing_else() -> None:
    one, ten = plan(USE_CASES, 1), plan(USE_CASES, 10)
    rates = [[case["rate"] for case in json.loads(json.dumps(made))["use_cases"]] for made in (one, ten)]
    assert rates[0] == pytest.approx([5.0, 50 / 60, 50 / 60, 25 / 60, 20 / 60])
    assert rates[1] == pytest.approx([10 * rate for rate in rates[0]])
    assert re.sub(r'"rate": [\d.]+', "", json.dumps(one)) == re.sub(r'"rate": [\d.]+', "", json.dumps(ten))
