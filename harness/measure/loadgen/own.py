"""The project's own generator: open loop with latency from the intended send time, or closed loop with service time."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import LoadError
from harness.measure.loadgen import AtRate, Load, LoadResult
from harness.records.models import Errors, Latency, LatencyBasis

TIMEOUT_SECONDS = 8  # TechEmpower's
DRAIN_SECONDS = 8  # the program's own default
MAX_LINE_BYTES = 4 << 20
MAX_LINES = 200_000
PERCENTILES = ("50", "75", "90", "95", "99", "99.9", "99.99")
NS = 1e-9

ModelT = TypeVar("ModelT", bound=BaseModel)


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class _Kind(_Line):
    kind: str


class Distribution(_Line):
    """Times in nanoseconds; ``distribution_ns`` lies on a grid that all generators share, cells at most 1/64 wide."""

    count: int
    mean_ns: float
    stdev_ns: float
    min_ns: int
    max_ns: int
    percentiles_ns: dict[str, int]
    distribution_ns: tuple[tuple[int, int], ...]  # (middle of the cell, count), ascending
    hdr_v2: str | None = None  # base64; absent of merged ones

    def quantile(self, share: float) -> float:
        """Seconds at or below which this share of the times lies; within 1 %. ``share`` in 0 < share <= 1."""
        rank = math.ceil(share * self.count)
        passed = 0
        for value, count in self.distribution_ns:
            passed += count
            if passed >= rank:
                return value * NS
        return self.max_ns * NS


class Faults(_Line):
    """What went wrong, by kind: ``connect`` counts tries to connect, all others requests."""

    connect: int
    write: int
    closed: int
    timeout: int
    framing: int
    dropped: int
    status: int
    length: int
    body: int


class Counts(_Line):
    """What an interval, the drain or the whole load counted."""

    sent: int
    received: int
    successes: int
    unasked_responses: int
    unasked_bytes: int
    bytes_out: int
    bytes_in: int
    response_bytes: int
    connections_opened: int
    connections_closed_by_peer: int
    reconnects: int
    connections_hung: int
    sampled: int
    sampled_over_limit: int
    backlog_peak: int
    errors: Faults
    statuses: dict[str, int]
    latency: Distribution | None
    service: Distribution | None
    lag: Distribution | None


class Ready(_Line):
    """All connections are established (or shall be at the start), or not."""

    kind: Literal["ready"]
    ready: bool
    connections: int
    connections_asked: int
    pid: int
    now_ns: int


class Interval(Counts):
    """About a second of the load; times of the machine's monotonic clock."""

    kind: Literal["interval"]
    index: int
    start_ns: int
    end_ns: int
    seconds: float
    cpu_seconds: float


class InTime(_Line):
    """What came before the load's end: throughput is made of these."""

    received: int
    successes: int
    bytes_in: int


class Total(Counts):
    """The whole load with what was answered after its end."""

    kind: Literal["total"]
    loop: Literal["open", "closed"]
    rate: float | None
    connections: int
    threads: int
    depth: int
    start_ns: int
    end_ns: int
    seconds: float
    stopped_by: Literal["duration", "asked"]
    in_time: InTime
    drain_seconds: float
    unsent: int
    unfinished: int
    cpu_seconds: float
    run_queue_wait_seconds: float | None

    @property
    def throughput(self) -> float:
        """Successes per second of the load."""
        return self.in_time.successes / self.seconds


@dataclass(frozen=True, kw_only=True)
class Report:
    """All lines of one run."""

    ready: Ready
    intervals: tuple[Interval, ...]
    total: Total


@dataclass(frozen=True, kw_only=True)
class Own:
    """Arguments and results of ``toolset/loadgen``; with ``rate`` an open loop."""

    rate: float | None = None  # requests per second
    arrivals: Literal["poisson", "uniform"] = "poisson"
    seed: int = 1
    start_at_once: bool = True  # False: it waits for `go` on its standard input
    extra: tuple[str, ...] = ()  # further options, as docs/load-generator.md lists them
    program: str = "loadgen"  # for the runtime: a name that it knows, or a path (``build.loadgen``)
    folder: Path | None = None  # of files that it writes
    prefix: tuple[str, ...] = ()  # before the arguments, where ``program`` is one that starts the generator
    timeout_seconds: float = float(TIMEOUT_SECONDS + DRAIN_SECONDS)

    @property
    def waits_for_go(self) -> bool:
        """Connections are up before the load begins, and the harness reads its first figures between."""
        return not self.start_at_once

    def arguments(self, load: Load) -> Sequence[str]:
        """The command line; the headers' order is drawn, since wrk's is another in each of its processes."""
        headers = [f"Host: {load.host}", f"Accept: {load.accept}", "Connection: keep-alive"]
        random.Random(self.seed).shuffle(headers)
        words = [word for header in headers for word in ("--header", header)]
        words += ["--connections", str(load.connections), "--threads", str(load.threads)]
        words += ["--depth", str(load.pipeline), "--duration", f"{load.seconds:g}", "--timeout", str(TIMEOUT_SECONDS)]
        words += ["--seed", str(self.seed)]
        if self.rate is not None:
            words += ["--rate", f"{self.rate:g}", "--arrivals", self.arrivals]
        if self.start_at_once:
            words.append("--start-at-once")
        return [*self.prefix, *words, *self.extra, load.url]

    def result(self, load: Load, output: str) -> LoadResult:
        """The harness's common figures, of several clients as one; raises LoadError with what came instead."""
        totals = [each.total for each in reports(output, load.url)]
        try:
            if len(totals) == 1:
                return self._figures(load, totals[0])
            parts = tuple(self._figures(load, total) for total in totals)
            return replace(self._figures(load, merge(totals)), parts=parts)
        except (ArithmeticError, LookupError) as error:
            raise LoadError(f"loadgen printed figures for {load.url} that no load has: {error}") from error

    def _figures(self, load: Load, total: Total) -> LoadResult:
        faults = total.errors
        return LoadResult(
            duration=total.seconds,
            requests=total.in_time.received,
            bytes=total.in_time.bytes_in,
            errors=Errors(
                connect=faults.connect,
                read=faults.closed + faults.framing + faults.dropped + faults.length + faults.body,
                write=faults.write,
                timeout=faults.timeout + total.unfinished + total.unsent,
                status=faults.status,
            ),
            latency=_published(load, total),
            cpu_seconds=total.cpu_seconds,
            wait_seconds=total.run_queue_wait_seconds,
            at_rate=_at_rate(total) if total.loop == "open" else None,
        )


def _published(load: Load, total: Total) -> Latency | None:
    """From the intended send time where there is one; a closed loop's service time, but not of pipelined requests."""
    if total.latency is not None:
        return as_latency(total.latency)
    if total.loop == "open" or total.service is None or load.pipeline > 1:
        return None
    return as_latency(total.service, "closed-loop, service time")


def _at_rate(total: Total) -> AtRate:
    latency, lag = total.latency, total.lag
    return AtRate(
        due=total.sent + total.unsent,
        answered=total.successes,
        unfinished=total.unfinished + total.unsent,
        service=as_latency(total.service, "closed-loop, service time") if total.service else None,
        lag_p99=lag.percentiles_ns["99"] * NS if lag else None,
        lag_max=lag.max_ns * NS if lag else None,
        late=lambda seconds: later(latency, seconds),
        sent_late=lambda seconds: later(lag, seconds),
    )


def later(times: Distribution | None, seconds: float) -> int:
    """How many of the times are longer, counted on cells at most 1/64 wide."""
    return sum(count for value, count in times.distribution_ns if value * NS > seconds) if times else 0


def as_latency(distribution: Distribution, basis: LatencyBasis = "open-loop, intended send time") -> Latency:
    """A distribution in the harness's own terms, seconds."""
    return Latency(
        basis=basis,
        mean=distribution.mean_ns * NS,
        stdev=distribution.stdev_ns * NS,
        min=distribution.min_ns * NS,
        max=distribution.max_ns * NS,
        percentiles={point: distribution.percentiles_ns[point] * NS for point in PERCENTILES},
        histogram=tuple((value * NS, count) for value, count in distribution.distribution_ns),
    )


def read(output: str, url: str) -> Report:
    """All lines of a run; raises LoadError where one is missing, too long or not as documented."""
    return reports(output, url)[-1]


def reports(output: str, url: str) -> tuple[Report, ...]:
    """Of each generator whose output this is, one after another; raises LoadError as ``read``."""
    found: list[Report] = []
    ready: Ready | None = None
    intervals: list[Interval] = []
    total: Total | None = None
    for line in _lines(output, url):
        try:
            if line.startswith("{") and (entry := _Kind.model_validate_json(line)):
                match entry.kind:
                    case "ready":
                        if ready is not None and total is not None:  # the next generator's output begins
                            found.append(_report(ready, intervals, total, url))
                            intervals, total = [], None
                        ready = Ready.model_validate_json(line)
                    case "interval":
                        intervals.append(Interval.model_validate_json(line))
                    case "total":
                        total = Total.model_validate_json(line)
                    case _:
                        pass  # the drain is within the total
        except ValidationError as error:
            raise LoadError(f"loadgen printed a line for {url} that is not as documented: {line[:300]}") from error
    if ready is None or total is None:
        raise LoadError(f"loadgen printed no result for {url}: {output.strip()[-500:] or 'nothing at all'}")
    return (*found, _report(ready, intervals, total, url))


def _report(ready: Ready, intervals: Sequence[Interval], total: Total, url: str) -> Report:
    if total.seconds <= 0:
        raise LoadError(f"loadgen reports no duration for {url}")
    return Report(ready=ready, intervals=tuple(intervals), total=total)


def _lines(output: str, url: str) -> Iterator[str]:
    for number, line in enumerate(output.splitlines()):
        if number >= MAX_LINES or len(line) > MAX_LINE_BYTES:
            raise LoadError(f"loadgen printed more than {MAX_LINES} lines or {MAX_LINE_BYTES} bytes in one for {url}")
        yield line


def merge(totals: Sequence[Total]) -> Total:
    """Several generators as one: counts, rates and CPU add, distributions merge, the longest time counts.

    Raises ValueError for none, or for loads of different kinds.
    """
    if not totals:
        raise ValueError("nothing to merge")
    first = totals[0]
    if len({(total.loop, total.depth) for total in totals}) > 1:
        raise ValueError("loads of different kinds do not merge")
    added = {
        name: sum(getattr(total, name) for total in totals)
        for name, field in Total.model_fields.items()
        if field.annotation is int and name not in {"start_ns", "end_ns", "depth"}
    }
    start, end = min(total.start_ns for total in totals), max(total.end_ns for total in totals)
    waits = [total.run_queue_wait_seconds for total in totals]
    return first.model_copy(
        update={
            **added,
            "start_ns": start,
            "end_ns": end,
            "seconds": max(total.seconds for total in totals),  # monotonic clocks of several machines do not compare
            "rate": None if first.rate is None else sum(total.rate or 0.0 for total in totals),
            "stopped_by": "asked" if any(total.stopped_by == "asked" for total in totals) else "duration",
            "in_time": _add(InTime, [total.in_time for total in totals]),
            "errors": _add(Faults, [total.errors for total in totals]),
            "statuses": dict(sum((Counter(total.statuses) for total in totals), Counter())),
            "drain_seconds": max(total.drain_seconds for total in totals),
            "cpu_seconds": sum(total.cpu_seconds for total in totals),
            "run_queue_wait_seconds": None if None in waits else sum(wait for wait in waits if wait is not None),
            "latency": merge_distributions(total.latency for total in totals),
            "service": merge_distributions(total.service for total in totals),
            "lag": merge_distributions(total.lag for total in totals),
        }
    )


def _add(model: type[ModelT], parts: Sequence[ModelT]) -> ModelT:
    return model(**{name: sum(getattr(part, name) for part in parts) for name in model.model_fields})


def merge_distributions(parts: Iterable[Distribution | None]) -> Distribution | None:
    """One distribution of all times: exact counts, mean, minimum and maximum; percentiles within 1 %."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    cells: Counter[int] = Counter()
    for part in known:
        for value, count in part.distribution_ns:
            cells[value] += count
    count = sum(part.count for part in known)
    mean = sum(part.mean_ns * part.count for part in known) / count
    squares = sum((part.stdev_ns**2 + (part.mean_ns - mean) ** 2) * part.count for part in known)
    merged = Distribution(
        count=count,
        mean_ns=mean,
        stdev_ns=math.sqrt(squares / count),
        min_ns=min(part.min_ns for part in known),
        max_ns=max(part.max_ns for part in known),
        percentiles_ns={},
        distribution_ns=tuple(sorted(cells.items())),
    )
    points = {point: round(merged.quantile(float(point) / 100) / NS) for point in known[0].percentiles_ns}
    return merged.model_copy(update={"percentiles_ns": points})
