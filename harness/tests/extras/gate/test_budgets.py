"""Budgets and thresholds of requests: valid values, and how they change verdicts."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from harness.extras.gate.budgets import apply_budgets, thresholds
from harness.extras.gate.judge import ComparedVersions, GateResult, judge
from harness.extras.gate.paired import HEAD
from harness.extras.gate.report import headline
from harness.plan.requests import Request
from harness.records.measurements import Latency
from harness.records.trial_record import Trial
from harness.tests.doubles.printed import printed
from harness.tests.extras.gate.test_judge import changed, session


def request(name: str = "item", **keys: Any) -> Request:
    return Request.model_validate({"name": name, "path": "/", **keys})


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("threshold", "5%", 0.05),
        ("threshold", "0.5 %", 0.005),
        ("threshold", "100%", 1.0),
        ("budget_p99", "20ms", 0.02),
        ("budget_p99", "1.5 s", 1.5),
        ("budget_cpu", "300us", 0.0003),
        ("budget_cpu", "300µs", 0.0003),
    ],
)
def test_quantities_have_a_unit(key: str, text: str, value: float) -> None:
    assert getattr(request(**{key: text}), key) == pytest.approx(value)


@pytest.mark.parametrize("value", ["0%", "-5%", "101%", "nan%", "inf%", "5", 5, 0.05, True, "", "5 percent", "5%%"])
def test_other_thresholds_are_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="give a percentage above 0 and at most 100"):
        request(threshold=value)


@pytest.mark.parametrize("key", ["budget_p99", "budget_cpu"])
@pytest.mark.parametrize("value", ["0ms", "-1ms", "20", 20, "20m", "20 MS", "nanms", "infs", "1e9s", ""])
def test_other_budgets_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ValidationError, match="give a duration above 0"):
        request(**{key: value})


def test_a_request_has_its_own_threshold() -> None:
    records = session(np.random.default_rng(3), 1.08, noise=0.01, process=0.003)
    for own, verdict in (("20%", "same"), ("1%", "slower")):
        asked = [request(threshold=own)]
        result = judge(records, ComparedVersions(base="a", head="b", thresholds=dict(thresholds(asked))))
        found = {one.request: one for one in result.requests}
        assert (found["item"].verdict, found["items"].verdict) == (verdict, "same")
        if verdict == "same":
            assert "same within 20 %" in headline(result)
            assert "same within 20 %" in printed(result).partition("\n\n")[2]


def answering_in(seconds: float) -> Any:
    dice = np.random.default_rng(5)

    def change(_: Trial) -> dict[str, Any]:
        time = seconds * float(np.exp(dice.normal(0.0, 0.05)))
        more = {"mean": time, "stdev": 0.0, "min": time, "max": time, "percentiles": {"50": time, "99": time}}
        return {"latency": Latency(basis="open-loop, intended send time", **more)}

    return change


def judged_with(*requests: Request, seconds: float = 0.02, **traits: Any) -> GateResult:
    records = changed(session(np.random.default_rng(3), 1.0, noise=0.01, **traits), HEAD, answering_in(seconds))
    result = judge(records, ComparedVersions(base="a", head="b"))
    return apply_budgets(result, records, requests)


@pytest.mark.parametrize(
    ("budgets", "verdict", "expected"),
    [
        ({"budget_p99": "40ms"}, "same", ""),
        ({"budget_p99": "10ms"}, "slower", "budget_p99 = 10 ms: head's 99th-percentile response time is "),
        ({"budget_p99": "19.5ms"}, "cannot tell", "may be within the budget"),
        ({"budget_cpu": "1s"}, "same", ""),
        ({"budget_cpu": "1us"}, "slower", "budget_cpu = "),
        ({"budget_cpu": "1us", "budget_p99": "10ms"}, "slower", "; budget_cpu"),
        ({"budget_cpu": "1s", "budget_p99": "10ms"}, "slower", "budget_p99"),
    ],
)
def test_budgets_decide_a_request(budgets: dict[str, str], verdict: str, expected: str) -> None:
    result = judged_with(request(**budgets))
    verdicts = {one.request: one for one in result.requests}
    assert verdicts["item"].verdict == verdict
    assert expected in verdicts["item"].reason
    assert verdicts["items"].verdict == "same"
    assert result.verdict == verdict
    assert verdict != "slower" or (expected in printed(result) and expected in headline(result))


def test_unknown_costs_leave_a_budget_open() -> None:
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    result = judge(records, ComparedVersions(base="a", head="b"))
    found = apply_budgets(result, records, [request(budget_p99="20ms")])  # the trials lack response times
    assert (found.verdict, found.requests[1].reason) == (
        "cannot tell",
        "budget_p99 = 20 ms: head's 99th-percentile response time is unknown",
    )


def test_a_single_process_decides_no_budget() -> None:
    result = judged_with(request(budget_p99="10ms"), size=(1, 4))
    assert "slower" not in {one.verdict for one in result.requests}
