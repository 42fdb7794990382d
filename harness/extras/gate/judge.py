"""Did a change slow a service? Verdicts of a session in which base, head and a second copy of base stood side by side.

CPU per request at one rate decides, and where it is not known response time at that rate; how sure is in paired.py. The
intervals of all requests hold together (Bonferroni): a session of two equal sides says "slower" or "faster" of any
request in at most 5 % of cases.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Annotated

from pydantic import BeforeValidator

from harness.extras.gate.paired import (
    BASE,
    COPY,
    HEAD,
    KEYS,
    SIDES,
    PairedCosts,
    PairedMetric,
    estimate_ratios,
    pair_trials,
    weighted_total,
)
from harness.records.loads import ClosedLoop
from harness.records.outcome import Outcome
from harness.records.record import Record
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import Verdict, is_equivalent, worst
from harness.records.verification_record import VerificationRecord
from harness.stats.cell_comparison import ratio
from harness.stats.cell_values import METRICS
from harness.stats.moderation import ASSUMED_SD
from harness.stats.ranking_model import Ratio

ALL = "all"  # the requests together, by their weights
POWER = 1.43  # (1.96 + 0.84) / 1.96: what is found not to be 0 in four sessions of five, in half-widths (Cohen 1988)
ANY = ClosedLoop(connections=1)  # in the place of a load, of what a process shows as a whole
WIDEST = 2.0  # an interval of half and double says that nothing is known yet
MOST_MINUTES = 240.0  # more than that is no advice
ERROR = 0.04  # of a session of equal sides that says something of any request; real noise is no normal one
FLOOR_ERROR = 0.01  # of one that finds base and its copy to differ
LATER = 1.25  # times as long: less may be the machine's doing, of which response times depend more than CPU does
ANOTHER_LENGTH = 0.1  # relative: that of answers with other values is about the same
LEAK_BYTES, LEAK_SHARE = 32e6, 0.5  # of growth within a process, over what base's grows by and over its beginning
SLOW = "it does not keep up with the rate: lower service.connections"
ADVICE = {  # what a gate says of a trial, and what to do
    "rate not achieved": SLOW,
    "unfinished requests": SLOW,
    "errors": "it closes connections or answers with another status under load: see its log with --results DIR",
    "restarted": "its process was replaced under load: see its log with --results DIR",
    "generator lag": "the load generator did not get a CPU in time: stop what else runs on this machine",
}
ONE_PROCESS = (
    "what runs already is one process, whose luck no time averages out: compare commits, commands (cmd:) or images"
)
BROKEN = frozenset({"errors", "restarted", "wrong answers"})  # of head alone: a failure


# Histories written by version 0.1 contain "the same".
RecordedVerdict = Annotated[Verdict, BeforeValidator(lambda value: "same" if value == "the same" else value)]


class RequestVerdict(Record):
    """One request, or all by their weights; ratios are head over base."""

    request: str
    verdict: RecordedVerdict
    reason: str = ""  # of "failed", where it cannot be told for another reason than noise, and of what answers later
    metric: PairedMetric = "CPU per request"
    rate: float | None = None  # requests/s, the same for all sides
    ratio: Ratio | None = None
    noise: Ratio | None = None  # of base over its copy
    detectable: float | None = None  # the smallest change that such a session finds four times in five, relative
    minutes_more: float | None = None
    values: tuple[float, float] | None = None  # seconds of base and head
    p50: tuple[float, float, float] | None = None  # seconds at the rate, of base, head and base's copy
    p99: tuple[float, float, float] | None = None
    throughput: Ratio | None = None  # of a closed loop


class GateResult(Record):
    """Of all requests of a session."""

    base: str  # what the sides were
    head: str
    threshold: float
    verdict: RecordedVerdict
    requests: tuple[RequestVerdict, ...]
    memory: Ratio | None = None
    startup_time: Ratio | None = None
    minutes: float
    started_at: float
    notes: tuple[str, ...] = ()


def judge(
    records: RunRecords,
    threshold: float,
    base: str,
    head: str,
    notes: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    running: int = 0,
) -> GateResult:
    """``threshold`` is relative; ``base`` and ``head`` say what the sides were; ``weights``: shares of the requests.

    ``running``: how many of base and head run already. Each of these is one process; what another one would have
    differed by cannot be seen, and is assumed.
    """
    info = records.info
    minutes = max(0.0, (info.completed_at or info.started_at) - info.started_at) / 60
    shown = {name: _shown(records, name) for name in info.loads}
    tables = {name: pair_trials(_at_rate(records, name), one.metric) for name, one in shown.items() if not one.reason}
    if len(shown) > 1 and len(tables) == len(shown) and len({one.metric for one in shown.values()}) == 1:
        parts = {name: (weights or {}).get(name, 1.0) for name in shown}
        tables[ALL] = weighted_total(tables, parts)
        shown[ALL] = RequestVerdict(request=ALL, verdict="cannot tell", metric=next(iter(shown.values())).metric)
    errors = ERROR / max(1, len(shown)), FLOOR_ERROR / max(1, len(shown))
    sure = estimate_ratios(tables, 1 - errors[0], 1 - errors[1], added_variance=running * ASSUMED_SD**2)
    few = {name: _few(records, name, tables.get(name), minutes) for name in shown}
    lasting = ONE_PROCESS if running else ""
    found = tuple(_decide(one, sure.get(name), threshold, minutes, few[name], lasting) for name, one in shown.items())
    waited = {name: pair_trials(_at_rate(records, name), "median response time") for name in tables if name != ALL}
    medians = estimate_ratios(waited, 1 - errors[0], 1 - errors[1], added_variance=0.0)
    found = tuple(_held_up(one, medians.get(one.request), _at_most(records, one.request, errors[0])) for one in found)
    most = max((one for one in found if one.rate), key=lambda one: one.rate or 0.0, default=None)
    return GateResult(
        base=base,
        head=head,
        threshold=threshold,
        verdict=worst(each.verdict for each in found),
        requests=found,
        memory=_ratio(_under_load(records), most.request, "memory") if most else None,
        startup_time=ratio((), (HEAD, "", ANY), (BASE, "", ANY), "startup-time", 0.95, records.processes),
        minutes=minutes,
        started_at=info.started_at,
        notes=(*notes, *_lengths(records)),
    )


# ---- one request ----------------------------------------------------------------------------------------------------


def _under_load(records: RunRecords) -> list[Trial]:
    return [trial for trial in records.trials if trial.load.kind == "open"]


def _measured(records: RunRecords, name: str) -> list[Trial]:
    return [trial for trial in records.trials if trial.test_type == name and trial.purpose == "measure"]


def _at_rate(records: RunRecords, name: str) -> list[Trial]:
    return [trial for trial in _measured(records, name) if trial.load.kind == "open" and trial.rankable]


def _failing(trials: Sequence[Trial]) -> list[str]:
    """The words of the gates that failed, each as often as it did."""
    return [check.flag for trial in trials for check in trial.validity if check.outcome is Outcome.FAIL]


def _shown(records: RunRecords, name: str) -> RequestVerdict:
    """What is known of a request beside its ratio; with a reason where there is none."""
    wrong = [v for v in records.verdicts if v.test_type in (name, "http") and v.outcome is Outcome.FAIL]
    for verdict in sorted(wrong, key=lambda verdict: verdict.implementation == HEAD):  # where base is wrong, too
        said: Verdict = "failed" if verdict.implementation == HEAD else "cannot tell"
        return RequestVerdict(request=name, verdict=said, reason=wrong_answer(verdict))
    if gone := _ended(records) or _leak(_under_load(records)):
        return RequestVerdict(request=name, verdict="failed", reason=gone)
    own, good = _measured(records, name), _at_rate(records, name)
    missing = [side for side in (HEAD, BASE, COPY) if not any(t.implementation == side for t in good)]
    if missing:
        words = _failing([t for t in own if t.implementation == missing[0]])
        said = "failed" if missing == [HEAD] and BROKEN & {*words} else "cannot tell"
        return RequestVerdict(request=name, verdict=said, reason=_why(records, words, missing[0]))
    metric: PairedMetric = "CPU per request" if all(t.cpu_per_request for t in good) else "response time"
    load, _ = Counter(t.load for t in good).most_common(1)[0]  # there are several where the first could not be kept
    good = [t for t in good if t.load == load]
    if lost := _lost([t for t in own if t.load == load]):
        said = "failed" if BROKEN & {*lost} else "cannot tell"
        reason = f"{_why(records, lost, HEAD)} ({len(lost)} of its loads do not count for that, far fewer of base's)"
        return RequestVerdict(request=name, verdict=said, reason=reason)
    costs = _medians(good, KEYS[metric])
    return RequestVerdict(
        request=name,
        verdict="cannot tell",
        metric=metric,
        rate=getattr(load, "rate", None),
        values=costs and costs[:2],
        p50=_medians(good, "response-time-p50"),
        p99=_medians(good, "response-time-p99"),
        throughput=_ratio([t for t in own if t.load.kind == "closed" and t.rankable], name, "throughput"),
    )


def wrong_answer(verdict: VerificationRecord) -> str:
    """Return the first violation that verification found, as one line."""
    failed = next(result for result in verdict.results if result.outcome is Outcome.FAIL)
    expected = f": expected {failed.expected}, got {failed.actual}" if failed.expected is not None else ""
    return " ".join(f"{verdict.implementation} answers wrong: {failed.message}{expected}".split())


def _lost(loads: Sequence[Trial]) -> list[str]:
    """Why loads of head do not count, where far more of them do not than of base's or its copy's.

    To compare those in which it coped would favour it.
    """
    lost = {side: [t for t in loads if t.implementation == side and not t.rankable] for side in SIDES}
    spared = 0.1 * len(loads) / len(SIDES)
    few = len(lost[HEAD]) <= max(spared, 2 + 2 * max(len(lost[BASE]), len(lost[COPY])))
    return [] if few else [_failing([trial])[0] for trial in lost[HEAD]]


def _decide(
    shown: RequestVerdict, found: tuple[Ratio, Ratio] | None, margin: float, minutes: float, few: str, lasting: str
) -> RequestVerdict:
    """By its intervals; ``few`` says why it has none worth the name, ``lasting`` why time would not narrow them."""
    if shown.reason:
        return shown
    if found is None:
        return shown.model_copy(update={"reason": few})
    head, noise = found
    shown = shown.model_copy(update={"ratio": head, "noise": noise})
    half = math.log(_bounds(head)[1] / head.value)
    if half > math.log(WIDEST):
        return shown.model_copy(update={"reason": few})
    if not _bounds(noise)[0] <= 1 <= _bounds(noise)[1]:
        return shown.model_copy(update={"reason": "base and its copy, the same program, differ in this session"})
    value = abs(math.log(head.value))
    wanted = max(value, math.log1p(margin) - value)
    more = minutes * ((half / wanted) ** 2 - 1) if wanted > 0 else math.inf
    verdict = decided(head, margin)
    return shown.model_copy(
        update={
            "verdict": verdict,
            "reason": lasting if verdict == "cannot tell" else "",
            "detectable": math.expm1(max(half, math.log1p(margin) - half) + (POWER - 1) * half),
            "minutes_more": more if 0 < more <= MOST_MINUTES and not lasting else None,
        }
    )


def _held_up(one: RequestVerdict, median: tuple[Ratio, Ratio] | None, most: Ratio | None) -> RequestVerdict:
    """Slower where answers come far later, or far fewer at most: what waits, for a database or a lock, costs no CPU."""
    if one.reason or one.verdict == "slower" or one.metric != "CPU per request":
        return one
    update: dict[str, object] = {}
    if most and _bounds(most)[0] > LATER:
        update = {"metric": "time per answer of a closed loop", "ratio": most, "noise": None, "values": None}
    if median and _bounds(median[0])[0] > LATER and _bounds(median[1])[0] <= 1 <= _bounds(median[1])[1]:
        values = one.p50 and one.p50[:2]
        update = {"metric": "median response time", "ratio": median[0], "noise": median[1], "values": values}
    if not update:
        return one
    beside = f", beside CPU per request of {one.ratio.value:.2f}×" if one.ratio else ""
    update["reason"] = f"it answers later: the {update['metric']} decides{beside}"
    return one.model_copy(update={**update, "verdict": "slower", "minutes_more": None, "detectable": None})


def _at_most(records: RunRecords, name: str, error: float) -> Ratio | None:
    """Time per answer of a closed loop, of head over base or over its copy: the ratio that says less."""
    closed = [t for t in _measured(records, name) if t.load.kind == "closed" and t.rankable]
    found = [_ratio(closed, name, "throughput", 1 - error, side) for side in (BASE, COPY)]
    times = [Ratio(value=1 / r.value, low=1 / r.high, high=1 / r.low) for r in found if r and r.low and r.high]
    return min(times, key=lambda each: each.low or 0.0) if len(times) == len(found) else None


def _few(records: RunRecords, name: str, table: PairedCosts | None, minutes: float) -> str:
    """Why a request has no interval worth the name, and what to do."""
    whole = 0 if table is None else round(float(table.rounds.sum()))
    words = Counter(_failing([t for t in _measured(records, name) if t.load.kind == "open"]))
    left_out = "".join(f", others left out for: {word}" for word, _ in words.most_common(1))
    time = max(10, round(2 * minutes))
    return f"too few rounds: {whole} with all sides{left_out}; give it more time (--time {time}m)"


def decided(found: Ratio, margin: float) -> Verdict:
    """By an interval of a cost: the same where it leaves no room for more than the margin."""
    low, high = _bounds(found)
    if is_equivalent(low, high, margin):
        return "same"
    return "slower" if low > 1 else "faster" if high < 1 else "cannot tell"


def _bounds(found: Ratio) -> tuple[float, float]:
    return found.low or 0.0, found.high or math.inf


# ---- what stands beside it, and what is wrong -----------------------------------------------------------------------


def _ratio(trials: Sequence[Trial], name: str, metric: str, level: float = 0.95, side: str = BASE) -> Ratio | None:
    """Of head over base, or over its copy; None where they had several loads."""
    loads = {trial.load for trial in trials if trial.test_type == name}
    if len(loads) != 1:
        return None
    load = loads.pop()
    return ratio(trials, (HEAD, name, load), (side, name, load), metric, level)


def _medians(trials: Sequence[Trial], metric: str) -> tuple[float, float, float] | None:
    """Over the trials of base, of head and of base's copy; None where one has none."""
    read = METRICS[metric].read
    known = [[value for t in trials if t.implementation == side and (value := read(t))] for side in SIDES]
    base, head, copy = known
    return (median(base), median(head), median(copy)) if all(known) else None


def _why(records: RunRecords, words: Sequence[str], side: str) -> str:
    """Why there are no figures of a side, and what to do."""
    if words:
        return f"{side}: {words[0]}: {ADVICE.get(words[0], 'see its log with --results DIR')}"
    for process in records.processes:
        if process.implementation == side and process.reason:
            return f"{side}: {process.reason.splitlines()[0]}"
    return f"{side}: not measured in the time given: give it more (--time 10m)"


def _ended(records: RunRecords) -> str:
    """How head ended or was replaced under load."""
    if any(t.implementation == HEAD and t.restarted for t in records.trials):
        return f"head: restarted: {ADVICE['restarted']}"
    measured = {t.process for t in records.trials if t.implementation == HEAD}
    for process in records.processes:
        line = next((line for line in process.reason.splitlines() if "ended (" in line or " is gone" in line), "")
        if line and process.implementation == HEAD and process.process in measured:
            return f"head ended under load: {line.rstrip(':')}"
    return ""


def _lengths(records: RunRecords) -> Iterator[str]:
    """Of which requests head's answers are longer or shorter than base's and its copy's: they may lack something."""
    for name in records.info.loads:
        own = [t for t in _at_rate(records, name) if t.requests]
        known = [[t.bytes / t.requests for t in own if t.implementation == side] for side in SIDES]
        if not all(known):
            continue  # its verdict says which side has no load that counts
        base, head, copy = map(median, known)
        if abs(math.log(head / base)) > math.log1p(ANOTHER_LENGTH) + abs(math.log(copy / base)):
            yield f"{name}: head's answers have {head:.0f} bytes, base's {base:.0f}: do they say the same?"


def _growth(trials: Sequence[Trial], side: str) -> tuple[float, float] | None:
    """Bytes of memory at the first load at a rate of a process, and by how much it has grown at the last; medians."""
    peaks: defaultdict[int, list[float]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: trial.started_at):
        if trial.implementation == side and trial.server.rss_peak:
            peaks[trial.process].append(trial.server.rss_peak)
    found = [(own[0], own[-1] - own[0]) for own in peaks.values() if len(own) > 1]
    return (median(f for f, _ in found), median(g for _, g in found)) if found else None


def _leak(trials: Sequence[Trial]) -> str:
    """What head's memory grows by, where base's does not."""
    head, base = _growth(trials, HEAD), _growth(trials, BASE)
    if not head or not base or head[1] < max(LEAK_BYTES, LEAK_SHARE * head[0], 3 * base[1]):
        return ""
    return (
        f"head's memory grows under load by {head[1] / 1e6:.0f} MB from {head[0] / 1e6:.0f} MB, base's by "
        f"{max(0.0, base[1]) / 1e6:.0f} MB: look for what it keeps of each request"
    )
