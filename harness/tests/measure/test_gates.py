"""Each gate passes a sound sample, names what it saw in a bad one, and admits what it could not see."""

from dataclasses import replace
from typing import Any

import pytest

from harness.benchmarks.simulation import sample
from harness.measure.gates import Expected, judge
from harness.plan.profile import GateThresholds
from harness.records.models import CheckResult, ClientUse, Errors, Gate, Latency, Closed, Outcome, Sample

LIMITS = GateThresholds()
EXPECTED = Expected(response_bytes=(149.0, 151.0), server_cpus=2)


def latency(mean: float, count: int) -> Latency:
    return Latency(
        basis="closed-loop, wrk-corrected", mean=mean, stdev=0, min=0, max=1, percentiles={}, histogram=((mean, count),)
    )


SOUND = sample("a", 0, 99_502.5, level=Closed(connections=64)).model_copy(
    update={
        "requests": 1_000_000,
        "bytes": 150_000_000,
        "duration": 10.05,
        "latency": latency(64 / 99_502.5, 1_000_000),
        "generator_cpu_seconds": 7.0,
        "connections": 64,
        "steal_share": 0.0,
        "idle_cpu_share": 0.001,
        "responses_per_request": 0.9999,
    }
)


def changed(one: Sample, **values: Any) -> Sample:
    """The sample with other values; those of ``server`` by their own names, errors by their number."""
    used: dict[str, Any] = {
        key: values.pop(key) for key in ("wait_share", "throttled_seconds", "cpu_seconds") if key in values
    }
    if "errors" in values:
        values["errors"] = Errors(read=values["errors"])
    return one.model_copy(update={**values, "server": one.server.model_copy(update=used)})


SOUND = changed(SOUND, cpu_seconds=18.0)


def gate(one: Sample, name: str, limits: GateThresholds = LIMITS, expected: Expected = EXPECTED) -> Gate:
    return next(each for each in judge(one, expected, limits) if each.name == name)


def test_a_sound_sample_passes_every_gate_without_a_word() -> None:
    gates = judge(SOUND, EXPECTED, LIMITS)
    assert [each.name for each in gates] == [
        "errors",
        "connections",
        "response-size",
        "unasked",
        "overrun",
        "restarted",
        "generator-bound",
        "contended",
        "throttled",
        "steal",
        "littles-law",
        "delayed-ack",
        "idle-servers",
        "probe",
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
        ({"responses_per_request": 2.0}, "unasked", Outcome.FAIL, 2.0, "unasked responses"),
        ({"responses_per_request": 1.06}, "unasked", Outcome.FAIL, 1.06, "unasked responses"),
        ({"restarted": True}, "restarted", Outcome.FAIL, 1.0, "restarted"),
        ({"generator_cpu_seconds": 9.5}, "generator-bound", Outcome.WARN, 9.5 / 10.05, "generator-bound"),
        ({"wait_share": 0.2}, "contended", Outcome.WARN, 0.2, "contended"),
        ({"throttled_seconds": 1.0}, "throttled", Outcome.WARN, 1 / 10.05, "throttled"),
        ({"steal_share": 0.05}, "steal", Outcome.WARN, 0.05, "steal"),
        ({"latency": latency(2 * 64 / 99_502.5, 1_000_000)}, "littles-law", Outcome.WARN, 1.0, "Little's law"),
        ({"latency": latency(0.5 * 64 / 99_502.5, 1_000_000)}, "littles-law", Outcome.WARN, -0.5, "Little's law"),
        ({"idle_cpu_share": 0.03}, "idle-servers", Outcome.WARN, 0.03, "idle servers busy"),
    ],
)
def test_a_breach_names_what_was_seen(
    change: dict[str, Any], name: str, outcome: Outcome, value: float, word: str
) -> None:
    found = gate(changed(SOUND, **change), name)
    assert (found.outcome, found.word) == (outcome, word)
    assert found.value == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("connections", "connections"),
        ("wait_share", "contended"),
        ("throttled_seconds", "throttled"),
        ("steal_share", "steal"),
        ("latency", "littles-law"),
        ("idle_cpu_share", "idle-servers"),
    ],
)
def test_what_is_unknown_passes_without_a_value(field: str, name: str) -> None:
    found = gate(changed(SOUND, **{field: None}), name)
    assert (found.outcome, found.value, found.word) == (Outcome.PASS, None, "")


def test_without_a_verified_size_no_response_is_of_the_wrong_size() -> None:
    found = gate(SOUND, "response-size", expected=replace(EXPECTED, response_bytes=None))
    assert (found.outcome, found.value) == (Outcome.PASS, None)


def test_a_wrong_answer_under_load_keeps_the_sample_out() -> None:
    wrong = CheckResult(check="body", rule="json.1", outcome=Outcome.FAIL)
    seen = gate(changed(SOUND, probe_failures=(wrong,)), "probe")
    assert (seen.outcome, seen.value, seen.word) == (Outcome.FAIL, 1.0, "wrong answers")


def test_connections_are_asked_for_in_multiples_of_the_generators_threads() -> None:
    one = changed(SOUND, level=Closed(connections=65), generator_threads=2, connections=64)
    assert gate(one, "connections").outcome is Outcome.PASS
    assert gate(one, "connections").threshold == 64.0


def test_responses_under_way_at_the_end_are_no_wrong_size() -> None:
    slow = changed(SOUND, requests=1_000, bytes=158_000)
    assert gate(slow, "response-size").outcome is Outcome.PASS
    assert gate(changed(slow, bytes=170_000), "response-size").outcome is Outcome.FAIL


def test_littles_law_is_not_judged_by_latency_that_wrk_corrected() -> None:
    """Measured here: 1.36 million samples of a million requests make a mean that belongs to no request."""
    corrected = changed(SOUND, latency=latency(0.0067, 1_360_000))
    assert gate(corrected, "littles-law").value is None


def test_littles_law_allows_for_the_requests_under_way_at_the_end_of_a_short_sample() -> None:
    slow = changed(SOUND, requests=120, bytes=18_000, duration=2.0, asked_duration=2.0)
    short_of_one_round = changed(slow, latency=latency(0.8, 120))  # 48 of 64 in flight on average
    assert gate(short_of_one_round, "littles-law").outcome is Outcome.PASS
    assert gate(changed(slow, latency=latency(0.3, 120)), "littles-law").outcome is Outcome.WARN


def test_littles_law_is_not_judged_for_pipelined_runs() -> None:
    assert gate(changed(SOUND, level=Closed(connections=64, depth=16)), "littles-law").value is None


def test_a_server_that_idles_at_one_answer_a_connection_every_40_ms_has_the_delayed_ack_signature() -> None:
    """1,460 requests/s on 64 connections, as a JVM server without TCP_NODELAY showed."""
    one = changed(SOUND, requests=14_673, bytes=14_673 * 150, cpu_seconds=1.2)
    found = gate(one, "delayed-ack")
    assert (found.outcome, found.word) == (Outcome.WARN, "delayed ACK")
    assert found.value == pytest.approx(-0.0875, abs=1e-3)
    assert gate(changed(one, cpu_seconds=15.0), "delayed-ack").outcome is Outcome.PASS
    half_of_its_cpus = LIMITS.delayed_ack_idle * one.duration * EXPECTED.server_cpus
    assert gate(changed(one, cpu_seconds=half_of_its_cpus), "delayed-ack").outcome is Outcome.PASS
    assert gate(changed(one, cpu_seconds=0.99 * half_of_its_cpus), "delayed-ack").outcome is Outcome.WARN
    assert gate(changed(one, wait_share=0.6), "delayed-ack").outcome is Outcome.PASS


def test_the_profile_decides_which_gates_keep_a_sample_out() -> None:
    strict = GateThresholds(wait_share_fails=True, failing=("generator-bound",))
    assert gate(changed(SOUND, wait_share=0.2), "contended", strict).outcome is Outcome.FAIL
    assert gate(changed(SOUND, generator_cpu_seconds=10.0), "generator-bound", strict).outcome is Outcome.FAIL
    assert gate(changed(SOUND, errors=1), "errors", strict).outcome is Outcome.WARN


def test_an_unknown_gate_name_in_a_profile_is_an_error() -> None:
    with pytest.raises(ValueError, match="generator-bond"):
        GateThresholds.model_validate({"failing": ["generator-bond"]})


def client(name: str, **values: float) -> ClientUse:
    """A client's sound part of a load of ten seconds."""
    words: dict[str, Any] = {
        "client": name, "connections": 32, "threads": 2, "requests": 500_000, "bytes": 75_000_000, "duration": 10.0,
        "cpu_seconds": 8.0, "wait_seconds": 0.1, "begun": 0.0, "begun_within": 0.001,
    }  # fmt: skip
    return ClientUse.model_validate(words | values)


@pytest.mark.parametrize(
    ("second", "gate", "word", "value"),
    [
        ({"cpu_seconds": 19.0}, "generator-bound", "generator-bound", 0.95),
        ({"begun": 1.0}, "clients-apart", "clients apart", 8.998 / 11),
        ({"duration": 8.0}, "clients-apart", "clients apart", 7.998 / 10),
        ({"begun_within": 0.4, "begun": 0.4}, "clients-apart", "clients apart", 9.199 / 10.4),
        ({"wait_seconds": 2.0}, "client-lag", "client lags", 0.2),
    ],
)
def test_each_client_of_several_is_judged_by_itself(
    second: dict[str, float], gate: str, word: str, value: float
) -> None:
    sound = SOUND.model_copy(update={"clients": (client("c1"), client("c2"))})
    assert all(found.outcome is Outcome.PASS for found in judge(sound, EXPECTED, LIMITS))
    bad = SOUND.model_copy(update={"clients": (client("c1"), client("c2", **second))})
    found = next(each for each in judge(bad, EXPECTED, LIMITS) if each.name == gate)
    assert (found.outcome, found.word) == (Outcome.WARN, word)
    assert found.value == pytest.approx(value)


def test_answers_that_fill_the_links_to_the_clients_are_called_that() -> None:
    found = judge(SOUND.model_copy(update={"link_share": 0.95}), EXPECTED, LIMITS)
    assert [(gate.name, gate.value) for gate in found if gate.word == "link full"] == [("link", 0.95)]


@pytest.mark.parametrize(("threads", "duration", "share"), [(1, 10.0, 0.7), (2, 10.0, 0.35), (1, 0.875, 8.0)])
def test_a_generator_s_share_is_of_all_its_threads_however_short_the_load(
    threads: int, duration: float, share: float
) -> None:
    one = changed(SOUND, generator_cpu_seconds=7.0, generator_threads=threads, duration=duration)
    assert gate(one, "generator-bound").value == pytest.approx(share)


def test_without_a_duration_a_generator_s_share_is_not_known() -> None:
    assert gate(changed(SOUND, duration=0.0), "generator-bound").value is None


def test_as_many_unasked_responses_as_are_allowed_are_no_breach() -> None:
    limit = 1 + LIMITS.unasked_tolerance
    assert gate(changed(SOUND, responses_per_request=limit), "unasked").outcome is Outcome.PASS
