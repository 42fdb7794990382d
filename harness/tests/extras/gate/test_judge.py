"""Verdicts on changes: rates of false alarms and of detections in simulated sessions."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from harness.extras.gate.judge import ALL, ComparedVersions, GateResult, RequestVerdict, judge, judge_ratio
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.report import draw_ratio, drawing_range, format_text
from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop, OpenLoop
from harness.records.measurements import Latency
from harness.records.outcome import Outcome
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial, ValidityCheck
from harness.records.verification_record import CheckResult
from harness.stats.ranking_model import Ratio
from harness.studies.simulated_runs import SimulatedRun, draw_run
from harness.tests.doubles.records import process, verdict
from harness.tests.doubles.runs import run_info, trial

REQUESTS = ("items", "item", "order")
RATE = OpenLoop(rate=500.0, connections=32)
FIVE, TWO = (5, 4), (2, 4)  # (processes, rounds) of sessions that take five and two minutes
SESSIONS = 40  # number of simulated sessions with a slowdown
MOST_FALSE = 10  # maximum of false alarms in 100 sessions: the 99 % quantile if their probability is 5 %


@dataclass(frozen=True, kw_only=True)
class SessionTraits:
    """Properties of a simulated session."""

    copy: float = 1.0  # cost of the control copy as a multiple of base's cost
    noise: float = 0.06
    size: tuple[int, int] = FIVE
    cold: float = 0.0  # a just-in-time compiler increases costs in the first round by up to this share
    unequal: float = 1.0  # factor by which the noise of the third request is higher, and of the first request lower
    rounds: tuple[int, ...] = ()  # number of rounds of each process, instead of ``size``


def session(generator: np.random.Generator, slower: float, **traits: Any) -> RunRecords:
    """Return a session in which head needs ``slower`` times as much CPU time for the second request.

    The keywords are fields of ``SessionTraits`` and ``SimulatedRun``.
    """
    names = {field.name for field in fields(SessionTraits)}
    own = SessionTraits(**{name: value for name, value in traits.items() if name in names})
    more = {name: value for name, value in traits.items() if name not in names}
    processes, most = (len(own.rounds), max(own.rounds)) if own.rounds else own.size
    world = SimulatedRun(
        truth=(0.0, 0.0, np.log(own.copy)), processes=processes, rounds=most, tables=len(REQUESTS),
        **{"process": 0.015, "window": own.noise, "drift": 0.01, **more},
    )  # fmt: skip
    made: list[Trial] = []
    for place, (name, drawn) in enumerate(zip(REQUESTS, draw_run(world, generator), strict=True)):
        truth = np.asarray(world.truth)[:, None, None]
        for (side, start, number), log in np.ndenumerate(truth + (drawn - truth) * own.unequal ** (place - 1)):
            factor = slower if name == REQUESTS[1] and side == 1 else 1.0
            factor *= 1 + own.cold * generator.random() if own.cold and number == 0 else 1.0
            cost = 1e-3 * factor * float(np.exp(log))
            if np.isfinite(log) and (not own.rounds or number < own.rounds[start]):
                made.append(
                    trial(
                        (BASE, HEAD, COPY)[side], 500.0, start, number, test_type=name, load=RATE, cpu_per_request=cost
                    )
                )
    info = run_info((BASE, HEAD, COPY), ProcessLimits(minimum=5, maximum=5), loads=dict.fromkeys(REQUESTS, (RATE,)))
    return RunRecords(info=info.model_copy(update={"completed_at": info.started_at + 300.0}), trials=made)


def verdicts(slower: float, *, sessions: int = SESSIONS, seed: int = 5, **more: Any) -> Counter[str]:
    """Count the verdicts on the second request, and the false alarms on all other requests."""
    generator = np.random.default_rng(seed)
    found = Counter[str]()
    for _ in range(sessions):
        said = {one.request: one.verdict for one in judged(session(generator, slower, **more)).requests}
        found[said[REQUESTS[1]]] += 1
        untouched = [REQUESTS[0], REQUESTS[2], *((REQUESTS[1], ALL) if slower == 1.0 else ())]
        found["false"] += any(said[name] in ("slower", "faster") for name in untouched)
    return found


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
    assert "control copy" in found.requests[0].reason


def test_running_services_keep_the_variance_between_processes() -> None:
    generator = np.random.default_rng(8)
    for slower, said in ((1.08, "cannot tell"), (1.5, "slower")):
        records = session(generator, slower, noise=0.01, process=0.0)
        assert {one.request: one.verdict for one in judged(records).requests}[REQUESTS[1]] == "slower"
        found = judge(records, ComparedVersions(base="http://a", head="http://b", running=2)).requests
        second = next(one for one in found if one.request == REQUESTS[1])
        assert (second.verdict, second.minutes_more) == (said, None)
        assert ("single process" in second.reason) is (said == "cannot tell")


def test_wrong_responses_fail_head_but_not_base() -> None:
    wrong = CheckResult(check="declared", rule="declared.1", outcome=Outcome.FAIL, expected="200", actual="500")
    for side, said in ((HEAD, "failed"), (BASE, "cannot tell")):
        failed = verdict(side, "item", Outcome.FAIL).model_copy(update={"results": (wrong,)})
        found = judged(replace(session(np.random.default_rng(1), 1.0), verdicts=[failed]))
        assert found.requests[1].verdict == said
        assert "expected 200, got 500" in found.requests[1].reason
        assert found.verdict == said
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
    """Head keeps up in a single round of four. This round alone would yield the verdict "same"."""
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    for flag, said in (("rate not achieved", "cannot tell"), ("errors", "failed")):
        lost = changed(records, HEAD, lambda t, flag=flag: failing(flag)(t) if t.round else {})  # type: ignore[misc]
        assert {one.verdict for one in judged(lost).requests} == {said}
        assert flag in judged(lost).requests[0].reason
        of_all = changed(changed(lost, BASE, lambda t: failing("errors")(t) if t.round else {}), COPY, lambda _: {})
        assert flag not in judged(of_all).requests[0].reason  # base has lost as many trials as head
        closed = [t.model_copy(update={"load": ClosedLoop(connections=4)}) for t in lost.trials if t.round]
        searched = replace(records, trials=[*records.trials, *closed])  # lost trials under other loads do not count
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
    """Return a function that changes the response time of a trial to this median, with variation between trials."""
    dice = np.random.default_rng(round(1e6 * seconds))

    def change(_: Trial) -> dict[str, Any]:
        time = seconds * float(np.exp(dice.normal(0.0, spread)))
        more = {"mean": time, "stdev": 0.0, "min": time, "max": time, "percentiles": {"50": time}}
        return {"latency": Latency(basis="open-loop, intended send time", **more)}

    return change


@pytest.mark.parametrize(("seconds", "said"), [(0.002, "same"), (0.0021, "same"), (0.02, "slower")])
def test_waiting_without_cpu_time_is_slower(seconds: float, said: str) -> None:
    records = session(np.random.default_rng(3), 1.0, noise=0.01)
    for side, time in ((BASE, 0.002), (HEAD, seconds), (COPY, 0.0020001)):
        records = changed(records, side, answering_in(time))
    found = judged(records)
    assert found.verdict == said
    assert found.requests[0].metric == ("median response time" if said == "slower" else "CPU per request")
    told = "items: responses are slower: the verdict rests on the median response time (CPU per request: 1.0"
    assert (told in format_text(found)) == (said == "slower")


@pytest.mark.parametrize(("more", "said"), [(0.4, "1 minute more would"), (3.6, "4 minutes more would")])
def test_the_minutes_that_would_tell_are_said(more: float, said: str) -> None:
    one = RequestVerdict(request="items", verdict="cannot tell", minutes_more=more)
    result = GateResult(
        base="a", head="b", threshold=0.05, verdict="cannot tell", requests=(one,), minutes=2.0, started_at=0.0
    )
    assert format_text(result).startswith(f"cannot tell: {said}\n")


@pytest.mark.parametrize(("share", "said"), [(1.0, "same"), (0.3, "slower")])
def test_far_lower_peak_throughput_is_slower(share: float, said: str) -> None:
    records, dice = session(np.random.default_rng(3), 1.0, noise=0.01), np.random.default_rng(4)
    closed = [
        trial(
            side, rate * float(np.exp(dice.normal(0.0, 0.05))), start, test_type="item", load=ClosedLoop(connections=32)
        )
        for side, rate in ((BASE, 900.0), (HEAD, share * 900.0), (COPY, 900.0))
        for start in range(5)
    ]
    found = {one.request: one for one in judged(replace(records, trials=[*records.trials, *closed])).requests}
    assert (found["item"].verdict, found["items"].verdict) == (said, "same")


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


@pytest.mark.parametrize(
    ("side", "change", "verdict", "said"),
    [
        (HEAD, growing, "failed", "head's memory grows under load by 150 MB from 50 MB"),
        (HEAD, failing("errors"), "failed", "head: errors: the side closes connections"),
        (BASE, failing("errors"), "cannot tell", "base: errors"),
        (HEAD, failing("rate not achieved"), "cannot tell", "lower service.connections"),
        (HEAD, lambda _: {"restarted": True}, "failed", "head: restarted: the process was replaced"),
    ],
    ids=["leak", "errors", "of base", "slow", "restarts"],
)
def test_failures_under_load_are_reported_with_advice(
    side: str, change: Callable[[Trial], dict[str, Any]], verdict: str, said: str
) -> None:
    found = judged(changed(session(np.random.default_rng(2), 1.0, noise=0.02), side, change))
    assert found.verdict == verdict
    assert said in " ".join((*found.notes, found.requests[0].reason))


def test_head_that_ends_is_a_failure_with_reason() -> None:
    whole = session(np.random.default_rng(1), 1.0)
    ended = process(HEAD, 0, "failed").model_copy(update={"reason": "it ended (exit status 3):\nbye"})
    found = judged(replace(whole, processes=[ended]))
    assert (found.verdict, found.requests[0].reason) == ("failed", "head ended under load: it ended (exit status 3)")
    never = ended.model_copy(update={"startup_time": None})
    without = [one for one in whole.trials if one.implementation != HEAD]
    assert judged(replace(whole, trials=without, processes=[never])).requests[0].reason.startswith("head: it ended")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.98, 1.04, "same"),
        (1.01, 1.04, "same"),
        (1.01, 1.2, "slower"),
        (0.8, 0.97, "faster"),
        (0.9, 1.2, "cannot tell"),
    ],
)
def test_an_interval_within_the_margin_is_the_same(low: float, high: float, said: str) -> None:
    assert judge_ratio(Ratio(value=(low * high) ** 0.5, low=low, high=high), 0.05) == said


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (0.0, 1.0), (1e-300, 1e300), (0.9, 1.1)])
def test_intervals_from_a_file_can_be_drawn(low: float, high: float) -> None:
    ratio = Ratio(value=1.0, low=low, high=high)

    drawn = draw_ratio(ratio, 0.05, drawing_range([ratio]))

    assert ("●" in drawn) is (low > 0)
