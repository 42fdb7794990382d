"""Each gate passes a sound sample, names what it saw in a bad one, and admits what it could not see."""

from dataclasses import replace
from typing import Any

import pytest

from harness.measure.gates import SampleFacts, judge
from harness.request.profile import GateThresholds
from harness.results.records import Gate, Level, Outcome

LIMITS = GateThresholds()
SOUND = SampleFacts(
    level=Level(concurrency=64),
    errors=0,
    requests=1_000_000,
    bytes=150_000_000,
    asked_duration=10.0,
    duration=10.05,
    response_bytes=(149.0, 151.0),
    connections=64,
    latency_mean=64 / 99_502.5,
    latency_samples=1_000_000,
    generator_cpu_seconds=7.0,
    generator_threads=1,
    server_cpu_seconds=18.0,
    server_cpus=2,
    wait_share=0.01,
    throttled_seconds=0.0,
    steal_share=0.0,
    restarted=False,
)


def gate(facts: SampleFacts, name: str, limits: GateThresholds = LIMITS) -> Gate:
    return next(each for each in judge(facts, limits) if each.name == name)


def test_a_sound_sample_passes_every_gate_without_a_word() -> None:
    gates = judge(SOUND, LIMITS)
    assert [each.name for each in gates] == [
        "errors",
        "connections",
        "response-size",
        "overrun",
        "restarted",
        "generator-bound",
        "contended",
        "throttled",
        "steal",
        "littles-law",
        "delayed-ack",
    ]
    assert {(each.outcome, each.word) for each in gates} == {(Outcome.PASS, "")}
    assert all(each.value is not None and each.threshold is not None for each in gates)


@pytest.mark.parametrize(
    ("change", "name", "outcome", "value", "word"),
    [
        ({"errors": 3}, "errors", Outcome.FAIL, 3.0, "errors"),
        ({"connections": 63}, "connections", Outcome.FAIL, 63.0, "connections"),
        ({"bytes": 140_000_000}, "response-size", Outcome.FAIL, 140 / 149 - 1, "response size"),
        ({"bytes": 160_000_000}, "response-size", Outcome.FAIL, 160 / 151 - 1, "response size"),
        ({"duration": 10.6}, "overrun", Outcome.FAIL, 0.6, "overrun"),
        ({"duration": 6.0}, "overrun", Outcome.FAIL, -4.0, "cut short"),
        ({"restarted": True}, "restarted", Outcome.FAIL, 1.0, "restarted"),
        ({"generator_cpu_seconds": 9.5}, "generator-bound", Outcome.WARN, 9.5 / 10.05, "generator-bound"),
        ({"wait_share": 0.2}, "contended", Outcome.WARN, 0.2, "contended"),
        ({"throttled_seconds": 1.0}, "throttled", Outcome.WARN, 1 / 10.05, "throttled"),
        ({"steal_share": 0.05}, "steal", Outcome.WARN, 0.05, "steal"),
        ({"latency_mean": 2 * 64 / 99_502.5}, "littles-law", Outcome.WARN, 1.0, "Little's law"),
        ({"latency_mean": 0.5 * 64 / 99_502.5}, "littles-law", Outcome.WARN, -0.5, "Little's law"),
    ],
)
def test_a_breach_names_what_was_seen(
    change: dict[str, Any], name: str, outcome: Outcome, value: float, word: str
) -> None:
    found = gate(replace(SOUND, **change), name)
    assert (found.outcome, found.word) == (outcome, word)
    assert found.value == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("connections", "connections"),
        ("response_bytes", "response-size"),
        ("wait_share", "contended"),
        ("throttled_seconds", "throttled"),
        ("steal_share", "steal"),
        ("latency_mean", "littles-law"),
        ("latency_samples", "littles-law"),
    ],
)
def test_what_is_unknown_passes_without_a_value(field: str, name: str) -> None:
    unknown: dict[str, Any] = {field: None}
    found = gate(replace(SOUND, **unknown), name)
    assert (found.outcome, found.value, found.word) == (Outcome.PASS, None, "")


def test_connections_are_asked_for_in_multiples_of_the_generators_threads() -> None:
    facts = replace(SOUND, level=Level(concurrency=65), generator_threads=2, connections=64)
    assert gate(facts, "connections").outcome is Outcome.PASS
    assert gate(facts, "connections").threshold == 64.0


def test_responses_under_way_at_the_end_are_no_wrong_size() -> None:
    slow = replace(SOUND, requests=1_000, bytes=158_000)
    assert gate(slow, "response-size").outcome is Outcome.PASS
    assert gate(replace(slow, bytes=170_000), "response-size").outcome is Outcome.FAIL


def test_littles_law_is_not_judged_by_latency_that_wrk_corrected() -> None:
    """Measured here: 1.36 million samples of a million requests make a mean that belongs to no request."""
    corrected = replace(SOUND, latency_samples=1_360_000, latency_mean=0.0067)
    assert gate(corrected, "littles-law").value is None


def test_littles_law_allows_for_the_requests_under_way_at_the_end_of_a_short_sample() -> None:
    slow = replace(SOUND, requests=120, bytes=18_000, latency_samples=120, duration=2.0, asked_duration=2.0)
    short_of_one_round = replace(slow, latency_mean=0.8)  # 48 of 64 in flight on average
    assert gate(short_of_one_round, "littles-law").outcome is Outcome.PASS
    assert gate(replace(slow, latency_mean=0.3), "littles-law").outcome is Outcome.WARN


def test_littles_law_is_not_judged_for_pipelined_runs() -> None:
    assert gate(replace(SOUND, level=Level(concurrency=64, pipeline=16)), "littles-law").value is None


def test_a_server_that_idles_at_one_answer_a_connection_every_40_ms_has_the_delayed_ack_signature() -> None:
    """1,460 requests/s on 64 connections, as a JVM server without TCP_NODELAY showed."""
    facts = replace(SOUND, requests=14_673, bytes=14_673 * 150, server_cpu_seconds=1.2)
    found = gate(facts, "delayed-ack")
    assert (found.outcome, found.word) == (Outcome.WARN, "delayed ACK")
    assert found.value == pytest.approx(-0.0875, abs=1e-3)
    assert gate(replace(facts, server_cpu_seconds=15.0), "delayed-ack").outcome is Outcome.PASS
    assert gate(replace(facts, wait_share=0.6), "delayed-ack").outcome is Outcome.PASS


def test_the_profile_decides_which_gates_keep_a_sample_out() -> None:
    strict = GateThresholds(wait_share_fails=True, failing=("generator-bound",))
    assert gate(replace(SOUND, wait_share=0.2), "contended", strict).outcome is Outcome.FAIL
    assert gate(replace(SOUND, generator_cpu_seconds=10.0), "generator-bound", strict).outcome is Outcome.FAIL
    assert gate(replace(SOUND, errors=1), "errors", strict).outcome is Outcome.WARN


def test_an_unknown_gate_name_in_a_profile_is_an_error() -> None:
    with pytest.raises(ValueError, match="generator-bond"):
        GateThresholds.model_validate({"failing": ["generator-bond"]})
