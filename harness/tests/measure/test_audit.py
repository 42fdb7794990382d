"""What the account of an audited load says of requests that had no answer."""

import pytest

from harness.measure.audit import account, drawn_seconds
from harness.measure.loadgen.own import Total
from harness.records.models import CheckResult, Outcome
from harness.verify.checks.audit import one_answer_a_request
from harness.verify.checks.evidence import Evidence

COUNTS = {"sent": 482, "received": 466, "successes": 466, "unasked_responses": 0, "unasked_bytes": 0}
ERRORS = dict.fromkeys(("connect", "write", "closed", "timeout", "framing", "dropped", "status", "length", "body"), 0)


def load(drain_seconds: float) -> Total:
    """A load of a second that ended with sixteen requests without an answer."""
    return Total.model_validate(
        {
            **COUNTS,
            "bytes_out": 79530,
            "bytes_in": 71764,
            "response_bytes": 71764,
            "connections_opened": 16,
            "connections_closed_by_peer": 0,
            "reconnects": 0,
            "connections_hung": 0,
            "sampled": 466,
            "sampled_over_limit": 0,
            "backlog_peak": 0,
            "errors": ERRORS,
            "statuses": {"200": 466},
            "kind": "total",
            "loop": "closed",
            "rate": None,
            "connections": 16,
            "threads": 1,
            "depth": 1,
            "start_ns": 0,
            "end_ns": 10**9,
            "seconds": 1.0,
            "stopped_by": "duration",
            "in_time": {"received": 466, "successes": 466, "bytes_in": 71764},
            "drain_seconds": drain_seconds,
            "unsent": 0,
            "unfinished": 16,
            "cpu_seconds": 0.02,
            "run_queue_wait_seconds": 0.0,
            "latency": None,
            "service": None,
            "lag": None,
        }
    )


def judged(drain_seconds: float) -> CheckResult:
    return one_answer_a_request.run(Evidence(test_type="json", url="", audit=account(load(drain_seconds))))


@pytest.mark.parametrize(("drain_seconds", "outcome"), [(0.2, Outcome.PASS), (8.001, Outcome.FAIL)])
def test_a_request_without_an_answer_after_the_whole_drain_is_missing(drain_seconds: float, outcome: Outcome) -> None:
    assert judged(drain_seconds).outcome is outcome


def test_the_missing_ones_are_counted() -> None:
    assert "16 of 482 requests were not answered" in judged(8.001).message


@pytest.mark.parametrize("sample_seconds", [1.0, 2.0, 3.0])
def test_an_audit_lasts_as_long_as_a_short_sample(sample_seconds: float) -> None:
    assert {drawn_seconds(sample_seconds, seed) for seed in range(50)} == {sample_seconds}


def test_no_part_of_a_long_sample_is_one_in_which_nobody_can_be_looking() -> None:
    drawn = [drawn_seconds(15.0, seed) for seed in range(1000)]
    assert min(drawn) == 3.0
    assert 14.5 < max(drawn) <= 15.0
    assert sum(drawn) / len(drawn) < 7.0
