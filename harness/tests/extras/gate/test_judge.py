"""The regression gate's verdicts: how often simulated sessions yield false alarms and reveal slowdowns."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from harness.extras.gate.judge import ALL, ComparedVersions, GateResult, RequestVerdict, judge, judge_ratio
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.report import draw_ratio, drawing_range
from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop, OpenLoop
from harness.records.measurements import ErrorCounts, Latency
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial, ValidityCheck
from harness.records.verification_record import CheckResult, Outcome
from harness.stats.ranking_model import Ratio
from harness.studies.coverage import SimulatedRun, draw_run
from harness.tests.doubles.printed import printed
from harness.tests.doubles.records import process, verdict
from harness.tests.doubles.runs import run_info, trial

REQUESTS = ("items", "item", "order")
RATE = OpenLoop(rate=500.0, connections=32)
FIVE, TWO = (5, 4), (2, 4)  # (processes, rounds) of sessions that take five and two minutes
SESSIONS = 40  # number of simulated sessions with a slowdown
MOST_FALSE = 10  # maximum false alarms in 100 sessions: the 99 % quantile at a rate of 5 %


@dataclass(frozen=True, kw_only=True)
class SessionTraits:
    """Traits of a simulated session."""

    copy: float = 1.0  # the control copy's cost as a multiple of base's
    noise: float = 0.06
    size: tuple[int, int] = FIVE
    cold: float = 0.0  # maximum relative excess cost in the first round, as with a just-in-time compiler
    unequal: float = 1.0  # factor on the noise of the third request, and divisor for the first request
    rounds: tuple[int, ...] = ()  # number of rounds in each process; replaces ``size``


def session(generator: np.random.Generator, slower: float, **traits: Any) -> RunRecords:
    """Return a session in which head needs ``slower`` times base's CPU time for the second request.

    Keywords set fields of ``SessionTraits`` and ``SimulatedRun``.
    """
    names = {field.name for field in fields(SessionTraits)}
    session_traits = SessionTraits(**{name: value for name, value in traits.items() if name in names})
    trial_traits = {name: value for name, value in traits.items() if name not in names}
    processes, most = (
        (len(session_traits.rounds), max(session_traits.rounds)) if session_traits.rounds else session_traits.size
    )
    world = SimulatedRun(
        truth=(0.0, 0.0, np.log(session_traits.copy)), processes=processes, rounds=most, tables=len(REQUESTS),
        **{"process": 0.015, "window": session_traits.noise, "drift": 0.01, **trial_traits},
    )  # fmt: skip
    trials: list[Trial] = []
    for place, (name, drawn) in enumerate(zip(REQUESTS, draw_run(world, generator), strict=True)):
        truth = np.asarray(world.truth)[:, None, None]
        for (side, start, number), log in np.ndenumerate(
            truth + (drawn - truth) * session_traits.unequal ** (place - 1)
        ):
            factor = slower if name == REQUESTS[1] and side == 1 else 1.0
            factor *= 1 + session_traits.cold * generator.random() if session_traits.cold and number == 0 else 1.0
            cost = 1e-3 * factor * float(np.exp(log))
            if np.isfinite(log) and (not session_traits.rounds or number < session_traits.rounds[start]):
                trials.append(
                    trial(
                        (BASE, HEAD, COPY)[side], 500.0, start, number, test_type=name, load=RATE, cpu_per_request=cost
                    )
                )
    info = run_info((BASE, HEAD, COPY), ProcessLimits(minimum=5, maximum=5), loads=dict.fromkeys(REQUESTS, (RATE,)))
    return RunRecords(info=info.model_copy(update={"completed_at": info.started_at + 300.0}), trials=trials)


def verdicts(slower: float, *, sessions: int = SESSIONS, seed: int = 5, **traits: Any) -> Counter[str]:
    """Count the verdicts on the second request, and the sessions with false alarms."""
    generator = np.random.default_rng(seed)
    counts = Counter[str]()
    for _ in range(sessions):
        verdict_by_request = {one.request: one.verdict for one in judged(session(generator, slower, **traits)).requests}
        counts[verdict_by_request[REQUESTS[1]]] += 1
        untouched = [REQUESTS[0], REQUESTS[2], *((REQUESTS[1], ALL) if slower == 1.0 else ())]
        counts["false"] += any(verdict_by_request[name] in ("slower", "faster") for name in untouched)
    return counts


def judged(records: RunRecords) -> GateResult:
    return judge(records, ComparedVersions(base="main", head="the working tree"))


@pytest.mark.simulation
@pytest.mark.parametrize(
    "world",
    [
        {"size": FIVE},
        {"size": TWO},
        {"size": (2, 2)},
        {"size": TWO, "unequal": 2.0},
        {"size": (2, 4), "process": 0.03, "unequal": 3.0},
        {"noise": 0.02, "process": 0.03, "rounds": (12, 2, 2, 2, 2)},
        {"noise": 0.10},
        {"process": 0.04},
        {"unlike": 8.0, "heavy": True, "lost": 0.05},
    ],
    ids=str,
)
def test_equal_sides_rarely_differ(world: dict[str, Any]) -> None:
    assert verdicts(1.0, sessions=100, **world)["false"] <= MOST_FALSE


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("slower", "size", "share"), [(1.05, FIVE, 0.6), (1.10, FIVE, 0.9), (1.10, TWO, 0.6), (1.20, TWO, 0.9)]
)
def test_a_slowdown_is_found(slower: float, size: tuple[int, int], share: float) -> None:
    assert verdicts(slower, size=size)["slower"] >= share * SESSIONS


@pytest.mark.simulation
def test_cold_rounds_of_compilers_do_not_count() -> None:
    compiled: dict[str, Any] = {"size": (3, 5), "noise": 0.05, "cold": 2.0}
    assert verdicts(1.10, **compiled)["slower"] >= 0.8 * SESSIONS
    assert verdicts(1.0, sessions=100, **compiled)["false"] <= MOST_FALSE


@pytest.mark.simulation
def test_noise_leads_to_open_verdicts_with_minutes() -> None:
    generator = np.random.default_rng(3)
    wide = [judged(session(generator, slower, noise=0.3)).requests[1] for slower in (1.03, 1.10) for _ in range(20)]
    assert "same" not in {one.verdict for one in wide}
    told = [one for one in wide if one.verdict == "cannot tell" and one.minutes_more]
    assert told
    assert all(one.detectable and one.detectable > 0.03 for one in told)


def test_noisy_control_copy_prevents_a_verdict() -> None:
    found = judged(session(np.random.default_rng(1), 1.3, copy=1.2))
    assert {one.verdict for one in found.requests} == {"cannot tell"}
    assert "base and its copy" in found.requests[0].reason


def test_running_services_keep_the_variance_between_processes() -> None:
    generator = np.random.default_rng(8)
    for slower, expected in ((1.08, "cannot tell"), (1.5, "slower")):
        records = session(generator, slower, noise=0.01, process=0.0)
        assert {one.request: one.verdict for one in judged(records).requests}[REQUESTS[1]] == "slower"
        found = judge(records, ComparedVersions(base="http://a", head="http://b", running=2)).requests
        second = next(one for one in found if one.request == REQUESTS[1])
        assert (second.verdict, second.minutes_more) == (expected, None)
        assert ("single process" in second.reason) is (expected == "cannot tell")


def test_wrong_responses_fail_head_but_not_base() -> None:
    wrong = CheckResult(check="declared", rule="declared.1", outcome=Outcome.FAIL, expected="200", actual="500")
    for side, expected in ((HEAD, "failed"), (BASE, "cannot tell")):
        failed = verdict(side, "item", Outcome.FAIL).model_copy(update={"results": (wrong,)})
        result = judged(replace(session(np.random.default_rng(1), 1.0), verdicts=[failed]))
        assert result.requests[1].verdict == expected
        assert "expected 200, got 500" in result.requests[1].reason
        assert result.verdict == expected
    of_both = [verdict(side, "item", Outcome.FAIL).model_copy(update={"results": (wrong,)}) for side in (HEAD, BASE)]
    assert judged(replace(session(np.random.default_rng(1), 1.0), verdicts=of_both)).verdict == "cannot tell"


def changed(records: RunRecords, side: str, change: Callable[[Trial], dict[str, Any]]) -> RunRecords:
    trials = [t.model_copy(update=change(t)) if t.implementation == side else t for t in records.trials]
    return replace(records, trials=trials)


def failing(flag: str) -> Callable[[Trial], dict[str, Any]]:
    return lambda _: {
        "validity": (ValidityCheck(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0, flag=flag),)
    }


def test_lost_trials_of_head_affect_the_verdict() -> None:
    """Head has valid trials in only one of four rounds. That round alone would yield the verdict "same"."""
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    for flag, said in (("rate not achieved", "slower"), ("errors", "failed")):
        lost = changed(records, HEAD, lambda t, flag=flag: failing(flag)(t) if t.round else {})  # type: ignore[misc]
        assert {one.verdict for one in judged(lost).requests} == {said}
        assert flag in judged(lost).requests[0].reason
        of_all = changed(changed(lost, BASE, lambda t: failing("errors")(t) if t.round else {}), COPY, lambda _: {})
        assert flag not in judged(of_all).requests[0].reason  # base lost as many trials
        closed = [t.model_copy(update={"load": ClosedLoop(connections=4)}) for t in lost.trials if t.round]
        searched = replace(records, trials=[*records.trials, *closed])  # lost trials of other loads do not count
        assert {one.verdict for one in judged(searched).requests} == {"same"}


def test_response_time_decides_where_cpu_is_unknown() -> None:
    def costs_nothing(one: Trial) -> dict[str, Any]:
        return {"cpu_per_request": 0.0} if one.test_type == REQUESTS[2] else {}

    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    for side in (BASE, HEAD, COPY):
        records = changed(records, side, costs_nothing)
    found = {one.request: one.metric for one in judged(records).requests}
    assert found == {"items": "CPU per request", "item": "CPU per request", "order": "response time"}


def answering_in(seconds: float, spread: float = 0.2) -> Callable[[Trial], dict[str, Any]]:
    """Return a function that gives trials a response time of ``seconds`` with log-normal variation."""
    dice = np.random.default_rng(round(1e6 * seconds))

    def change(_: Trial) -> dict[str, Any]:
        time = seconds * float(np.exp(dice.normal(0.0, spread)))
        more = {"mean": time, "stdev": 0.0, "min": time, "max": time, "percentiles": {"50": time}}
        return {"latency": Latency(basis="open-loop, intended send time", **more)}

    return change


@pytest.mark.parametrize(("seconds", "expected"), [(0.002, "same"), (0.0021, "same"), (0.02, "slower")])
def test_waiting_without_cpu_time_is_slower(seconds: float, expected: str) -> None:
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    for side, time in ((BASE, 0.002), (HEAD, seconds), (COPY, 0.0020001)):
        records = changed(records, side, answering_in(time))
    result = judged(records)
    assert result.verdict == expected
    assert result.requests[0].metric == ("median response time" if expected == "slower" else "CPU per request")
    told = "items: responses are slower, so the verdict is based on the median response time (CPU per request: 1.0"
    assert (told in printed(result)) == (expected == "slower")


@pytest.mark.parametrize(("seconds", "expected"), [(0.6, "cannot tell"), (1.2, "slower")])
def test_clearly_slower_responses_decide_without_cpu_figures(seconds: float, expected: str) -> None:
    records = session(np.random.default_rng(2), 1.0, noise=0.9, size=(2, 2))
    for side, time in ((BASE, 0.6), (HEAD, seconds), (COPY, 0.6001)):
        records = changed(records, side, answering_in(time, spread=0.01))
    found = judged(records)
    assert {one.verdict for one in found.requests if one.request != ALL} == {expected}
    told = "rounds have valid trials" if expected == "cannot tell" else "verdict is based on the median response time"
    assert all(told in one.reason for one in found.requests if one.request != ALL)


@pytest.mark.parametrize(("more", "expected"), [(0.4, "needs 1 more minute"), (3.6, "needs 4 more minutes")])
def test_the_minutes_that_would_tell_are_said(more: float, expected: str) -> None:
    one = RequestVerdict(request="items", verdict="cannot tell", minutes_more=more)
    result = GateResult(
        base="a", head="b", threshold=0.05, verdict="cannot tell", requests=(one,), minutes=2.0, started_at=0.0
    )
    assert printed(result).startswith(f"cannot tell: {expected}\n")


def test_the_verdict_fits_80_columns_without_empty_columns() -> None:
    result = judged(session(np.random.default_rng(3), 1.0, noise=0.01))
    lines = printed(result, 80).splitlines()
    assert max(map(len, lines)) <= 80
    main, more = (line.split("  ") for line in lines if line.lstrip().startswith("request"))
    assert {"request", "verdict", "head ÷ base"} <= {each.strip() for each in main}
    assert "p99" not in " ".join([*main, *more])  # the session lacks response times
    assert all(len(line) < 80 or " " in line for line in lines)  # lines break between words


@pytest.mark.parametrize(("share", "expected"), [(1.0, "same"), (0.3, "slower")])
def test_far_lower_peak_throughput_is_slower(share: float, expected: str) -> None:
    records, dice = session(np.random.default_rng(3), 1.0, noise=0.01), np.random.default_rng(4)
    closed = [
        trial(
            side, rate * float(np.exp(dice.normal(0.0, 0.05))), start, test_type="item", load=ClosedLoop(connections=32)
        )
        for side, rate in ((BASE, 900.0), (HEAD, share * 900.0), (COPY, 900.0))
        for start in range(5)
    ]
    found = {one.request: one for one in judged(replace(records, trials=[*records.trials, *closed])).requests}
    assert (found["item"].verdict, found["items"].verdict) == (expected, "same")


def test_answers_that_have_become_shorter_are_said() -> None:
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    shorter = changed(records, HEAD, lambda t: {"bytes": t.bytes // 2} if t.test_type == "item" else {})
    assert judged(records).notes == ()
    assert [note.partition(":")[0] for note in judged(shorter).notes] == ["item"]


def test_detectable_change_exceeds_the_margin() -> None:
    exact = judged(session(np.random.default_rng(3), 1.0, noise=0.003, process=0.003)).requests
    assert all(one.detectable and 0.04 < one.detectable < 0.05 for one in exact)


def growing(trial: Trial) -> dict[str, Any]:
    size = 5e7 * (1 + trial.round)
    return {"started_at": float(trial.round), "server": trial.server.model_copy(update={"rss_peak": size})}


def sometimes(change: Callable[[Trial], dict[str, Any]]) -> Callable[[Trial], dict[str, Any]]:
    """Return a function that applies ``change`` to the first two rounds of the first four processes only."""
    return lambda trial: change(trial) if trial.round < 2 and trial.process < 4 else {}


@pytest.mark.parametrize(
    ("side", "change", "verdict", "expected"),
    [
        (HEAD, growing, "failed", "head's memory grows by 150 MB under load (from 50 MB)"),
        (HEAD, failing("errors"), "failed", "head: errors: the side closes connections"),
        (BASE, failing("errors"), "cannot tell", "base: errors"),
        (HEAD, failing("rate not achieved"), "slower", "head does not keep up with a rate that base achieves"),
        (HEAD, failing("timeouts"), "slower", "head does not keep up with a rate that base achieves"),
        (HEAD, sometimes(failing("timeouts")), "cannot tell", "lower service.connections"),
        (BASE, failing("rate not achieved"), "cannot tell", "lower service.connections"),
        (HEAD, lambda _: {"restarted": True}, "failed", "head: restarted: the process was replaced"),
    ],
    ids=["leak", "errors", "of base", "slow", "late", "sometimes late", "base slow", "restarts"],
)
def test_failures_under_load_are_reported_with_advice(
    side: str, change: Callable[[Trial], dict[str, Any]], verdict: str, expected: str
) -> None:
    found = judged(changed(session(np.random.default_rng(2), 1.0, noise=0.02), side, change))
    assert found.verdict == verdict
    assert expected in " ".join((*found.notes, found.requests[0].reason))


TOO_LATE = CheckResult(rule="declared.1", check="declared-time", outcome=Outcome.FAIL, message="request item: too slow")


@pytest.mark.parametrize(
    ("late", "expected"), [((HEAD,), "slower"), ((BASE, COPY), "cannot tell"), ((BASE, COPY, HEAD), "cannot tell")]
)
@pytest.mark.parametrize("under_load", [True, False], ids=["under load", "in verification"])
def test_a_side_late_on_one_connection_is_slower(late: tuple[str, ...], expected: str, *, under_load: bool) -> None:
    records = session(np.random.default_rng(2), 1.0, noise=0.02)
    one = ClosedLoop(connections=1)
    if under_load:
        closed = [
            trial(
                side, 3.0, test_type="item", load=one, errors=ErrorCounts(timeout=2 if side in late else 0), **changes
            )
            for side in (BASE, HEAD, COPY)
            for changes in (failing("timeouts")(records.trials[0]) if side in late else {},)
        ]
        rest = [each for each in records.trials if each.test_type != "item"]
        records = replace(records, trials=[*rest, *closed])
    else:
        results = [verdict(side, "item", Outcome.FAIL).model_copy(update={"results": (TOO_LATE,)}) for side in late]
        records = replace(records, verdicts=results)
    found = {each.request: each for each in judged(records).requests}["item"]
    assert found.verdict == expected
    assert "takes more than 8 s, even without concurrent requests" in found.reason


def test_fewer_connections_are_reported() -> None:
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    few = OpenLoop(rate=500.0, connections=8)
    trials = [each.model_copy(update={"load": few}) if each.test_type == "item" else each for each in records.trials]
    late = trial(HEAD, 5.0, test_type="item", load=ClosedLoop(connections=32), errors=ErrorCounts(timeout=9))
    found = judged(replace(records, trials=[late, *trials]))
    assert found.verdict == "same"
    assert found.notes == (
        "item: measured with 8 instead of 32 connections, because responses of head took more than 8 s",
    )


def test_a_repeated_load_is_not_the_reason() -> None:
    """The first load timed out and was repeated with fewer connections, so the timeout is not the reason."""
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    first = process(BASE, 0).model_copy(update={"reason": "item c32: timeouts"})
    closed = [trial(side, 3.0, test_type="item", load=ClosedLoop(connections=2)) for side in (BASE, HEAD, COPY)]
    late = trial(BASE, 5.0, test_type="item", load=ClosedLoop(connections=32), errors=ErrorCounts(timeout=9))
    rest = [each for each in records.trials if each.test_type != "item"]
    limits = {name: (ClosedLoop(connections=32),) for name in REQUESTS}
    info = records.info.model_copy(update={"loads": limits})
    found = judged(replace(records, info=info, trials=[late, *closed, *rest], processes=[first]))
    reason = next(one.reason for one in found.requests if one.request == "item")
    assert "the time was too short" in reason


@pytest.mark.parametrize("how", ["the server ended (exit status 3)", "its container has exited: killed by SIGKILL"])
def test_head_that_exits_is_a_failure_with_reason(how: str) -> None:
    whole = session(np.random.default_rng(1), 1.0)
    exited = process(HEAD, 0, "failed").model_copy(
        update={"reason": f"item: timeouts\nhead: {how}\nbye", "exit_reason": f"head: {how}"}
    )
    found = judged(replace(whole, processes=[exited]))
    assert (found.verdict, found.requests[0].reason) == ("failed", f"head exited under load: {how}")
    quoted = exited.model_copy(update={"reason": "head: the log says: a worker ended (it is gone)", "exit_reason": ""})
    assert judged(replace(whole, processes=[quoted])).verdict != "failed"
    never = exited.model_copy(update={"startup_time": None})
    without = [one for one in whole.trials if one.implementation != HEAD]
    reason = judged(replace(whole, trials=without, processes=[never])).requests[0].reason
    assert reason.startswith("head: item: timeouts: ")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.98, 1.04, "same"),
        (1.01, 1.04, "same"),
        (1.01, 1.2, "slower"),
        (0.8, 0.97, "faster"),
        (0.9, 1.2, "cannot tell"),
    ],
)
def test_an_interval_within_the_margin_is_the_same(low: float, high: float, expected: str) -> None:
    assert judge_ratio(Ratio(value=(low * high) ** 0.5, low=low, high=high), 0.05) == expected


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (0.0, 1.0), (1e-300, 1e300), (0.9, 1.1)])
def test_intervals_from_a_file_can_be_drawn(low: float, high: float) -> None:
    ratio = Ratio(value=1.0, low=low, high=high)

    drawn = draw_ratio(ratio, 0.05, drawing_range([ratio]))

    assert ("●" in drawn) is (low > 0)
