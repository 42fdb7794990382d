"""Every validity check with values on both sides of its threshold, and with unknown values."""

from typing import Any

import pytest
from scipy.special import pdtrc

from harness.experiment.validity import ValidityContext, check_validity, poisson_bound
from harness.plan import profile as profiles
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.records.measurements import ClientUsage, ErrorCounts, Latency, ServerUsage
from harness.records.trial_record import Trial, TrialEvidence
from harness.records.verification_record import CheckResult, Outcome
from harness.tests.approve import approve
from harness.tests.doubles import runs

Changes = dict[str, Any]

PROFILE = profiles.load_profile("quick")
USE = ServerUsage(cpu_seconds=18.0, rss_peak=1e8, wait_share=0.0, throttled_seconds=0.0)
BAD = CheckResult(check="row", rule="db.1", outcome=Outcome.FAIL)
ODD = CheckResult(check="date", rule="http.4", outcome=Outcome.WARN)
WARNED, WRONG = (TrialEvidence(judged=1, received=2, objections=found) for found in ((ODD,), (ODD, BAD)))


def latency(mean: float) -> Latency:
    points = {"50": mean, "99": 2 * mean}
    return Latency(basis="closed-loop, service time", mean=mean, stdev=0.0, min=mean, max=mean, percentiles=points)


# A valid closed-loop trial: 64 connections x 1 ms latency for ten seconds, so 64,000 requests/s.
SOUND = runs.trial("a", 64_000.0, cpu_per_request=28e-6).model_copy(
    update={
        "duration": 10.0, "asked_duration": 10.0, "requests": 640_000, "bytes": 640_000 * 150,
        "latency": latency(1e-3), "server": USE, "generator_cpu_seconds": 10.0, "generator_threads": 2,
        "evidence": TrialEvidence(judged=400, received=640_000), "connections": 64, "steal_share": 0.0,
        "responses_per_request": 1.0, "idle_cpu_share": 0.0,
    }
)  # fmt: skip
# A valid open-loop trial: 1,000 requests/s for ten seconds.
AT_RATE = SOUND.model_copy(
    update={
        "load": OpenLoop(rate=1_000.0, connections=64), "requests": 10_000, "bytes": 10_000 * 150, "due": 10_000,
        "answered": 10_000, "unfinished": 0, "late": 0, "lag_p99": 20e-6, "sent_late": 0, "connections": None,
    }
)  # fmt: skip
CLIENT = ClientUsage(
    client="c1", connections=32, threads=2, requests=1, bytes=1, duration=10.0, cpu_seconds=5.0, wait_seconds=0.1,
    begun=0.0, begun_within=0.01,
)  # fmt: skip


def two(**changes: object) -> tuple[ClientUsage, ClientUsage]:
    return CLIENT, CLIENT.model_copy(update=changes)


SHORT = SOUND.model_copy(update={"duration": 2.0})
FREE = {"cpu_per_request": None}
IDLE: Changes = {"cpu_seconds": 1.0, "requests": 16_000}  # one response per connection every 40 ms
LATE: Changes = {"lag_p99": 1e-3}
WRK: Changes = {"generator": "wrk"}

# Validity check -> changes to the trial, the server's usage or the context. Values lie around the threshold.
CLOSED: dict[str, tuple[Changes, ...]] = {
    "errors": ({"errors": ErrorCounts(read=1)}, {"errors": ErrorCounts(timeout=1), "unfinished": 2}),
    "timeouts": ({"errors": ErrorCounts(timeout=1)}, {"errors": ErrorCounts(timeout=1), "unfinished": 2}),
    "connections": (
        {"connections": 63},
        {"connections": None},
        {"connections": 3, "may_close": True},
        {"load": ClosedLoop(connections=65)},
        {"load": ClosedLoop(connections=65)} | WRK,
        {"load": ClosedLoop(connections=65), "generator_threads": 0} | WRK,
    ),
    "response-size": (
        *({"bytes": 640_000 * size} for size in (151, 153, 155, 149, 147, 145)),
        # Here, the excess bytes may belong to unfinished responses.
        {"bytes": 640_000 * 155, "load": ClosedLoop(connections=640, depth=16)},
        *({"requests": 1, "bytes": size} for size in (147, 145, 0)),
        {"requests": 0, "bytes": 0},
        {"response_bytes": None},
    ),
    "unasked": tuple({"responses_per_request": share} for share in (1.05, 1.051, None)),
    "overrun": (
        *({"duration": seconds} for seconds in (10.5, 10.51, 9.5, 9.49)),
        *({"asked_duration": 20.0, "duration": seconds} for seconds in (21.0, 21.01, 19.0, 18.99)),
    ),
    "restarted": ({"restarted": True},),
    "wrong-answers": ({"evidence": WARNED}, {"evidence": WRONG}, {"evidence": None}),
    "generator-bound": (
        *({"generator_cpu_seconds": used} for used in (17.0, 17.01)),
        {"generator_threads": 0},
        {"clients": two(cpu_seconds=18.0)},
        {"clients": two(cpu_seconds=8.0, threads=0)},
    ),
    "clients-apart": (
        {"clients": (CLIENT,)},
        *({"clients": two(begun=begun)} for begun in (0.0, 0.45, 0.6, 5.0, 20.0)),
        {"clients": two(begun=0.25, begun_within=0.25, duration=9.0)},
        {"clients": two(begun=0.0, begun_within=0.0, duration=0.0)},
        {"clients": (CLIENT.model_copy(update={"duration": 0.0}),) * 2},
    ),
    "client-lag": (
        *({"clients": two(cpu_seconds=4.5, wait_seconds=wait)} for wait in (0.5, 0.51, None)),
        {"clients": two(cpu_seconds=0.0, wait_seconds=0.0)},
    ),
    "link": tuple({"link_share": share} for share in (0.9, 0.91)),
    "contended": tuple({"wait_share": share} for share in (0.05, 0.051, None)),
    "throttled": (
        *({"throttled_seconds": seconds} for seconds in (0.1, 0.101, None)),
        {"duration": 1.0, "throttled_seconds": 0.5},
        {"duration": 0.0, "throttled_seconds": 0.5},
    ),
    "steal": tuple({"steal_share": share} for share in (0.02, 0.021, None)),
    "littles-law": (
        *({"latency": latency(mean)} for mean in (1.099e-3, 1.101e-3, 0.901e-3, 0.899e-3)),
        {"load": ClosedLoop(connections=1)},
        *({"duration": seconds, "requests": 1_000} for seconds in (1.0, 0.0)),
        {"latency": None},
        {"requests": 0},
        {"load": ClosedLoop(connections=1)} | WRK,
    ),
    "delayed-ack": (
        *(IDLE | {"requests": requests} for requests in (18_390, 18_410, 13_610, 13_590)),
        *(IDLE | {"cpu_seconds": used} for used in (10.0, 9.99)),
        *(IDLE | {"cpu_seconds": used, "server_cpus": 1} for used in (5.0, 4.99)),
        *(IDLE | {"wait_share": share} for share in (0.05, 0.051, None)),
        IDLE | {"load": ClosedLoop(connections=64, depth=16), "requests": 256_000},
        IDLE | {"load": ClosedLoop(connections=1), "duration": 1.0, "requests": 25, "cpu_seconds": 0.1},
        IDLE | {"server_cpus": 0},
        IDLE | {"duration": 0.0},
        IDLE | {"load": ClosedLoop(connections=1)} | WRK,
    ),
    # Two CPUs provide 20 CPU seconds. The server used ``cpu_seconds``. The rest was idle or used by other programs.
    "saturated": (
        *({"cpu_seconds": used, "idle_seconds": idle} for used, idle in ((18.0, 1.0), (10.0, 3.3), (10.0, 3.4))),
        {"cpu_seconds": 9.9, "idle_seconds": 10.0},  # a lock permits only one thread at a time
        {"cpu_seconds": 0.5, "idle_seconds": 19.0},  # all threads are asleep
        {"cpu_seconds": 5.0, "idle_seconds": 5.0, "wait_share": 0.7},  # other programs occupied the CPUs
        *({"cpu_seconds": 5.0, "idle_seconds": 15.0, "throttled_seconds": waited} for waited in (0.09, 5.0)),
        *({"idle_seconds": idle, "cpu_seconds": 0.0} for idle in (0.0, None)),
        *({"idle_seconds": 19.0, "cpu_seconds": 1.0, "load": ClosedLoop(connections=n)} for n in (3, 4)),
        {"idle_seconds": 19.0, "cpu_seconds": 1.0, "test_type": "delay"},
    ),
    "idle-servers": tuple({"idle_cpu_share": share} for share in (0.005, 0.0051, None)),
    "witness": (
        *({"compared": SHORT, "duration": 1.0, "cpu_per_request": cost} for cost in (28e-6, 50e-6, 60e-6, 10e-6, 0.0)),
        *({"compared": SHORT, "duration": seconds, "cpu_per_request": 50e-6} for seconds in (0.5, 4.0)),
        {"compared": SHORT.model_copy(update={"duration": 0.5}), "cpu_per_request": 40e-6},
        {"compared": SHORT.model_copy(update=FREE)},
        {"compared": SHORT} | FREE,
    ),
}
RATES: dict[str, tuple[Changes, ...]] = {
    "timeouts": tuple({"errors": ErrorCounts(timeout=lost), "unfinished": 2} for lost in (2, 3)),
    "achieved-rate": (
        *({"requests": answered} for answered in (9_895, 9_880)),
        # 50 requests are unfinished in both trials.
        *({"latency": latency(50e-3), "requests": answered} for answered in (9_840, 9_820)),
        {"latency": latency(50e-3), "requests": 9_840, "load": OpenLoop(rate=1_000.0, connections=1)},
        {"latency": latency(1e-3).model_copy(update={"percentiles": {}})},
        {"latency": None},
        {"due": 1, "requests": 1},
        {"due": 1_000, "requests": 1_000, "duration": 1.0},
        *({"due": due} for due in (0, None)),
        {"duration": 0.0},
    ),
    "unfinished": ({"unfinished": 1}, {"unfinished": None}, {"due": 0}, {"due": None}),
    "generator-lag": (
        *({"lag_p99": lag, "sent_late": 1_000} for lag in (0.4e-3, 0.41e-3)),
        *({"lag_p99": lag, "latency": latency(1e-5), "sent_late": 1_000} for lag in (1e-4, 1.01e-4)),
        *(LATE | {"sent_late": late} for late in (132, 133, None)),
        *(LATE | {"due": None}, LATE | {"latency": None}, {"lag_p99": None}),
        *(LATE | {"latency": latency(1e-3).model_copy(update={"percentiles": more})} for more in ({}, {"99": 0.0})),
        LATE | {"due": 0, "sent_late": 1},
    ),
}


def outcomes(trial: Trial, changes: Changes) -> dict[str, str]:
    """Return the outcome, value, threshold and flag of each validity check."""
    kinds = (ValidityContext.__dataclass_fields__, ServerUsage.model_fields)
    beside, used = ({key: value for key, value in changes.items() if key in kind} for kind in kinds)
    trial_changes = {key: value for key, value in changes.items() if key not in beside and key not in used}
    trial_changes["server"] = USE.model_copy(update=used)
    context = {"open_loop": PROFILE.open_loop, "server_cpus": 2, "response_bytes": (149.0, 151.0), **beside}
    checks = check_validity(trial.model_copy(update=trial_changes), ValidityContext(**context))
    return {
        check.name: f"{check.outcome}: {'unknown' if check.value is None else format(check.value, '.4g')} against "
        f"{check.threshold:.4g} {check.flag}".rstrip()
        for check in checks
    }


def test_checks_match_approved_results_around_their_limits() -> None:
    approve(
        "experiment-validity",
        {
            "sound": outcomes(SOUND, {}),
            "sound at a rate": " ".join(outcomes(AT_RATE, {})),
            "sound arrivals": " ".join(outcomes(AT_RATE, {"load": Scenario(factor=8.0, connections=64)})),
            "closed": {
                gate: [outcomes(SOUND, changes).get(gate, "does not apply") for changes in cases]
                for gate, cases in CLOSED.items()
            },
            "rate": {
                gate: [outcomes(AT_RATE, changes).get(gate, "does not apply") for changes in cases]
                for gate, cases in RATES.items()
            },
        },
    )


@pytest.mark.parametrize("mean", [0.1, 1.0, 20.0, 1_000.0])
def test_the_poisson_bound_covers_all_but_one_permille(mean: float) -> None:
    assert pdtrc(poisson_bound(mean), mean) < 2e-3
