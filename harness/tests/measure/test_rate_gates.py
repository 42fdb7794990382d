"""Whether the latency of a load at a given rate may be published."""

from typing import Any

import pytest

from harness.measure.rate_gates import FEW_LATE, judge, measured_the_generator, saturated, sent_late
from harness.plan.profile import GateThresholds, LatencyRules
from harness.records.models import Errors, Gate, Latency, Closed, Outcome, RateSample


def latency(p99: float, median: float = 0.001) -> Latency:
    return Latency(
        basis="open-loop, intended send time",
        mean=median,
        stdev=0.0,
        min=0.0,
        max=p99,
        percentiles={"50": median, "99": p99},
    )


def sample(**values: Any) -> RateSample:
    known: dict[str, Any] = {
        "id": "a/1",
        "implementation": "a",
        "test_type": "json",
        "level": Closed(connections=64),
        "block": 0,
        "process": 0,
        "purpose": "share",
        "asked_rate": 1000.0,
        "started_at": 0.0,
        "duration": 2.0,
        "due": 2000,
        "answered": 2000,
        "achieved_rate": 1000.0,
        "unfinished": 0,
        "errors": Errors(),
        "late": 0,
        "latency": latency(0.010),
        "lag_p99": 0.0001,
        "bytes": 300_000,
    }
    found = RateSample(**{**known, **values})
    return found.model_copy(update={"gates": judge(found, LatencyRules(), GateThresholds(), (150.0, 150.0))})


def gate(found: RateSample, name: str) -> Gate:
    (one,) = [gate for gate in found.gates if gate.name == name]
    return one


def test_a_load_as_it_should_be_passes_every_gate() -> None:
    assert {one.outcome for one in sample().gates} == {Outcome.PASS}
    assert sample().valid


@pytest.mark.parametrize(("achieved", "outcome"), [(995.0, Outcome.PASS), (989.6, Outcome.PASS), (985.0, Outcome.FAIL)])
def test_one_per_cent_and_what_the_median_leaves_under_way_may_be_missing(achieved: float, outcome: Outcome) -> None:
    assert gate(sample(achieved_rate=achieved), "achieved-rate").outcome is outcome


@pytest.mark.parametrize(("in_time", "outcome"), [(19, Outcome.PASS), (18, Outcome.FAIL)])
def test_one_request_under_way_at_the_end_of_a_small_load_is_chance_and_two_are_not(
    in_time: int, outcome: Outcome
) -> None:
    """At ten requests a second and three milliseconds each, one is under way at a moment in thirty, two in 2,300."""
    found = sample(due=20, answered=in_time, achieved_rate=in_time / 2, latency=latency(0.01, median=0.003))
    assert gate(found, "achieved-rate").outcome is outcome


def test_a_backlog_is_a_shortfall_however_long_its_latency_is() -> None:
    """A median of half a second would excuse a quarter of the requests, were they not waiting for 64 connections."""
    found = sample(achieved_rate=900.0, latency=latency(0.9, median=0.5))
    assert gate(found, "achieved-rate").value == pytest.approx(0.1)
    assert gate(found, "achieved-rate").threshold == pytest.approx(0.01 + 64 / 2000)
    assert saturated(found)


@pytest.mark.parametrize(
    ("lag", "p99", "outcome"),
    [
        (0.0019, 0.010, Outcome.PASS),
        (0.0021, 0.010, Outcome.FAIL),
        (0.00009, 0.0001, Outcome.PASS),  # below a tenth of a millisecond a lag does not count
        (0.00011, 0.0002, Outcome.FAIL),
    ],
)
def test_the_generator_may_be_late_by_a_fifth_of_the_latency(lag: float, p99: float, outcome: Outcome) -> None:
    found = sample(lag_p99=lag, latency=latency(p99))
    assert gate(found, "generator-lag").outcome is outcome
    assert measured_the_generator(found) is (outcome is Outcome.FAIL)


def test_an_unfinished_request_counts_once() -> None:
    found = sample(unfinished=3, errors=Errors(timeout=3))
    assert gate(found, "errors").outcome is Outcome.PASS
    assert gate(found, "unfinished").outcome is Outcome.FAIL
    assert gate(sample(errors=Errors(status=1)), "errors").outcome is Outcome.FAIL


def test_short_answers_and_another_process_are_no_latency() -> None:
    assert gate(sample(bytes=150_000), "response-size").outcome is Outcome.FAIL
    assert gate(sample(restarted=True), "restarted").outcome is Outcome.FAIL
    assert gate(sample(steal_share=0.5), "steal").outcome is Outcome.WARN


def test_a_load_without_a_request_shows_nothing() -> None:
    found = sample(due=0, answered=0, achieved_rate=0.0, latency=None, lag_p99=None, bytes=0)
    assert not found.valid


def test_one_request_due_is_judged_like_many() -> None:
    found = gate(sample(due=1, duration=1.0, achieved_rate=0.0, latency=None), "achieved-rate")
    assert (found.outcome, found.value, found.word) == (Outcome.FAIL, 1.0, "rate not achieved")


def test_a_load_of_no_duration_has_no_rate() -> None:
    found = gate(sample(duration=0.0), "achieved-rate")
    assert (found.outcome, found.value, found.word) == (Outcome.FAIL, None, "no requests")


def test_a_generator_s_lag_is_told_with_its_limit_and_passes_where_it_is_not_known() -> None:
    rules = LatencyRules()
    late = gate(sample(lag_p99=0.008), "generator-lag")
    assert late.value == pytest.approx(0.8)
    assert (late.threshold, late.word) == (rules.lag_share, "generator lag")
    unknown = gate(sample(lag_p99=None), "generator-lag")
    assert (unknown.outcome, unknown.value, unknown.threshold) == (Outcome.PASS, None, rules.lag_share)


def test_unfinished_requests_alone_say_that_a_server_does_not_keep_up() -> None:
    found = sample(unfinished=1000)
    assert {one.name for one in found.gates if one.outcome is Outcome.FAIL} == {"unfinished"}
    assert saturated(found)


@pytest.mark.parametrize(
    ("due", "sent_late", "outcome"),
    [
        (33, 3, Outcome.WARN),
        (33, 4, Outcome.FAIL),
        (2000, 34, Outcome.WARN),
        (2000, 35, Outcome.FAIL),
        (2000, None, Outcome.FAIL),  # not known: as many as the p99 says, and more
    ],
)
def test_so_few_requests_sent_late_as_chance_explains_are_told_and_keep_nothing_out(
    due: int, sent_late: int | None, outcome: Outcome
) -> None:
    """One in a hundred on average: of 33 requests 3 are late in 2 of 1,000 loads, of 2,000 35 in 1 of 1,000."""
    found = sample(due=due, lag_p99=0.008, sent_late=sent_late, achieved_rate=due / 2, bytes=150 * due)
    late = gate(found, "generator-lag")
    assert late.outcome is outcome
    assert late.value == pytest.approx(0.8)
    assert late.word == (FEW_LATE if outcome is Outcome.WARN else "generator lag")
    assert found.valid is (outcome is Outcome.WARN)
    assert measured_the_generator(found)


def test_requests_sent_late_count_only_where_the_p99_of_the_lag_is_too_long() -> None:
    found = gate(sample(lag_p99=0.0019, sent_late=2000), "generator-lag")
    assert (found.outcome, found.word) == (Outcome.PASS, "")


@pytest.mark.parametrize(("p99", "limit"), [(0.010, 0.002), (0.0001, 0.0001)])
def test_the_limit_of_a_request_sent_late_is_the_gate_s(p99: float, limit: float) -> None:
    asked: list[float] = []

    def count(seconds: float) -> int:
        asked.append(seconds)
        return 7

    assert sent_late(count, latency(p99), LatencyRules()) == 7
    assert asked == [pytest.approx(limit)]
    assert sent_late(None, latency(p99), LatencyRules()) is None
    assert sent_late(count, None, LatencyRules()) is None
    assert sent_late(count, latency(0.0), LatencyRules()) is None
