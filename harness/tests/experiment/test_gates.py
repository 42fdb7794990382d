"""Every gate at its limit: just within it passes, just beyond it has its flag, and what is unknown passes."""

from collections.abc import Mapping

import pytest
from scipy.stats import poisson

from harness.experiment.gates import Expected, by_chance, judge, overlap
from harness.plan import profile as profiles
from harness.records.models import (
    CheckResult,
    ClientUse,
    Closed,
    Errors,
    Evidence,
    Gate,
    Latency,
    Open,
    Outcome,
    Scenario,
    ServerUse,
    Trial,
)
from harness.tests.doubles import runs

PROFILE = profiles.load("quick")
USE = ServerUse(cpu_seconds=18.0, rss_peak=1e8, wait_share=0.0, throttled_seconds=0.0)
BAD = CheckResult(check="row", rule="db.1", outcome=Outcome.FAIL)
ODD = CheckResult(check="date", rule="http.4", outcome=Outcome.WARN)
WARNED, WRONG = (Evidence(answers=1, of=2, objections=found) for found in ((ODD,), (ODD, BAD)))


def latency(mean: float) -> Latency:
    points = {"50": mean, "99": 2 * mean}
    return Latency(basis="closed-loop, service time", mean=mean, stdev=0.0, min=mean, max=mean, percentiles=points)


# Ten seconds of 64 connections that wait 1 ms each: 64,000 requests a second.
SOUND = runs.trial("a", 64_000.0, cpu=28e-6).model_copy(
    update={
        "duration": 10.0,
        "asked_duration": 10.0,
        "requests": 640_000,
        "bytes": 640_000 * 150,
        "latency": latency(1e-3),
        "server": USE,
        "generator_cpu_seconds": 10.0,
        "generator_threads": 2,
        "evidence": Evidence(answers=400, of=640_000),
        "connections": 64,
        "steal_share": 0.0,
        "responses_per_request": 1.0,
        "idle_cpu_share": 0.0,
    }
)
# Ten seconds of 1,000 requests a second.
AT_RATE = SOUND.model_copy(
    update={
        "load": Open(rate=1_000.0, connections=64),
        "requests": 10_000,
        "bytes": 10_000 * 150,
        "due": 10_000,
        "answered": 10_000,
        "unfinished": 0,
        "late": 0,
        "lag_p99": 20e-6,
        "sent_late": 0,
        "connections": None,
    }
)
CLIENT = ClientUse(
    client="c1",
    connections=32,
    threads=2,
    requests=1,
    bytes=1,
    duration=10.0,
    cpu_seconds=5.0,
    wait_seconds=0.1,
    begun=0.0,
    begun_within=0.01,
)


def two(**changes: object) -> tuple[ClientUse, ClientUse]:
    return CLIENT, CLIENT.model_copy(update=changes)


def expected(**changes: object) -> Expected:
    made = {"open_loop": PROFILE.open_loop, "server_cpus": 2, "response_bytes": (149.0, 151.0), **changes}
    return Expected(**made)  # type: ignore[arg-type]


def gates_of(trial: Trial, **changes: object) -> Mapping[str, Gate]:
    return {gate.name: gate for gate in judge(trial, expected(**changes))}


def use(**changes: object) -> ServerUse:
    return USE.model_copy(update=changes)


@pytest.mark.parametrize("trial", [SOUND, AT_RATE], ids=["closed", "at a rate"])
def test_a_sound_trial_passes_every_gate(trial: Trial) -> None:
    assert {gate.outcome for gate in judge(trial, expected())} == {Outcome.PASS}


def test_what_is_unknown_passes_with_no_value() -> None:
    unread = ("latency", "connections", "steal_share", "responses_per_request", "idle_cpu_share", "evidence")
    server = use(wait_share=None, throttled_seconds=None)
    found = gates_of(SOUND.model_copy(update={**dict.fromkeys(unread), "server": server}), response_bytes=None)
    assert {gate.outcome for gate in found.values()} == {Outcome.PASS}
    unknown = {"connections", "steal", "unasked", "idle-servers", "contended", "throttled", "littles-law"}
    assert {found[name].value for name in unknown} == {None}


FAILING, WARNING = Outcome.FAIL, Outcome.WARN
IDLE = use(cpu_seconds=1.0)
DEEP = {"load": Closed(connections=64, depth=16)}


@pytest.mark.parametrize(
    ("gate", "within", "beyond", "outcome"),
    [
        ("errors", {}, {"errors": Errors(timeout=1)}, FAILING),
        ("connections", {"connections": 64}, {"connections": 63}, FAILING),
        ("response-size", {"bytes": 640_000 * 153}, {"bytes": 640_000 * 155}, FAILING),
        ("response-size", {"bytes": 640_000 * 147}, {"bytes": 640_000 * 145}, FAILING),
        ("response-size", {"requests": 1, "bytes": 147}, {"requests": 1, "bytes": 145}, FAILING),
        ("response-size", {"requests": 0, "bytes": 0}, {"requests": 1, "bytes": 0}, FAILING),
        ("unasked", {"responses_per_request": 1.049}, {"responses_per_request": 1.051}, FAILING),
        ("overrun", {"duration": 10.5}, {"duration": 10.51}, FAILING),
        ("overrun", {"duration": 9.5}, {"duration": 9.49}, FAILING),
        ("restarted", {}, {"restarted": True}, FAILING),
        ("wrong-answers", {"evidence": WARNED}, {"evidence": WRONG}, FAILING),
        ("generator-bound", {"generator_cpu_seconds": 17.0}, {"generator_cpu_seconds": 17.01}, WARNING),
        ("contended", {"server": use(wait_share=0.05)}, {"server": use(wait_share=0.051)}, WARNING),
        ("throttled", {"server": use(throttled_seconds=0.1)}, {"server": use(throttled_seconds=0.101)}, WARNING),
        ("steal", {"steal_share": 0.02}, {"steal_share": 0.021}, WARNING),
        ("idle-servers", {"idle_cpu_share": 0.005}, {"idle_cpu_share": 0.0051}, WARNING),
        ("littles-law", {"latency": latency(1.099e-3)}, {"latency": latency(1.101e-3)}, WARNING),
        ("littles-law", {"latency": latency(0.901e-3)}, {"latency": latency(0.899e-3)}, WARNING),
        ("delayed-ack", {"requests": 19_000, "server": IDLE}, {"requests": 16_000, "server": IDLE}, WARNING),
        ("delayed-ack", {"requests": 16_000}, {"requests": 16_000, "server": IDLE}, WARNING),
        ("delayed-ack", {"requests": 256_000} | DEEP, {"requests": 256_000, "server": IDLE} | DEEP, WARNING),
        ("link", {"link_share": 0.9}, {"link_share": 0.91}, WARNING),
        ("clients-apart", {"clients": two()}, {"clients": two(begun=0.6)}, WARNING),
        ("client-lag", {"clients": two()}, {"clients": two(wait_seconds=0.6)}, WARNING),
    ],
)
def test_of_a_closed_loop(gate: str, within: dict[str, object], beyond: dict[str, object], outcome: Outcome) -> None:
    assert gates_of(SOUND.model_copy(update=within))[gate].outcome is Outcome.PASS
    found = gates_of(SOUND.model_copy(update=beyond))[gate]
    assert found.outcome is outcome
    assert found.word
    assert SOUND.model_copy(update={**beyond, "gates": (found,)}).rankable is (outcome is WARNING)


def test_a_service_of_one_s_own_may_close_connections_behind_its_answers() -> None:
    few = SOUND.model_copy(update={"connections": 3})
    assert gates_of(few)["connections"].outcome is FAILING
    assert "connections" not in gates_of(few, may_close=True)


@pytest.mark.parametrize(
    ("gate", "within", "beyond", "outcome"),
    [
        (
            "errors",
            {"errors": Errors(timeout=2), "unfinished": 2},
            {"errors": Errors(timeout=3), "unfinished": 2},
            FAILING,
        ),
        ("achieved-rate", {"requests": 9_895}, {"requests": 9_880}, FAILING),
        ("achieved-rate", {"latency": latency(50e-3), "requests": 9_840}, {"requests": 9_840}, FAILING),  # 50 under way
        ("achieved-rate", {}, {"due": 0}, FAILING),
        ("unfinished", {}, {"unfinished": 1}, FAILING),
        ("generator-lag", {"lag_p99": 0.4e-3, "sent_late": 1_000}, {"lag_p99": 0.41e-3, "sent_late": 1_000}, FAILING),
        (
            "generator-lag",
            {"lag_p99": 90e-6, "latency": latency(1e-5), "sent_late": 1_000},
            {"lag_p99": 1e-3, "sent_late": 50},
            WARNING,
        ),
    ],
)
def test_of_a_load_at_a_rate(gate: str, within: dict[str, object], beyond: dict[str, object], outcome: Outcome) -> None:
    assert gates_of(AT_RATE.model_copy(update=within))[gate].outcome is Outcome.PASS
    assert gates_of(AT_RATE.model_copy(update=beyond))[gate].outcome is outcome


def test_a_witness_agrees_within_the_noise_of_such_short_loads() -> None:
    ours = SOUND.model_copy(update={"duration": 2.0})
    wrk = SOUND.model_copy(update={"generator": "wrk", "duration": 1.0, "purpose": "witness"})
    for cost, outcome in ((28e-6, Outcome.PASS), (50e-6, Outcome.PASS), (60e-6, Outcome.WARN), (10e-6, Outcome.WARN)):
        found = gates_of(wrk.model_copy(update={"cpu_per_request": cost}), beside=ours)["witness"]
        assert found.outcome is outcome, cost
    assert "witness" not in gates_of(SOUND)


def test_wrk_opens_as_many_connections_as_its_threads_share_evenly() -> None:
    odd = SOUND.model_copy(update={"load": Closed(connections=65), "connections": 64})
    assert gates_of(odd.model_copy(update={"generator": "wrk"}))["connections"].outcome is Outcome.PASS
    assert gates_of(odd)["connections"].outcome is Outcome.FAIL


def test_a_load_has_no_gate_of_another_kind() -> None:
    arrivals = AT_RATE.model_copy(update={"load": Scenario(factor=8.0, connections=64)})
    of_a_closed_loop = {"connections", "overrun", "littles-law", "delayed-ack", "response-size", "unasked"}
    assert not set(gates_of(arrivals)) & of_a_closed_loop
    assert not set(gates_of(SOUND)) & {"achieved-rate", "unfinished", "generator-lag"}


def test_clients_overlap_by_what_is_certain() -> None:
    assert overlap((CLIENT,)) is None
    assert overlap(two(begun=5.0)) == pytest.approx((10 - 0.02 - 5.0) / 15, abs=1e-3)


@pytest.mark.parametrize("mean", [0.1, 1.0, 20.0, 1_000.0])
def test_a_count_is_beyond_chance_once_in_a_thousand(mean: float) -> None:
    assert poisson.sf(by_chance(mean), mean) < 2e-3
