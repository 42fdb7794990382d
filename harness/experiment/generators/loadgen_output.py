"""Parses the output of toolset/loadgen, which consists of JSON lines, and merges the results of several generators."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import LoadError
from harness.records.measurements import ErrorCounts
from harness.units import NS

DISTRIBUTIONS = frozenset({"latency", "service", "lag"})  # fields of type ``Times``

PartT = TypeVar("PartT", bound="_Part")
# No real load reaches these limits. A larger value means that the generator is faulty.
Count = Annotated[int, Field(ge=0, lt=10**15)]
MeasuredNanoseconds = Annotated[int, Field(ge=0, lt=10**18)]
MeasuredSeconds = Annotated[float, Field(ge=0, lt=1e9)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Times(_Part):
    """A distribution of times in nanoseconds. All generators use the same bins (width: at most 1/64 of the value)."""

    count: Count = Field(gt=0)
    mean_ns: float = Field(ge=0, lt=1e18)
    stdev_ns: float = Field(ge=0, lt=1e18)
    min_ns: MeasuredNanoseconds
    max_ns: MeasuredNanoseconds
    percentiles_ns: dict[str, MeasuredNanoseconds]
    distribution_ns: tuple[
        tuple[MeasuredNanoseconds, Count], ...
    ]  # (middle of the bin, count) pairs in ascending order

    def quantile(self, share: float) -> int:
        """Return a quantile in nanoseconds with an error of at most 1 %; ``share`` is above 0 and at most 1."""
        rank, cumulative = math.ceil(share * self.count), accumulate(count for _, count in self.distribution_ns)
        values = (value for (value, _), so_far in zip(self.distribution_ns, cumulative, strict=True) if so_far >= rank)
        return next(values, self.max_ns)

    def later_than(self, seconds: float) -> int:
        """Return how many of the times exceed a limit, which is given in seconds."""
        return sum(count for value, count in self.distribution_ns if value * NS > seconds)


class Faults(_Part):
    """Counts of failed requests by error type."""

    connect: Count  # failed attempts to connect
    write: Count
    closed: Count
    timeout: Count
    framing: Count
    dropped: Count  # requests lost because an earlier error closed their connection
    reset: Count  # HTTP/2 streams that the server reset
    mismatch: Count  # WebSocket echoes that differ from the message sent
    status: Count
    missing_value: Count  # scenario responses that lack a value required by a later step

    def errors(self, unanswered: int) -> ErrorCounts:
        """Convert the counts to recorded errors. The ``unanswered`` requests count as timeouts."""
        read = self.closed + self.framing + self.dropped + self.reset + self.mismatch + self.missing_value
        timeout = self.timeout + unanswered
        return ErrorCounts(connect=self.connect, read=read, write=self.write, timeout=timeout, status=self.status)


class Operation(_Part):
    """The results of a step in a use case."""

    use_case: str
    operation: str
    due: Count
    answered: Count
    unfinished: Count
    errors: Faults
    latency: Times | None
    service: Times | None


class UseCaseResult(_Part):
    """The results of all arrivals of a use case."""

    use_case: str
    due: Count
    done: Count
    failed: Count
    unfinished: Count
    latency: Times | None  # from the arrival to the last response


class Total(_Part):
    """The last line of a generator's output, with the totals of the load (docs/load-generator.md)."""

    loop: Literal["closed", "open", "scenario"]
    protocol: str = "http1"
    depth: Count
    seconds: MeasuredSeconds
    in_time: dict[str, Count]  # counts before the end of the load, from which throughput is computed
    due: Count
    sent: Count
    received: Count
    successes: Count
    unsent: Count
    unfinished: Count
    unsolicited_responses: Count
    unsolicited_bytes: Count
    connections_hung: Count
    connections_closed_by_peer: Count
    peer_settings: dict[str, Count] | None = None  # setting of the HTTP/2 server -> lowest observed value
    tls_sessions: dict[str, Count] = Field(default={})  # negotiated TLS parameters -> number of connections
    sampled: Count
    errors: Faults
    statuses: dict[str, Count]
    latency: Times | None
    service: Times | None
    lag: Times | None
    drain_seconds: MeasuredSeconds
    cpu_seconds: MeasuredSeconds
    run_queue_wait_seconds: MeasuredSeconds | None
    operations: tuple[Operation, ...] = ()
    use_cases: tuple[UseCaseResult, ...] = ()


def parse_totals(output: str, url: str) -> tuple[Total, ...]:
    """Return the total of each generator in the output. Raises LoadError if a total is missing or invalid."""
    totals: list[Total] = []
    started = 0
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            document = json.loads(line)
            started += document["kind"] == "ready"
            if document["kind"] == "total":
                totals.append(Total.model_validate(document))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise LoadError(
                f"loadgen printed a malformed line for {url} (format: docs/load-generator.md): {line[:300]}"
            ) from error
    if not totals or len(totals) != started:
        raise LoadError(f"loadgen printed no result for {url}: {output.strip()[-500:] or 'no output'}")
    if any(each.seconds <= 0 for each in totals):
        raise LoadError(f"loadgen reported no duration for {url}: expected more than 0 s")
    return tuple(totals)


def merge_totals(parts: Sequence[Total]) -> Total:
    """Merge several generators' totals. Raises ValueError if they differ in loop type, protocol or depth.

    Counts and CPU times are added, and distributions are merged. The longest duration is used, because the monotonic
    clocks of different machines cannot be compared.
    """
    if len({(part.loop, part.protocol, part.depth) for part in parts}) > 1:
        raise ValueError("loads that differ in loop type, protocol or depth cannot be merged")
    waits = [part.run_queue_wait_seconds for part in parts]
    return _add(parts).model_copy(
        update={
            "depth": parts[0].depth,
            "peer_settings": _lowest([part.peer_settings for part in parts if part.peer_settings]),
            "seconds": max(part.seconds for part in parts),
            "drain_seconds": max(part.drain_seconds for part in parts),
            "run_queue_wait_seconds": None if None in waits else sum(filter(None, waits)),
        }
    )


def _lowest(settings: Sequence[Mapping[str, int]]) -> dict[str, int] | None:
    """Return the lowest value of each setting, or None if there are no settings."""
    names = dict.fromkeys(name for each in settings for name in each)
    return {name: min(each[name] for each in settings if name in each) for name in names} or None


def _add(parts: Sequence[PartT]) -> PartT:
    """Add the parts' numbers and merge their distributions. Copy all other values from the first part."""
    sums: dict[str, Any] = {}
    for name in type(parts[0]).model_fields:
        values = [getattr(part, name) for part in parts]
        match values[0]:
            case _ if name in DISTRIBUTIONS:
                sums[name] = merge_times(values)
            case _Part():
                sums[name] = _add(values)
            case dict():
                sums[name] = {key: sum(part.get(key, 0) for part in values) for value in values for key in value}
            case int() | float() if None not in values:
                sums[name] = sum(values)
    return parts[0].model_copy(update=sums)


def merge_times(parts: Iterable[Times | None]) -> Times | None:
    """Merge distributions, and return None if all are None. Percentiles have an error of at most 1 %."""
    known_parts = [part for part in parts if part is not None]
    if len(known_parts) < 2:
        return known_parts[0] if known_parts else None
    bins: Counter[int] = sum((Counter(dict(part.distribution_ns)) for part in known_parts), Counter())
    count = sum(part.count for part in known_parts)
    mean = sum(part.mean_ns * part.count for part in known_parts) / count
    squares = sum((part.stdev_ns**2 + (part.mean_ns - mean) ** 2) * part.count for part in known_parts)
    merged = Times(
        count=count,
        mean_ns=mean,
        stdev_ns=math.sqrt(squares / count),
        min_ns=min(part.min_ns for part in known_parts),
        max_ns=max(part.max_ns for part in known_parts),
        percentiles_ns={},
        distribution_ns=tuple(sorted(bins.items())),
    )
    percentiles = {point: merged.quantile(float(point) / 100) for point in known_parts[0].percentiles_ns}
    return merged.model_copy(update={"percentiles_ns": percentiles})
