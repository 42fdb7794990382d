"""What stands exactly at a gate's limit passes, what is a hair beyond does not, and each says its value and limit."""

from typing import Any

import pytest

from harness.measure import gates, rate_gates
from harness.measure.gates import Expected, asked_connections, overlap
from harness.plan.profile import GateThresholds, LatencyRules
from harness.records.models import CheckResult, Errors, Gate, Latency, Closed, Outcome, RateSample, Sample
from harness.tests.measure.observed import USE
from harness.tests.measure.test_gates import SOUND, changed, client
from harness.tests.measure.test_rate_gates import gate as rate_gate
from harness.tests.measure.test_rate_gates import latency as rate_latency
from harness.tests.measure.test_rate_gates import sample as rate_sample

LIMITS = GateThresholds()
TEN = changed(SOUND, duration=10.0, asked_duration=10.0, generator_threads=1)
HOUR = changed(TEN, duration=100.0, asked_duration=100.0)


def gate(one: Sample, name: str, expected: Expected | None = None, limits: GateThresholds = LIMITS) -> Gate:
    known = expected or Expected(response_bytes=(149.0, 151.0), server_cpus=2)
    return next(each for each in gates.judge(one, known, limits) if each.name == name)


@pytest.mark.parametrize(
    ("name", "at", "beyond", "threshold"),
    [
        ("errors", {"errors": 0}, {"errors": 1}, 0.0),
        ("connections", {"connections": 64}, {"connections": 63}, 64.0),
        ("overrun", {"duration": 10.5}, {"duration": 10.51}, 0.5),
        ("overrun", {"duration": 9.5}, {"duration": 9.49}, 0.5),
        ("generator-bound", {"generator_cpu_seconds": 8.5}, {"generator_cpu_seconds": 8.51}, 0.85),
        ("contended", {"wait_share": 0.05}, {"wait_share": 0.0501}, 0.05),
        ("throttled", {"throttled_seconds": 0.1}, {"throttled_seconds": 0.101}, 0.01),
        ("steal", {"steal_share": 0.02}, {"steal_share": 0.0201}, 0.02),
        ("idle-servers", {"idle_cpu_share": 0.005}, {"idle_cpu_share": 0.00501}, 0.005),
        ("unasked", {"responses_per_request": 1.05}, {"responses_per_request": 1.0501}, 1.05),
        ("response-size", {"bytes": 146_030_000}, {"bytes": 146_010_000}, 0.02),
        ("link", {"link_share": 0.9}, {"link_share": 0.9001}, 0.9),
    ],
)
def test_the_limit_itself_passes(name: str, at: dict[str, Any], beyond: dict[str, Any], threshold: float) -> None:
    within, over = gate(changed(TEN, **at), name), gate(changed(TEN, **beyond), name)
    assert (within.outcome, within.word) == (Outcome.PASS, "")
    assert over.outcome is not Outcome.PASS
    assert over.word
    assert within.threshold == over.threshold == pytest.approx(threshold)
    assert within.value is not None


def test_what_every_gate_saw_of_a_sound_sample_stands_in_it() -> None:
    found = {each.name: (each.value, each.threshold) for each in gates.judge(TEN, EXPECTED, LIMITS)}
    in_flight = TEN.latency.mean * 100_000 if TEN.latency else 0.0
    assert found == {
        "errors": (0.0, 0.0),
        "connections": (64.0, 64.0),
        "response-size": (0.0, 0.02),
        "unasked": (0.9999, 1.05),
        "overrun": (0.0, 0.5),
        "restarted": (0.0, 0.0),
        "generator-bound": (0.7, 0.85),
        "contended": (0.01, 0.05),
        "throttled": (0.0, 0.01),
        "steal": (0.0, 0.02),
        "littles-law": (pytest.approx(in_flight / 64 - 1), pytest.approx(0.1 + in_flight / 1_000_000)),
        "delayed-ack": (pytest.approx(100_000 / 1600 - 1), 0.15),
        "idle-servers": (0.001, 0.005),
        "probe": (0.0, 0.0),
    }


EXPECTED = Expected(response_bytes=(149.0, 151.0), server_cpus=2)


@pytest.mark.parametrize(("duration", "outcome"), [(105.0, Outcome.PASS), (105.1, Outcome.FAIL)])
def test_a_long_sample_may_overrun_by_a_share_of_its_time(duration: float, outcome: Outcome) -> None:
    found = gate(changed(HOUR, duration=duration), "overrun")
    assert (found.outcome, found.threshold) == (outcome, 5.0)


def test_responses_under_way_are_allowed_for_each_connection_and_place_in_its_pipeline() -> None:
    """64 connections of sixteen in 10,240 requests: a tenth."""
    deep = changed(TEN, level=Closed(connections=64, depth=16), requests=10_240, latency=None)
    found = gate(changed(deep, bytes=round(10_240 * 151 * 1.119)), "response-size")
    assert found.outcome is Outcome.PASS
    assert found.threshold == pytest.approx(0.12)
    assert gate(changed(deep, bytes=round(10_240 * 151 * 1.121)), "response-size").outcome is Outcome.FAIL
    short = gate(changed(deep, bytes=round(10_240 * 149 * 0.95)), "response-size")
    assert (short.outcome, short.threshold) == (Outcome.FAIL, 0.02)
    assert short.value == pytest.approx(-0.05, abs=1e-4)


@pytest.mark.parametrize("change", [{"requests": 0}, {"requests": 0, "bytes": 0}])
def test_a_sample_without_a_request_has_no_size(change: dict[str, Any]) -> None:
    found = gate(changed(TEN, **change), "response-size")
    assert (found.outcome, found.value, found.threshold) == (Outcome.PASS, None, 0.02)
    one = changed(TEN, requests=1, bytes=150)
    assert gate(one, "response-size").value == 0.0


@pytest.mark.parametrize(
    ("concurrency", "threads", "asked"), [(64, 1, 64), (65, 2, 64), (7, 0, 7), (7, 4, 4), (3, 1, 3), (5, 5, 5)]
)
def test_connections_are_cut_to_whole_ones_of_each_thread(concurrency: int, threads: int, asked: int) -> None:
    one = changed(TEN, level=Closed(connections=concurrency), generator_threads=threads)
    assert asked_connections(one) == asked


@pytest.mark.parametrize(
    "change", [{"duration": 0.0}, {"requests": 0}, {"generator_threads": 200}, {"level": Closed(connections=0)}]
)
def test_little_s_law_is_not_judged_where_it_has_no_figures(change: dict[str, Any]) -> None:
    found = gate(changed(TEN, **change), "littles-law")
    assert (found.outcome, found.value, found.threshold) == (Outcome.PASS, None, 0.1)


def distribution(count: int, mean: float = 64 / 100_000) -> Latency:
    return Latency(
        basis="closed-loop, wrk-corrected", mean=mean, stdev=0, min=0, max=1, percentiles={}, histogram=((mean, count),)
    )


@pytest.mark.parametrize(
    ("count", "judged"), [(1_010_000, True), (1_010_001, False), (990_000, True), (989_999, False)]
)
def test_little_s_law_is_judged_where_as_many_latencies_were_seen_as_requests(count: int, judged: bool) -> None:
    found = gate(changed(TEN, latency=distribution(count)), "littles-law")
    assert (found.value is not None) is judged


def test_little_s_law_is_judged_for_a_single_request_and_of_a_fraction_of_a_second() -> None:
    one = changed(
        TEN, requests=1, duration=0.5, asked_duration=0.5, latency=distribution(1, 0.5), level=Closed(connections=1)
    )
    found = gate(one, "littles-law")
    assert found.value == 0.0
    assert found.threshold == pytest.approx(1.1)


@pytest.mark.parametrize("change", [{"duration": 0.0}, {"generator_threads": 200}])
def test_a_delayed_ack_is_not_looked_for_where_there_is_no_rate(change: dict[str, Any]) -> None:
    found = gate(changed(TEN, **change), "delayed-ack")
    assert (found.outcome, found.value, found.threshold) == (Outcome.PASS, None, 0.15)
    unknown = Expected(response_bytes=None, server_cpus=0)
    assert gate(TEN, "delayed-ack", unknown).value is None


NAGLE = changed(TEN, requests=16_000, bytes=16_000 * 150, cpu_seconds=1.0, wait_share=0.01)


@pytest.mark.parametrize(
    ("change", "value", "outcome"),
    [
        ({}, 0.0, Outcome.WARN),
        ({"requests": 18_399}, 0.1499, Outcome.WARN),
        ({"requests": 18_410}, 0.1506, Outcome.PASS),
        ({"requests": 13_601}, -0.1499, Outcome.WARN),
        ({"requests": 13_590}, -0.1506, Outcome.PASS),
        ({"wait_share": 0.05}, 0.0, Outcome.WARN),
        ({"wait_share": 0.051}, 0.0, Outcome.PASS),  # it waits for a CPU
        ({"wait_share": None}, 0.0, Outcome.WARN),
        ({"level": Closed(connections=4, depth=16)}, 0.0, Outcome.WARN),
        ({"duration": 1.0, "cpu_seconds": 0.99, "requests": 1_600}, 0.0, Outcome.WARN),  # of two CPUs' seconds
        ({"duration": 1.0, "cpu_seconds": 1.01, "requests": 1_600}, 0.0, Outcome.PASS),
    ],
)
def test_the_signature_of_a_delayed_ack_is_a_rate_and_idle_cpus(
    change: dict[str, Any], value: float, outcome: Outcome
) -> None:
    found = gate(changed(NAGLE, **change), "delayed-ack")
    assert found.outcome is outcome
    assert found.value == pytest.approx(value, abs=1e-3)


def test_a_delayed_ack_is_looked_for_on_a_single_connection_of_a_single_cpu() -> None:
    one = changed(NAGLE, level=Closed(connections=1), requests=250)
    assert gate(one, "delayed-ack", Expected(response_bytes=None, server_cpus=1)).outcome is Outcome.WARN


def test_each_wrong_answer_that_was_seen_counts_and_a_warning_is_none() -> None:
    wrong, odd = (CheckResult(check="body", rule="json.1", outcome=outcome) for outcome in (Outcome.FAIL, Outcome.WARN))
    found = gate(changed(TEN, probe_failures=(wrong, odd, wrong)), "probe")
    assert (found.outcome, found.value, found.threshold) == (Outcome.FAIL, 2.0, 0.0)
    assert gate(changed(TEN, probe_failures=(odd,)), "probe").outcome is Outcome.PASS


def test_wrong_answers_keep_a_sample_out_whatever_the_profile_says() -> None:
    wrong = CheckResult(check="body", rule="json.1", outcome=Outcome.FAIL)
    lenient = GateThresholds(failing=())
    one = changed(TEN, probe_failures=(wrong,), errors=5, wait_share=0.9)
    found = {each.name: each.outcome for each in gates.judge(one, EXPECTED, lenient)}
    assert (found["probe"], found["errors"], found["contended"]) == (Outcome.FAIL, Outcome.WARN, Outcome.WARN)


def test_gates_of_loads_from_elsewhere_stand_before_those_of_the_server() -> None:
    two = (client("one"), client("two"))
    names = [each.name for each in gates.judge(changed(TEN, clients=two, link_share=0.1), EXPECTED, LIMITS)]
    assert names[6:11] == ["generator-bound", "clients-apart", "client-lag", "link", "contended"]


@pytest.mark.parametrize(
    ("clients", "share"),
    [
        ((client("one"),), None),
        ((client("one", begun_within=0.0), client("two", begun_within=0.0)), 1.0),
        ((client("one", begun_within=0.0), client("two", begun=5.0, begun_within=0.0)), 5 / 15),
        ((client("one", begun_within=0.5), client("two", begun=5.0, begun_within=0.0)), 4.5 / 15),
        ((client("one", begun_within=0.0), client("two", begun=50.0, begun_within=0.0)), 0.0),
        ((client("one", duration=0.0, begun_within=0.0), client("two", duration=0.0, begun_within=0.0)), None),
        ((client("one", duration=0.5, begun_within=0.0), client("two", duration=0.5, begun_within=0.0)), 1.0),
    ],
)
def test_clients_load_together_from_the_last_beginning_to_the_first_end(clients: Any, share: float | None) -> None:
    assert overlap(clients) == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("second", "name", "value", "threshold", "outcome"),
    [
        ({"begun": 0.5, "begun_within": 0.0}, "clients-apart", 9.499 / 10.5, 0.95, Outcome.WARN),
        ({"begun": 0.2, "begun_within": 0.0}, "clients-apart", 9.799 / 10.2, 0.95, Outcome.PASS),
        ({"wait_seconds": 1.0, "cpu_seconds": 9.0}, "client-lag", 0.1, 0.1, Outcome.PASS),
        ({"wait_seconds": 1.1, "cpu_seconds": 9.0}, "client-lag", 1.1 / 10.1, 0.1, Outcome.WARN),
        ({"wait_seconds": None}, "client-lag", 0.1 / 8.1, 0.1, Outcome.PASS),
        ({"wait_seconds": 0.0, "cpu_seconds": 0.0}, "client-lag", 0.1 / 8.1, 0.1, Outcome.PASS),
        ({"wait_seconds": 0.3, "cpu_seconds": 0.1}, "client-lag", 0.75, 0.1, Outcome.WARN),
        ({"cpu_seconds": 17.0}, "generator-bound", 0.85, 0.85, Outcome.PASS),
        ({"cpu_seconds": 17.1}, "generator-bound", 0.855, 0.85, Outcome.WARN),
        ({"threads": 0, "cpu_seconds": 17.1}, "generator-bound", 0.4, 0.85, Outcome.PASS),
        ({"duration": 0.5, "threads": 1, "cpu_seconds": 0.45}, "generator-bound", 0.9, 0.85, Outcome.WARN),
    ],
)
def test_the_worst_of_the_clients_counts(
    second: dict[str, Any], name: str, value: float, threshold: float, outcome: Outcome
) -> None:
    one = changed(TEN, clients=(client("one"), client("two", **second)))
    found = gate(one, name)
    assert (found.threshold, found.outcome) == (threshold, outcome)
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "at", "beyond", "value", "threshold"),
    [
        ("errors", {}, {"errors": Errors(read=1)}, 0.0, 0.0),
        ("unfinished", {"unfinished": 20, "errors": Errors(timeout=20)}, {"unfinished": 21}, 0.01, 0.01),
        ("restarted", {}, {"restarted": True}, 0.0, 0.0),
        ("steal", {"steal_share": 0.02}, {"steal_share": 0.0201}, 0.02, 0.02),
        (
            "contended",
            {"server": USE.model_copy(update={"wait_share": 0.05})},
            {"server": USE.model_copy(update={"wait_share": 0.051})},
            0.05,
            0.05,
        ),
        ("response-size", {"bytes": 294_001}, {"bytes": 293_900}, -0.0199967, 0.02),
        ("response-size", {"bytes": 315_599}, {"bytes": 315_700}, 0.0519967, 0.052),
    ],
)
def test_the_limit_of_a_load_at_a_rate_passes_too(
    name: str, at: dict[str, Any], beyond: dict[str, Any], value: float, threshold: float
) -> None:
    within, over = (judged(rate_sample(**change), name) for change in (at, beyond))
    assert (within.outcome, within.word) == (Outcome.PASS, "")
    assert within.value == pytest.approx(value, abs=1e-6)
    assert within.threshold == pytest.approx(threshold)
    assert over.outcome is (Outcome.FAIL if name in rate_gates.FAILING else Outcome.WARN)
    words = {"unfinished": "unfinished requests", "response-size": "response size"}
    assert over.word == words.get(name, name)


def judged(sample: RateSample, name: str) -> Gate:
    rules = LatencyRules(unfinished_share=0.01)
    found = rate_gates.judge(sample, rules, LIMITS, (150.0, 150.0))
    return next(gate for gate in found if gate.name == name)


def test_the_gates_of_a_load_at_a_rate_have_an_order_and_its_unknowns_pass() -> None:
    bare = rate_sample(lag_p99=None, latency=None, achieved_rate=1000.0)
    found = rate_gates.judge(bare, LatencyRules(), LIMITS)
    assert [(gate.name, gate.outcome, gate.value) for gate in found] == [
        ("errors", Outcome.PASS, 0.0),
        ("achieved-rate", Outcome.PASS, 0.0),
        ("unfinished", Outcome.PASS, 0.0),
        ("generator-lag", Outcome.PASS, None),
        ("restarted", Outcome.PASS, 0.0),
        ("response-size", Outcome.PASS, None),
        ("contended", Outcome.PASS, None),
        ("steal", Outcome.PASS, None),
    ]
    assert [gate.threshold for gate in found] == [0.0, 0.01, 0.0, 0.2, 0.0, 0.02, 0.05, 0.02]


def test_what_the_median_leaves_under_way_is_no_shortfall() -> None:
    """A thousand a second of a millisecond: one under way on average, 5.1 at most, in two thousand."""
    assert rate_gate(rate_sample(), "achieved-rate").threshold == pytest.approx(0.01 + 5.1 / 2000)
    unknown = rate_sample(latency=None)
    assert rate_gate(unknown, "achieved-rate").threshold == 0.01
    no_median = rate_latency(0.01).model_copy(update={"percentiles": {"99": 0.01}})
    assert rate_gate(rate_sample(latency=no_median), "achieved-rate").threshold == pytest.approx(0.01 + 1 / 2000)


@pytest.mark.parametrize(("change", "value"), [({"duration": 0.5}, 0.75), ({"due": 1, "duration": 0.001}, 0.0)])
def test_a_shortfall_is_of_the_requests_that_were_due(change: dict[str, Any], value: float) -> None:
    assert rate_gate(rate_sample(**change), "achieved-rate").value == pytest.approx(value)


def test_without_a_response_there_is_no_size_and_one_is_enough() -> None:
    assert rate_gate(rate_sample(achieved_rate=0.0), "response-size").value is None
    one = rate_sample(achieved_rate=0.5, bytes=150)
    assert (rate_gate(one, "response-size").value, rate_gate(one, "response-size").outcome) == (0.0, Outcome.PASS)


@pytest.mark.parametrize(
    ("lag", "latency", "value"),
    [
        (0.001, rate_latency(0.0), None),
        (0.001, None, None),
        (0.002, rate_latency(0.010), 0.2),
        (0.0, rate_latency(1.0), 0.0),
    ],
)
def test_a_lag_is_a_share_of_the_latency_where_both_are_known(
    lag: float, latency: Latency | None, value: float | None
) -> None:
    found = rate_gate(rate_sample(lag_p99=lag, latency=latency), "generator-lag")
    assert (found.value, found.threshold, found.outcome) == (value, 0.2, Outcome.PASS)


@pytest.mark.parametrize("name", ["errors", "achieved-rate", "unfinished"])
def test_a_server_that_does_not_keep_up_is_told_by_three_gates_that_failed(name: str) -> None:
    failed = Gate(name=name, outcome=Outcome.FAIL, value=1.0, threshold=0.0, word=name)
    found = rate_sample().model_copy(update={"gates": (failed,)})
    assert rate_gates.saturated(found)
    assert not rate_gates.measured_the_generator(found)
    warned = failed.model_copy(update={"outcome": Outcome.WARN})
    assert not rate_gates.saturated(found.model_copy(update={"gates": (warned,)}))


def test_a_generator_that_was_late_says_nothing_against_a_server() -> None:
    lag = Gate(name="generator-lag", outcome=Outcome.FAIL, value=1.0, threshold=0.0, word="generator lag")
    found = rate_sample().model_copy(update={"gates": (lag,)})
    assert (rate_gates.measured_the_generator(found), rate_gates.saturated(found)) == (True, False)
    warned = found.model_copy(update={"gates": (lag.model_copy(update={"outcome": Outcome.WARN}),)})
    assert rate_gates.measured_the_generator(warned)  # by few requests only: still no miss of the server's
