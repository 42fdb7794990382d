"""Judges whether a change slows a service, from the records of base, head and the control copy of base.

The CPU time per request at a fixed rate decides. If it is unknown, the response time at that rate decides. ``paired``
computes the intervals. They apply to all requests together (Bonferroni): if two sides are equal, at most 4 % of
sessions call any request slower or faster.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from harness.extras.gate.paired import (
    BASE,
    COPY,
    HEAD,
    KEYS,
    PairedMetric,
    estimate_ratios,
    pair_trials,
    weighted_total,
)
from harness.extras.gate.session_evidence import (
    FAILURE_FLAGS,
    describe_end,
    describe_leak,
    describe_violation,
    excess_losses,
    explain_missing,
    explain_too_few,
    failed_flags,
    head_over_base,
    length_notes,
    measured_trials,
    open_loop_trials,
    side_medians,
    time_per_response,
    trials_at_rate,
)
from harness.records.loads import ClosedLoop
from harness.records.outcome import Outcome
from harness.records.record import Record
from harness.records.run_records import RunRecords
from harness.records.verdicts import Verdict, is_equivalent, worst
from harness.stats.cell_comparison import ratio
from harness.stats.moderation import ASSUMED_SD
from harness.stats.ranking_model import Ratio

ALL = "all"  # name of the weighted total over all requests
# (1.96 + 0.84) / 1.96 half-widths: four of five sessions detect a change of this size (Cohen 1988).
POWER_FACTOR = 1.43
ANY_LOAD = ClosedLoop(connections=1)  # placeholder for metrics of processes, which have no load
MAX_RATIO_ERROR = 2.0  # maximum useful factor between the estimate and an end of the interval
MAX_MINUTES = 240.0  # tfb never recommends longer sessions
# Probability that a session of equal sides calls any request slower or faster. It is below 5 %, because real noise is
# not normally distributed.
SESSION_ERROR = 0.04
NOISE_ERROR = 0.01  # probability that a session finds a difference between base and the control copy
LATER_FACTOR = 1.25  # threshold for response times, which depend on the machine more than CPU time does
SINGLE_PROCESS = (
    "a running service is a single process, and more time does not average out its deviation: compare commits, "
    "commands (cmd:) or images (image:)"
)
# Histories from version 0.1 contain "the same".
RecordedVerdict = Annotated[Verdict, BeforeValidator(lambda value: "same" if value == "the same" else value)]


class RequestVerdict(Record):
    """The verdict on a request, or on the total of all requests. Ratios are head to base."""

    request: str
    verdict: RecordedVerdict
    reason: str = ""  # reason for a failure, for slower responses, or for an open verdict whose cause is not noise
    metric: PairedMetric = "CPU per request"
    rate: float | None = None  # requests/s, the same for all sides
    ratio: Ratio | None = None
    noise: Ratio | None = None  # ratio of base to the control copy
    detectable: float | None = None  # smallest relative change that four of five sessions detect
    minutes_more: float | None = None  # further minutes that would allow a decision
    values: tuple[float, float] | None = None  # seconds of base and head
    p50: tuple[float, float, float] | None = None  # seconds at the fixed rate: base, head and control copy
    p99: tuple[float, float, float] | None = None
    throughput: Ratio | None = None  # throughput of a closed loop


class GateResult(Record):
    """The verdicts of a session."""

    base: str  # description of base
    head: str
    # Fail_over is the name in version 0.1.
    threshold: float = Field(ge=0, le=1e6, validation_alias=AliasChoices("threshold", "fail_over"))
    verdict: RecordedVerdict
    requests: tuple[RequestVerdict, ...]
    memory: Ratio | None = None
    startup_time: Ratio | None = None
    minutes: float
    started_at: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ComparedVersions:
    """The versions that a session compares, and facts that are not in the records."""

    base: str  # descriptions of the versions for the report
    head: str
    threshold: float = 0.05  # relative difference up to which a request counts as unchanged
    notes: Sequence[str] = ()
    # Share of each request in the total; a missing share counts as 1.
    weights: Mapping[str, float] = field(default_factory=dict)
    running: int = 0  # number of versions (0 to 2) that are already running, so tfb cannot restart them


def judge(records: RunRecords, versions: ComparedVersions) -> GateResult:
    """Return the verdicts on all requests of a session."""
    info = records.info
    minutes = max(0.0, (info.completed_at or info.started_at) - info.started_at) / 60
    requests = _judge_requests(records, versions, minutes)
    most = max((one for one in requests if one.rate), key=lambda one: one.rate or 0.0, default=None)
    return GateResult(
        base=versions.base,
        head=versions.head,
        threshold=versions.threshold,
        verdict=worst(one.verdict for one in requests),
        requests=requests,
        memory=head_over_base(open_loop_trials(records), most.request, "memory") if most else None,
        startup_time=ratio((), (HEAD, "", ANY_LOAD), (BASE, "", ANY_LOAD), "startup-time", 0.95, records.processes),
        minutes=minutes,
        started_at=info.started_at,
        notes=(*versions.notes, *length_notes(records)),
    )


def _judge_requests(records: RunRecords, versions: ComparedVersions, minutes: float) -> tuple[RequestVerdict, ...]:
    drafts = {name: _draft_verdict(records, name) for name in records.info.loads}
    tables = {
        name: pair_trials(trials_at_rate(records, name), one.metric) for name, one in drafts.items() if not one.reason
    }
    if len(drafts) > 1 and len(tables) == len(drafts) and len({one.metric for one in drafts.values()}) == 1:
        tables[ALL] = weighted_total(tables, {name: versions.weights.get(name, 1.0) for name in drafts})
        drafts[ALL] = RequestVerdict(request=ALL, verdict="cannot tell", metric=next(iter(drafts.values())).metric)
    error, noise_error = (each / max(1, len(drafts)) for each in (SESSION_ERROR, NOISE_ERROR))
    # A running service is a single process. The variance between processes cannot be measured, so it is assumed.
    ratios = estimate_ratios(tables, 1 - error, 1 - noise_error, added_variance=versions.running * ASSUMED_SD**2)
    response_times = {
        name: pair_trials(trials_at_rate(records, name), "median response time") for name in tables if name != ALL
    }
    time_ratios = estimate_ratios(response_times, 1 - error, 1 - noise_error, added_variance=0.0)
    judged = []
    for name, draft in drafts.items():
        if not draft.reason:
            too_few = explain_too_few(records, name, tables.get(name), minutes)
            draft = _decide(draft, ratios.get(name), versions, minutes, too_few)  # noqa: PLW2901
        judged.append(_consider_response_time(draft, time_ratios.get(name), time_per_response(records, name, error)))
    return tuple(judged)


def _draft_verdict(records: RunRecords, name: str) -> RequestVerdict:
    """Return the figures of a request without the ratio. If the request cannot be compared, include the reason."""
    wrong = [v for v in records.verdicts if v.test_type in (name, "http") and v.outcome is Outcome.FAIL]
    # Violations by base take precedence.
    for verdict in sorted(wrong, key=lambda verdict: verdict.implementation == HEAD):
        told: Verdict = "failed" if verdict.implementation == HEAD else "cannot tell"
        return RequestVerdict(request=name, verdict=told, reason=describe_violation(verdict))
    if failure := describe_end(records) or describe_leak(records):
        return RequestVerdict(request=name, verdict="failed", reason=failure)
    measured, valid = measured_trials(records, name), trials_at_rate(records, name)
    missing = [side for side in (HEAD, BASE, COPY) if not any(t.implementation == side for t in valid)]
    if missing:
        flags = failed_flags([t for t in measured if t.implementation == missing[0]])
        told = "failed" if missing == [HEAD] and FAILURE_FLAGS & {*flags} else "cannot tell"
        return RequestVerdict(request=name, verdict=told, reason=explain_missing(records, flags, missing[0]))
    metric: PairedMetric = "CPU per request" if all(t.cpu_per_request for t in valid) else "response time"
    load, _ = Counter(t.load for t in valid).most_common(1)[0]  # there are several loads if the first rate was too high
    valid = [t for t in valid if t.load == load]
    if losses := excess_losses([t for t in measured if t.load == load]):
        told = "failed" if FAILURE_FLAGS & {*losses} else "cannot tell"
        reason = (
            f"{explain_missing(records, losses, HEAD)} ({len(losses)} trials of head are invalid for this reason, and "
            "far fewer of base)"
        )
        return RequestVerdict(request=name, verdict=told, reason=reason)
    costs = side_medians(valid, KEYS[metric])
    return RequestVerdict(
        request=name,
        verdict="cannot tell",
        metric=metric,
        rate=getattr(load, "rate", None),
        values=costs and costs[:2],
        p50=side_medians(valid, "response-time-p50"),
        p99=side_medians(valid, "response-time-p99"),
        throughput=head_over_base([t for t in measured if t.load.kind == "closed" and t.rankable], name, "throughput"),
    )


def _decide(
    draft: RequestVerdict,
    ratios: tuple[Ratio, Ratio] | None,
    versions: ComparedVersions,
    minutes: float,
    too_few: str,
) -> RequestVerdict:
    """Complete a draft by means of the intervals.

    Args:
        draft: The verdict without ratios.
        ratios: Head to base, and base to the control copy; None if unknown.
        versions: The compared versions.
        minutes: Length of the session.
        too_few: The reason to report if there is no useful interval.
    """
    if ratios is None:
        return draft.model_copy(update={"reason": too_few})
    head, noise = ratios
    draft = draft.model_copy(update={"ratio": head, "noise": noise})
    half = math.log(_bounds(head)[1] / head.value)
    if half > math.log(MAX_RATIO_ERROR):
        return draft.model_copy(update={"reason": too_few})
    if not _contains_one(noise):
        reason = "base and its control copy differ, although they are equal: use a quieter machine, or repeat"
        return draft.model_copy(update={"reason": reason})
    margin = versions.threshold
    value = abs(math.log(head.value))
    wanted_half = max(value, math.log1p(margin) - value)
    more = minutes * ((half / wanted_half) ** 2 - 1) if wanted_half > 0 else math.inf
    verdict = judge_ratio(head, margin)
    return draft.model_copy(
        update={
            "verdict": verdict,
            "reason": SINGLE_PROCESS if verdict == "cannot tell" and versions.running else "",
            "detectable": math.expm1(max(half, math.log1p(margin) - half) + (POWER_FACTOR - 1) * half),
            "minutes_more": more if 0 < more <= MAX_MINUTES and not versions.running else None,
        }
    )


def _consider_response_time(
    one: RequestVerdict, median_ratios: tuple[Ratio, Ratio] | None, closed_loop: Ratio | None
) -> RequestVerdict:
    """Change the verdict to "slower" if responses take much longer, or if throughput is much lower.

    CPU time does not include the time spent waiting for a database or a lock.
    """
    if one.reason or one.verdict == "slower" or one.metric != "CPU per request":
        return one
    update: dict[str, object] = {}
    if closed_loop and _bounds(closed_loop)[0] > LATER_FACTOR:
        update = {"metric": "time per answer of a closed loop", "ratio": closed_loop, "noise": None, "values": None}
    if median_ratios and _bounds(median_ratios[0])[0] > LATER_FACTOR and _contains_one(median_ratios[1]):
        head, noise = median_ratios
        update = {"metric": "median response time", "ratio": head, "noise": noise, "values": one.p50 and one.p50[:2]}
    if not update:
        return one
    cpu = f" (CPU per request: {one.ratio.value:.2f}×)" if one.ratio else ""
    update["reason"] = f"responses are slower: the verdict rests on the {update['metric']}{cpu}"
    return one.model_copy(update={**update, "verdict": "slower", "minutes_more": None, "detectable": None})


def judge_ratio(cost: Ratio, margin: float) -> Verdict:
    """Return the verdict on a ratio of costs, judged by the interval."""
    low, high = _bounds(cost)
    if is_equivalent(low, high, margin):
        return "same"
    return "slower" if low > 1 else "faster" if high < 1 else "cannot tell"


def _bounds(interval: Ratio) -> tuple[float, float]:
    return interval.low or 0.0, interval.high or math.inf


def _contains_one(interval: Ratio) -> bool:
    low, high = _bounds(interval)
    return low <= 1 <= high
