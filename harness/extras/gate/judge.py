"""Judges from a session's records whether head is slower than base.

The verdict depends on the CPU time per request at a fixed rate. If CPU time is unknown, the verdict depends on response
time. ``paired`` computes the confidence intervals, with a Bonferroni correction for the number of requests. If base and
head are equal, at most 4 % of sessions call any request slower or faster.
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
    connection_notes,
    describe_end,
    describe_leak,
    describe_overload,
    describe_violation,
    excess_losses,
    explain_missing,
    explain_too_few,
    failed_flags,
    head_over_base,
    is_too_late,
    length_notes,
    measured_trials,
    open_loop_trials,
    side_medians,
    time_per_response,
    too_late_sides,
    trials_at_rate,
)
from harness.records.loads import ClosedLoop
from harness.records.record import Record
from harness.records.run_records import RunRecords
from harness.records.verdicts import UNCHANGED_MARGIN, Verdict, is_equivalent, worst
from harness.records.verification_record import WHOLE_SERVER, Outcome
from harness.stats.cell_comparison import ratio
from harness.stats.moderation import ASSUMED_SD
from harness.stats.ranking_model import Ratio
from harness.verify.wire import TIMEOUT_SECONDS

ALL = "all"  # name of the weighted total over all requests
# Change that 80 % of sessions detect, divided by the interval's half-width: (1.96 + 0.84) / 1.96 (Cohen 1988).
POWER_FACTOR = 1.43
ANY_LOAD = ClosedLoop(connections=1)  # placeholder load for metrics that describe a process, not a trial
MAX_RATIO_ERROR = 2.0  # an interval is useless if the upper end exceeds the estimate by more than this factor
MAX_MINUTES = 240.0  # maximum additional time that tfb recommends
# Probability that a session calls any request slower or faster although base and head are equal. It is below 5 %,
# because noise may not be normally distributed.
SESSION_ERROR = 0.04
NOISE_ERROR = 0.01  # probability that a session finds a difference between base and the (equal) control copy
# Ratio of response times above which head is slower. It is higher than the threshold for CPU time, because response
# times depend more on the machine.
LATER_FACTOR = 1.25
TOO_LATE = (
    f"a response takes more than {TIMEOUT_SECONDS:g} s, even without concurrent requests: make the request faster, "
    "or remove it from tfb.toml"
)
SINGLE_PROCESS = (
    "a running service is a single process, so more time does not reduce the uncertainty: compare commits, "
    "commands (cmd:) or images (image:)"
)
# Version 0.1 wrote "the same" into history files.
RecordedVerdict = Annotated[Verdict, BeforeValidator(lambda value: "same" if value == "the same" else value)]


class RequestVerdict(Record):
    """The verdict on a request, or on the weighted total of all requests. Ratios are head divided by base."""

    request: str
    verdict: RecordedVerdict
    reason: str = ""  # reason for the verdict; empty if the ratio alone determines the verdict
    metric: PairedMetric = "CPU per request"
    rate: float | None = None  # requests/s, the same for all sides
    ratio: Ratio | None = None
    noise: Ratio | None = None  # ratio of base to the control copy
    detectable: float | None = None  # relative change that 80 % of equally long sessions would detect
    minutes_more: float | None = None  # estimated additional minutes until a verdict; None if they would not help
    values: tuple[float, float] | None = None  # the metric's values for base and head, in seconds
    p50: tuple[float, float, float] | None = None  # response time at the fixed rate, in s: base, head, copy
    p99: tuple[float, float, float] | None = None
    throughput: Ratio | None = None  # ratio of the throughputs in a closed loop
    threshold: float | None = Field(default=None, ge=0, le=1e6)  # None: the session's threshold


class GateResult(Record):
    """The result of a session, which compares head with base."""

    base: str  # description of base
    head: str
    # Version 0.1 called this field fail_over.
    threshold: float = Field(ge=0, le=1e6, validation_alias=AliasChoices("threshold", "fail_over"))
    verdict: RecordedVerdict
    requests: tuple[RequestVerdict, ...]
    memory: Ratio | None = None
    startup_time: Ratio | None = None
    minutes: float
    started_at: float
    notes: tuple[str, ...] = ()
    interrupted: bool = False  # whether Ctrl-C ended the session early


@dataclass(frozen=True, kw_only=True)
class ComparedVersions:
    """Facts about the compared versions, in addition to the run's records."""

    base: str  # descriptions of the versions for the report
    head: str
    threshold: float = UNCHANGED_MARGIN  # relative difference up to which a request counts as unchanged
    thresholds: Mapping[str, float] = field(default_factory=dict)  # request -> declared threshold
    notes: Sequence[str] = ()
    # Weight of each request in the weighted total; default: 1.
    weights: Mapping[str, float] = field(default_factory=dict)
    running: int = 0  # number of versions (0 to 2) that were already running; tfb cannot restart them


def judge(records: RunRecords, versions: ComparedVersions) -> GateResult:
    """Return a session's result, with a verdict on each request."""
    info = records.info
    minutes = max(0.0, (info.completed_at or info.started_at) - info.started_at) / 60
    requests = _judge_requests(records, versions, minutes)
    busiest = max((one for one in requests if one.rate), key=lambda one: one.rate or 0.0, default=None)
    return GateResult(
        base=versions.base,
        head=versions.head,
        threshold=versions.threshold,
        verdict=worst(one.verdict for one in requests),
        requests=requests,
        memory=head_over_base(open_loop_trials(records), busiest.request, "memory") if busiest else None,
        startup_time=ratio((), (HEAD, "", ANY_LOAD), (BASE, "", ANY_LOAD), "startup-time", 0.95, records.processes),
        minutes=minutes,
        started_at=info.started_at,
        notes=(*versions.notes, *length_notes(records), *connection_notes(records)),
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
    # tfb cannot restart a running service, so it must assume the variance between that service's processes.
    ratios = estimate_ratios(tables, 1 - error, 1 - noise_error, added_variance=versions.running * ASSUMED_SD**2)
    response_times = {
        name: pair_trials(trials_at_rate(records, name), "median response time") for name in tables if name != ALL
    }
    time_ratios = estimate_ratios(response_times, 1 - error, 1 - noise_error, added_variance=0.0)
    verdicts = []
    for name, draft in drafts.items():
        if draft.reason:
            verdicts.append(draft)
            continue
        too_few = explain_too_few(records, name, tables.get(name), minutes)
        verdict = _decide(draft, ratios.get(name), versions, minutes, too_few)
        if verdict.reason in ("", too_few):  # even if CPU times show no slowdown, responses may be clearly slower
            closed_loop = time_per_response(records, name, error)
            verdict = _consider_response_time(verdict, time_ratios.get(name), closed_loop)
        verdicts.append(verdict)
    return tuple(verdicts)


def _draft_verdict(records: RunRecords, name: str) -> RequestVerdict:
    """Return a preliminary verdict with a request's measured values, but without the ratio.

    If the request cannot be compared, the verdict is final and has a reason.
    """
    failed = [v for v in records.verdicts if v.test_type in (name, WHOLE_SERVER) and v.outcome is Outcome.FAIL]
    wrong = [v for v in failed if not is_too_late(v)]
    # Report violations by base first, because they make a comparison impossible.
    for verdict in sorted(wrong, key=lambda verdict: verdict.implementation == HEAD):
        conclusion: Verdict = "failed" if verdict.implementation == HEAD else "cannot tell"
        return RequestVerdict(request=name, verdict=conclusion, reason=describe_violation(verdict))
    if failure := describe_end(records) or describe_leak(records):
        return RequestVerdict(request=name, verdict="failed", reason=failure)
    if late := too_late_sides(records, name):
        side = next(side for side in (BASE, COPY, HEAD) if side in late)
        conclusion = "slower" if late == {HEAD} else "cannot tell"
        return RequestVerdict(request=name, verdict=conclusion, reason=f"{side}: {TOO_LATE}")
    trials, valid_trials = measured_trials(records, name), trials_at_rate(records, name)
    if overload := describe_overload([t for t in trials if t.load.kind == "open"]):
        return RequestVerdict(request=name, verdict="slower", reason=overload)
    missing = [side for side in (HEAD, BASE, COPY) if not any(t.implementation == side for t in valid_trials)]
    if missing:
        flags = failed_flags([t for t in trials if t.implementation == missing[0]])
        conclusion = "failed" if missing == [HEAD] and FAILURE_FLAGS & {*flags} else "cannot tell"
        return RequestVerdict(request=name, verdict=conclusion, reason=explain_missing(records, flags, missing[0]))
    metric: PairedMetric = "CPU per request" if all(t.cpu_per_request for t in valid_trials) else "response time"
    load, _ = Counter(t.load for t in valid_trials).most_common(1)[0]  # tfb may have lowered the rate
    valid_trials = [t for t in valid_trials if t.load == load]
    if losses := excess_losses([t for t in trials if t.load == load]):
        conclusion = "failed" if FAILURE_FLAGS & {*losses} else "cannot tell"
        reason = (
            f"{explain_missing(records, losses, HEAD)} (this invalidated {len(losses)} trials of head, but far "
            "fewer of base)"
        )
        return RequestVerdict(request=name, verdict=conclusion, reason=reason)
    costs = side_medians(valid_trials, KEYS[metric])
    return RequestVerdict(
        request=name,
        verdict="cannot tell",
        metric=metric,
        rate=getattr(load, "rate", None),
        values=costs and costs[:2],
        p50=side_medians(valid_trials, "response-time-p50"),
        p99=side_medians(valid_trials, "response-time-p99"),
        throughput=head_over_base([t for t in trials if t.load.kind == "closed" and t.rankable], name, "throughput"),
    )


def _decide(
    draft: RequestVerdict,
    ratios: tuple[Ratio, Ratio] | None,
    versions: ComparedVersions,
    minutes: float,
    too_few: str,
) -> RequestVerdict:
    """Complete a preliminary verdict.

    ``ratios`` are the ratios of head to base and of base to the control copy, or None if they are unknown. ``too_few``
    is the reason to report if the interval is missing or too wide.
    """
    if ratios is None:
        return draft.model_copy(update={"reason": too_few})
    head, noise = ratios
    draft = draft.model_copy(update={"ratio": head, "noise": noise})
    half_width = math.log(_bounds(head)[1] / head.value)
    if half_width > math.log(MAX_RATIO_ERROR):
        return draft.model_copy(update={"reason": too_few})
    if not _contains_one(noise):
        reason = "base and its copy have the same code, but different results: use a quieter machine, or repeat"
        return draft.model_copy(update={"reason": reason})
    draft = draft.model_copy(update={"threshold": versions.thresholds.get(draft.request)})
    margin = draft.threshold or versions.threshold
    value = abs(math.log(head.value))
    wanted_half_width = max(value, math.log1p(margin) - value)
    minutes_more = minutes * ((half_width / wanted_half_width) ** 2 - 1) if wanted_half_width > 0 else math.inf
    verdict = judge_ratio(head, margin)
    return draft.model_copy(
        update={
            "verdict": verdict,
            "reason": SINGLE_PROCESS if verdict == "cannot tell" and versions.running else "",
            "detectable": math.expm1(
                max(half_width, math.log1p(margin) - half_width) + (POWER_FACTOR - 1) * half_width
            ),
            "minutes_more": minutes_more if 0 < minutes_more <= MAX_MINUTES and not versions.running else None,
        }
    )


def _consider_response_time(
    verdict: RequestVerdict, median_ratios: tuple[Ratio, Ratio] | None, closed_loop: Ratio | None
) -> RequestVerdict:
    """Change the verdict to "slower" if responses take much longer, for example because they wait for a lock."""
    if verdict.verdict == "slower" or verdict.metric != "CPU per request":
        return verdict
    update: dict[str, object] = {}
    if closed_loop and _bounds(closed_loop)[0] > LATER_FACTOR:
        update = {"metric": "time per answer of a closed loop", "ratio": closed_loop, "noise": None, "values": None}
    if median_ratios and _bounds(median_ratios[0])[0] > LATER_FACTOR and _contains_one(median_ratios[1]):
        head, noise = median_ratios
        update = {
            "metric": "median response time",
            "ratio": head,
            "noise": noise,
            "values": verdict.p50 and verdict.p50[:2],
        }
    if not update:
        return verdict
    cpu = f" (CPU per request: {verdict.ratio.value:.2f}×)" if verdict.ratio else ""
    update["reason"] = f"responses are slower, so the verdict is based on the {update['metric']}{cpu}"
    return verdict.model_copy(update={**update, "verdict": "slower", "minutes_more": None, "detectable": None})


def judge_ratio(cost: Ratio, margin: float) -> Verdict:
    """Return the verdict that the confidence interval of a cost ratio implies."""
    low, high = _bounds(cost)
    if is_equivalent(low, high, margin):
        return "same"
    return "slower" if low > 1 else "faster" if high < 1 else "cannot tell"


def _bounds(interval: Ratio) -> tuple[float, float]:
    return interval.low or 0.0, interval.high or math.inf


def _contains_one(interval: Ratio) -> bool:
    low, high = _bounds(interval)
    return low <= 1 <= high
