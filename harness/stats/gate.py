"""Did a change slow a service? Verdicts of a session in which base, head and a second copy of base stood side by side.

CPU per request at one rate decides, and where it is not known response time at that rate. The intervals of all requests
hold together (Bonferroni): a session of two equal sides says "slower" or "faster" of any request in at most 5 % of
cases. Base against its copy is the noise floor of the same session; where these two differ, nothing is told of head.
"""

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from harness.records.models import Closed, Outcome, Record, RunRecords, Trial
from harness.stats.compare import ratio
from harness.stats.model import Ratio
from harness.stats.values import METRICS

BASE, HEAD, COPY = "base", "head", "base-copy"  # names of the sides
Verdict = Literal["slower", "faster", "the same", "cannot tell", "failed"]
POWER = 1.43  # (1.96 + 0.84) / 1.96: what is found in four sessions of five, in half-widths (Cohen 1988, section 2.4)
ANY = Closed(connections=1)  # in the place of a load, of what a process shows as a whole
WIDEST = 2.0  # an interval of half and double says that nothing is known yet
MOST_MINUTES = 240.0  # more than that is no advice


class RequestVerdict(Record):
    """One request, or the mix of all; ratios are head over base."""

    request: str
    verdict: Verdict
    reason: str = ""  # of "failed", and where it cannot be told for another reason than noise
    metric: Literal["CPU per request", "response time"] = "CPU per request"
    rate: float | None = None  # requests/s, the same for all sides
    ratio: Ratio | None = None
    noise: Ratio | None = None  # of base's copy over base
    detectable: float | None = None  # the smallest change that such a session finds four times in five, relative
    minutes_more: float | None = None
    values: tuple[float, float] | None = None  # seconds of base and head
    p50: tuple[float, float] | None = None  # seconds at the rate, of base and head
    p99: tuple[float, float] | None = None
    throughput: Ratio | None = None  # of a closed loop


class GateResult(Record):
    """Of all requests of a session."""

    base: str  # what the sides were
    head: str
    fail_over: float
    verdict: Verdict
    requests: tuple[RequestVerdict, ...]
    memory: Ratio | None = None
    startup_time: Ratio | None = None
    minutes: float
    started_at: float
    notes: tuple[str, ...] = ()


def judge(records: RunRecords, fail_over: float, base: str, head: str, notes: Sequence[str] = ()) -> GateResult:
    """``fail_over`` is relative; ``base`` and ``head`` say what the sides were."""
    info = records.info
    names = list(info.loads)
    minutes = max(0.0, (info.completed_at or info.started_at) - info.started_at) / 60
    sure = 1 - 0.05 / max(1, len(names))
    found = tuple(_judge(records, name, fail_over, sure, minutes) for name in names)
    at_rate = [trial for trial in records.trials if trial.load.kind == "open"]
    most = max(found, key=lambda each: -1 if each.rate is None else each.rate, default=None)
    memory = _ratio(at_rate, HEAD, most.request, "memory", 0.95) if most else None
    started = ratio((), (HEAD, "", ANY), (BASE, "", ANY), "startup-time", 0.95, records.processes)
    order: tuple[Verdict, ...] = ("failed", "slower", "cannot tell", "faster", "the same")
    verdict = min((each.verdict for each in found), key=order.index, default="cannot tell")
    return GateResult(
        base=base, head=head, fail_over=fail_over, verdict=verdict, requests=found, memory=memory, startup_time=started,
        minutes=minutes, started_at=info.started_at, notes=tuple(notes),
    )  # fmt: skip


def _judge(records: RunRecords, name: str, margin: float, confidence: float, minutes: float) -> RequestVerdict:
    for verdict in records.verdicts:
        if verdict.test_type in (name, "http") and verdict.outcome is Outcome.FAIL:
            failed = next(r for r in verdict.results if r.outcome is Outcome.FAIL)
            expected = f": expected {failed.expected}, got {failed.actual}" if failed.expected is not None else ""
            said: Verdict = "failed" if verdict.implementation == HEAD else "cannot tell"
            reason = f"{verdict.implementation} answers wrong: {failed.message}{expected}"
            return RequestVerdict(request=name, verdict=said, reason=reason)
    own = [t for t in records.trials if t.test_type == name and t.purpose == "measure"]
    at_rate = [t for t in own if t.load.kind == "open"]
    good = [t for t in at_rate if t.rankable]
    if missing := [side for side in (BASE, HEAD, COPY) if not any(t.implementation == side for t in good)]:
        return RequestVerdict(request=name, verdict="cannot tell", reason=_why(records, own, missing[0]))
    metric = "cpu-per-request" if all(t.cpu_per_request for t in good) else "response-time"
    head = _ratio(good, HEAD, name, metric, confidence)
    noise = _ratio(good, COPY, name, metric, confidence)
    closed = [t for t in own if t.load.kind == "closed" and t.rankable]
    shown = RequestVerdict(
        request=name, verdict="cannot tell", ratio=head, noise=noise, rate=getattr(good[0].load, "rate", None),
        metric="CPU per request" if metric == "cpu-per-request" else "response time",
        values=_both(good, METRICS[metric].read),
        p50=_both(good, lambda t: t.latency.percentiles.get("50") if t.latency else None),
        p99=_both(good, lambda t: t.latency.percentiles.get("99") if t.latency else None),
        throughput=_ratio(closed, HEAD, name, "throughput", 0.95),
    )  # fmt: skip
    if not head or not noise or not head.low or not head.high or not noise.low or not noise.high:
        return shown.model_copy(update={"reason": "too few trials: give it more time"})
    if noise.low > 1 or noise.high < 1:
        return shown.model_copy(update={"reason": "base and its copy, the same program, differ in this session"})
    half, value = math.log(head.high / head.low) / 2, abs(math.log(head.value))
    if half > math.log(WIDEST):
        return shown.model_copy(update={"ratio": None, "noise": None, "reason": "too few trials: give it more time"})
    wanted = max(value, math.log1p(margin) - value)
    more = minutes * ((half / wanted) ** 2 - 1) if wanted > 0 else math.inf
    return shown.model_copy(
        update={
            "verdict": decided(head, margin),
            "detectable": math.expm1(POWER * half),
            "minutes_more": more if 0 < more <= MOST_MINUTES else None,
        }
    )


def decided(found: Ratio, margin: float) -> Verdict:
    """By an interval of a cost: the same where it leaves no room for more than the margin."""
    low, high = found.low or 0.0, found.high or math.inf
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return "the same"
    return "slower" if low > 1 else "faster" if high < 1 else "cannot tell"


def _ratio(trials: Sequence[Trial], side: str, name: str, metric: str, confidence: float) -> Ratio | None:
    loads = {trial.load for trial in trials if trial.test_type == name}
    if len(loads) != 1:
        return None
    load = loads.pop()
    return ratio(trials, (side, name, load), (BASE, name, load), metric, confidence)


def _both(trials: Sequence[Trial], read: Callable[[Trial], float | None]) -> tuple[float, float] | None:
    """Medians over the trials of base and head."""
    found = []
    for side in (BASE, HEAD):
        known = [value for t in trials if t.implementation == side and (value := read(t))]
        if not known:
            return None
        found.append(median(known))
    return found[0], found[1]


def _why(records: RunRecords, own: Sequence[Trial], side: str) -> str:
    for process in records.processes:
        if process.implementation == side and process.reason:
            return f"{side}: {process.reason.splitlines()[0]}"
    words = [gate.word for trial in own if trial.implementation == side for gate in trial.gates if gate.word]
    return f"{side}: {', '.join(dict.fromkeys(words)) or 'not measured in the time given'}"
