"""The project's own generator, toolset/loadgen: its arguments and its last line."""

import base64
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import LoadError
from harness.experiment.generators import (
    DRAIN_SECONDS,
    MIN_LAG_SECONDS,
    RESPONSES_FILE,
    TIMEOUT_SECONDS,
    LoadResult,
    LoadRun,
    headers,
)
from harness.host import process
from harness.plan.requests import PreparedRequest
from harness.plan.scenarios import plan
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.records.measurements import Arrivals, ErrorCounts, Latency, OperationTimes, UseCaseTimes
from harness.runtime import Runtime
from harness.verify.checks.evidence import RequestCounts

PLAN_FILE, REQUESTS_FILE = (
    "plan.json",
    "requests.jsonl",
)  # of a scenario, and of a service's requests, in the load's folder
REALTIME, ORDINARY = ("--rr", "1"), ("--other", "0")  # chrt's: the lowest of the real-time priorities, and none
# Awake before each request of an open loop, so that it is sent in time, at most a tenth of the time: in real-time
# priority threads that never sleep take the CPUs from a server beside them.
SPIN_MICROS, SPIN_SHARE = 50.0, 0.1
PERCENTILES = ("50", "75", "90", "95", "99", "99.9", "99.99")
TIMES = frozenset({"latency", "service", "lag"})
DIGITS = 2  # that a histogram keeps behind the first: its line stays short
NS = 1e-9

PartT = TypeVar("PartT", bound="_Part")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Times(_Part):
    """Nanoseconds; ``distribution_ns`` lies on a grid that all generators share, cells at most 1/64 wide."""

    count: int = Field(gt=0)
    mean_ns: float
    stdev_ns: float
    min_ns: int
    max_ns: int
    percentiles_ns: dict[str, int]
    distribution_ns: tuple[tuple[int, int], ...]  # (middle of the cell, count), ascending

    def quantile(self, share: float) -> int:
        """Nanoseconds at or below which this share of the times lies; within 1 %. ``share`` in 0 < share <= 1."""
        rank, passed = math.ceil(share * self.count), accumulate(count for _, count in self.distribution_ns)
        found = (value for (value, _), so_far in zip(self.distribution_ns, passed, strict=True) if so_far >= rank)
        return next(found, self.max_ns)

    def later_than(self, seconds: float) -> int:
        """How many of the times are longer."""
        return sum(count for value, count in self.distribution_ns if value * NS > seconds)


class Faults(_Part):
    """What went wrong, by kind: ``connect`` counts tries to connect, all others requests."""

    connect: int
    write: int
    closed: int
    timeout: int
    framing: int
    dropped: int  # behind one whose connection was given up
    status: int
    lacking: int  # of a scenario: an answer without what a later step needs

    def errors(self, never_answered: int) -> ErrorCounts:
        """In the records' terms."""
        read = self.closed + self.framing + self.dropped + self.lacking
        timeout = self.timeout + never_answered
        return ErrorCounts(connect=self.connect, read=read, write=self.write, timeout=timeout, status=self.status)


class Operation(_Part):
    """One step of one use case."""

    use_case: str
    operation: str
    due: int
    answered: int
    unfinished: int
    errors: Faults
    latency: Times | None
    service: Times | None


class UseCaseResult(_Part):
    """Whole arrivals of one use case; ``latency`` from the coming to the last answer."""

    use_case: str
    due: int
    done: int
    failed: int
    unfinished: int
    latency: Times | None


class Total(_Part):
    """The last line of one generator: the whole load with what was answered after its end (docs/load-generator.md)."""

    loop: Literal["closed", "open", "scenario"]
    depth: int
    seconds: float
    in_time: dict[str, int]  # what came before the load's end: throughput is made of these
    due: int
    sent: int
    received: int
    successes: int
    unsent: int
    unfinished: int
    unasked_responses: int
    unasked_bytes: int
    connections_hung: int
    connections_closed_by_peer: int
    sampled: int
    errors: Faults
    statuses: dict[str, int]
    latency: Times | None
    service: Times | None
    lag: Times | None
    drain_seconds: float
    cpu_seconds: float
    run_queue_wait_seconds: float | None
    operations: tuple[Operation, ...] = ()
    use_cases: tuple[UseCaseResult, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Loadgen:
    """``toolset/loadgen``: closed loop, open loop and scenario; latency from the intended send time."""

    binary: str = "loadgen"
    chrt: str | None = None  # starts it with the priority that its load needs
    name: Literal["loadgen"] = "loadgen"
    waits_for_go: bool = True

    @classmethod
    def of(cls, runtime: Runtime) -> Self:
        """Built if it is not yet; raises EnvironmentLacksError and BuildError where it cannot be.

        On CPUs that it shares with the server it would wait for it, and measure its own waiting, but for its priority.
        """
        chrt = shutil.which("chrt") if runtime.name == "local" else None
        if chrt and process.run([chrt, *REALTIME, "true"], seconds=10).status != 0:
            chrt = None  # not allowed here
        return cls(binary=runtime.own_generator(), chrt=chrt)

    @property
    def program(self) -> str:
        """The generator, or what starts it."""
        return self.chrt or self.binary

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """The command line; the headers' order is drawn, since wrk's is another in each of its processes."""
        load, url = run.load, run.url
        lines = [] if run.requests else list(headers(run))
        random.Random(run.seed).shuffle(lines)
        words = [word for header in lines for word in ("--header", header)]
        words += ["--connections", str(load.connections), "--threads", str(run.threads)]
        words += ["--duration", f"{run.seconds:g}", "--timeout", str(TIMEOUT_SECONDS), "--seed", str(run.seed)]
        # A closed loop has a few requests under way: it waits for them as for any other.
        drain = TIMEOUT_SECONDS if isinstance(load, ClosedLoop) else DRAIN_SECONDS
        words += ["--drain-seconds", f"{drain:g}"]
        if isinstance(load, Scenario):
            (folder / PLAN_FILE).write_text(json.dumps(plan(run.use_cases, load.factor)), encoding="utf-8")
            words += ["--scenario", str(folder / PLAN_FILE)]
            words += ["--answers", str(folder / RESPONSES_FILE)] if run.sampling else []
        else:
            if isinstance(load, OpenLoop):
                spin = min(SPIN_MICROS, SPIN_SHARE * 1e6 * run.threads / load.rate)
                words += ["--rate", f"{load.rate:g}", "--spin", f"{spin:.3g}"]
            else:
                words += ["--depth", str(load.depth)]
            if run.sampling:
                words += ["--answers", str(folder / RESPONSES_FILE), "--answers-share", f"{run.sampling.share:.6g}"]
                words += [
                    "--answers-limit",
                    str(run.sampling.max_responses),
                    "--answers-bytes",
                    str(run.sampling.max_bytes),
                ]
        if run.requests:
            (folder / REQUESTS_FILE).write_text(
                "".join(_line(each, run.host) for each in run.requests), encoding="utf-8"
            )
            words += ["--requests", str(folder / REQUESTS_FILE)]
        if run.requests or isinstance(load, Scenario):
            parts = urlsplit(url)
            url = f"{parts.scheme}://{parts.netloc}"
        priority = ORDINARY if isinstance(load, ClosedLoop) else REALTIME
        return [*((*priority, self.binary) if self.chrt else ()), *words, url]

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """The common figures, of several clients as one; raises LoadError with what came instead."""
        found = parse_totals(output, run.url)
        try:
            if len(found) == 1:
                return _figures(run, found[0])
            parts = tuple(_figures(run, each) for each in found)
            return _figures(run, merge_totals(found)).model_copy(update={"parts": parts})
        except (ArithmeticError, LookupError, ValueError) as error:
            raise LoadError(f"loadgen printed figures for {run.url} that no load has: {error}") from error


def _line(request: PreparedRequest, host: str) -> str:
    line = {
        "head": request.head(host).decode(),
        "body_base64": base64.b64encode(request.body).decode(),
        "status": request.expect.status,
        "weight": 1.0,
    }
    return f"{json.dumps(line)}\n"


def parse_totals(output: str, url: str) -> tuple[Total, ...]:
    """Of each generator whose output this is; raises LoadError where one is missing or not as documented."""
    found: list[Total] = []
    begun = 0
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            document = json.loads(line)
            begun += document["kind"] == "ready"
            if document["kind"] == "total":
                found.append(Total.model_validate(document))
        except (ValueError, LookupError, TypeError, RecursionError) as error:  # of JSON, of the model
            raise LoadError(f"loadgen printed a line for {url} that is not as documented: {line[:300]}") from error
    if not found or len(found) != begun:
        raise LoadError(f"loadgen printed no result for {url}: {output.strip()[-500:] or 'nothing at all'}")
    if any(each.seconds <= 0 for each in found):
        raise LoadError(f"loadgen reports no duration for {url}")
    return tuple(found)


def merge_totals(parts: Sequence[Total]) -> Total:
    """Several generators as one: counts and CPU add, distributions merge, the longest time counts.

    Raises ValueError for loads of different kinds. A scenario is made by one.
    """
    if len({(part.loop, part.depth) for part in parts}) > 1:
        raise ValueError("loads of different kinds do not merge")
    waits = [part.run_queue_wait_seconds for part in parts]
    return _added(parts).model_copy(
        update={
            "depth": parts[0].depth,
            "seconds": max(part.seconds for part in parts),  # monotonic clocks of several machines do not compare
            "drain_seconds": max(part.drain_seconds for part in parts),
            "run_queue_wait_seconds": None if None in waits else sum(filter(None, waits)),
        }
    )


def _added(parts: Sequence[PartT]) -> PartT:
    """Numbers add, times merge; of anything else the first stands."""
    added: dict[str, Any] = {}
    for name in type(parts[0]).model_fields:
        values = [getattr(part, name) for part in parts]
        match values[0]:
            case _ if name in TIMES:
                added[name] = merge_times(values)
            case _Part():
                added[name] = _added(values)
            case dict():
                added[name] = {key: sum(part.get(key, 0) for part in values) for one in values for key in one}
            case int() | float() if None not in values:
                added[name] = sum(values)
    return parts[0].model_copy(update=added)


def merge_times(parts: Iterable[Times | None]) -> Times | None:
    """One distribution of all times: exact counts, mean, minimum and maximum; percentiles within 1 %."""
    known = [part for part in parts if part is not None]
    if len(known) < 2:
        return known[0] if known else None
    cells: Counter[int] = sum((Counter(dict(part.distribution_ns)) for part in known), Counter())
    count = sum(part.count for part in known)
    mean = sum(part.mean_ns * part.count for part in known) / count
    squares = sum((part.stdev_ns**2 + (part.mean_ns - mean) ** 2) * part.count for part in known)
    whole = Times(
        count=count,
        mean_ns=mean,
        stdev_ns=math.sqrt(squares / count),
        min_ns=min(part.min_ns for part in known),
        max_ns=max(part.max_ns for part in known),
        percentiles_ns={},
        distribution_ns=tuple(sorted(cells.items())),
    )
    points = {point: whole.quantile(float(point) / 100) for point in known[0].percentiles_ns}
    return whole.model_copy(update={"percentiles_ns": points})


def _figures(run: LoadRun, total: Total) -> LoadResult:
    never = total.unfinished + total.unsent
    closed = total.loop == "closed"
    result = LoadResult(
        duration=total.seconds,
        requests=total.in_time["received"],
        in_time=total.in_time["successes"],
        bytes=total.in_time["bytes_in"],
        errors=total.errors.errors(never),
        latency=_latency(total.service if closed and total.depth == 1 else total.latency, closed=closed),
        cpu_seconds=total.cpu_seconds,
        wait_seconds=total.run_queue_wait_seconds,
        account=_account(total),
    )
    if closed:
        return result
    lag, latency, late, sent_late = total.lag, total.latency, None, None
    if run.late_after is not None:
        late = total.due - total.successes + (latency.later_than(run.late_after) if latency else 0)
    if lag and latency:  # later than the gate of the generator's lag allows
        sent_late = lag.later_than(max(run.lag_share * latency.percentiles_ns["99"] * NS, MIN_LAG_SECONDS))
    return result.model_copy(
        update={
            "service": _latency(total.service, closed=True),
            "due": total.due,
            "answered": total.successes,
            "unfinished": never,
            "late": late,
            "lag_p99": lag.percentiles_ns["99"] * NS if lag else None,
            "sent_late": sent_late,
            "arrivals": _arrivals(run, total) if total.loop == "scenario" else None,
        }
    )


def _latency(times: Times | None, *, closed: bool) -> Latency | None:
    """In the records' terms; the histogram's values have three significant digits."""
    if times is None:
        return None
    bins: Counter[float] = Counter()
    for value, count in times.distribution_ns:
        seconds = value * NS
        bins[round(seconds, DIGITS - math.floor(math.log10(seconds))) if value > 0 else 0.0] += count
    return Latency(
        basis="closed-loop, service time" if closed else "open-loop, intended send time",
        mean=times.mean_ns * NS,
        stdev=times.stdev_ns * NS,
        min=times.min_ns * NS,
        max=times.max_ns * NS,
        percentiles={point: times.percentiles_ns[point] * NS for point in PERCENTILES},
        histogram=tuple(sorted(bins.items())),
    )


def _account(total: Total) -> RequestCounts:
    """What has no answer after a drain as long as the timeout is missing, not under way."""
    return RequestCounts(
        sent=total.sent,
        received=total.received,
        successes=total.successes,
        failed=total.received - total.successes,
        unsolicited=total.unasked_responses,
        unsolicited_bytes=total.unasked_bytes,
        unfinished=0 if total.drain_seconds >= TIMEOUT_SECONDS else total.unfinished,
        hung_connections=total.connections_hung,
        closed_connections=total.connections_closed_by_peer,
        interrupted=total.errors.closed + total.errors.write,
        malformed=total.errors.framing + total.errors.dropped,
        statuses=total.statuses,
        all_recorded=total.sampled == total.received,
    )


def _arrivals(run: LoadRun, total: Total) -> Arrivals:
    """Everything that was due has come to an end that is counted; raises LoadError where it has not."""
    cases = total.use_cases
    ends = [(one.due, one.done + one.failed + one.unfinished) for one in cases]
    ends += [(one.due, one.answered + one.errors.errors(one.unfinished).total) for one in total.operations]
    if any(due != ended for due, ended in ends):
        raise LoadError(f"loadgen's counts for {run.url} do not add up: (due, ended) {ends}")
    counts = ("due", "done", "failed", "unfinished")
    return Arrivals(
        **{count: sum(getattr(one, count) for one in cases) for count in counts},
        operations=tuple(
            OperationTimes.model_validate({**vars(one), **_latencies(one), "errors": one.errors.errors(0)})
            for one in total.operations
        ),
        use_cases=tuple(UseCaseTimes.model_validate({**vars(one), **_latencies(one)}) for one in cases),
    )


def _latencies(one: Operation | UseCaseResult) -> dict[str, Latency | None]:
    service = one.service if isinstance(one, Operation) else None
    return {"latency": _latency(one.latency, closed=False), "service": _latency(service, closed=True)}
