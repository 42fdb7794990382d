"""wrk, unmodified, with TechEmpower's arguments and headers; toolset/wrk/report.lua prints one JSON line."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from harness.errors import LoadError
from harness.measure.loadgen import Load, LoadResult, NoTimeError
from harness.records.models import Errors, Latency

TIMEOUT_SECONDS = 8  # TechEmpower's


Count = Annotated[int, Field(ge=0, le=10**18)]
Duration = Annotated[int, Field(ge=-(10**18), le=10**18)]
Figure = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]


class _LatencyLine(BaseModel):
    mean: Figure
    stdev: Figure
    min: Count
    max: Count
    percentiles: dict[str, Count]
    histogram: tuple[tuple[Count, Count], ...]


class _Line(BaseModel):
    duration_us: Duration  # by the time of day
    requests: Count
    bytes: Count
    cpu_seconds: Figure
    errors: Errors
    latency_us: _LatencyLine


class Wrk:
    """The closed-loop generator of TechEmpower."""

    program = "wrk"
    waits_for_go = False
    folder: Path | None = None
    timeout_seconds = float(TIMEOUT_SECONDS)

    def arguments(self, load: Load) -> Sequence[str]:
        """TechEmpower's command line; the duration is whole seconds, wrk's own unit."""
        script = ["pipeline.lua", load.url, "--", str(load.pipeline)] if load.pipeline > 1 else ["report.lua", load.url]
        return [
            *("-H", f"Host: {load.host}", "-H", f"Accept: {load.accept}", "-H", "Connection: keep-alive"),
            *("--latency", "-d", str(math.ceil(load.seconds)), "-c", str(load.connections)),
            *("--timeout", str(TIMEOUT_SECONDS), "-t", str(load.threads), "-s", *script),
        ]

    def result(self, load: Load, output: str) -> LoadResult:
        """The JSON line of report.lua, of several clients as one; raises LoadError with what came instead."""
        lines = [text for text in output.splitlines() if text.startswith("{")]
        if not lines:
            raise LoadError(f"wrk printed no result for {load.url}: {output.strip()[-500:] or 'nothing at all'}")
        return merged([self._result(load, line) for line in lines])

    def _result(self, load: Load, line: str) -> LoadResult:
        try:
            # A run without a single response prints nan, which JSON does not know.
            values = _Line.model_validate(json.loads(line.replace("-nan", "0").replace("nan", "0")))
        except (ValueError, RecursionError) as error:  # of JSON, of the model, of a number of thousands of digits
            raise LoadError(f"wrk's result for {load.url} is not what report.lua prints: {line[:300]}") from error
        if values.duration_us == 0:
            raise LoadError(f"wrk reports no duration for {load.url}: {line[:300]}")
        # Again and again on each connection: not one that a cold server has dropped.
        if not values.requests and values.errors.read > load.connections:
            raise LoadError(
                f"wrk understood no response of {load.url}: {values.errors.read} connections were closed, or "
                "answered with what its parser refuses although HTTP may allow it (a tab behind Content-Length, say): "
                "--generator loadgen measures with another"
            )
        result = LoadResult(
            duration=values.duration_us / 1e6,
            requests=values.requests,
            bytes=values.bytes,
            errors=values.errors,
            latency=None if load.pipeline > 1 or not values.requests else _latency(values.latency_us),
            cpu_seconds=values.cpu_seconds,
        )
        if result.duration < 0:
            raise NoTimeError(f"wrk reports a negative duration for {load.url}: {line[:300]}", result)
        return result


def _latency(line: _LatencyLine) -> Latency:
    return Latency(
        basis="closed-loop, wrk-corrected",
        mean=line.mean / 1e6,
        stdev=line.stdev / 1e6,
        min=line.min / 1e6,
        max=line.max / 1e6,
        percentiles={point: value / 1e6 for point, value in line.percentiles.items()},
        histogram=tuple((value / 1e6, count) for value, count in line.histogram),
    )


def merged(results: Sequence[LoadResult]) -> LoadResult:
    """Several clients' loads as one: counts add up, rates add up, distributions merge where all are whole.

    Each client divides by its own time; the time that stands for all keeps the sum of their rates. Without the
    distribution of one (report.lua leaves out what takes seconds to print) there is no latency.
    """
    if len(results) == 1:
        return results[0]
    requests = sum(result.requests for result in results)
    rate = sum(result.requests / result.duration for result in results)
    return LoadResult(
        duration=requests / rate if rate else max(result.duration for result in results),
        requests=requests,
        bytes=sum(result.bytes for result in results),
        errors=Errors(**{kind: sum(getattr(r.errors, kind) for r in results) for kind in Errors.model_fields}),
        latency=merged_latency([result.latency for result in results if result.latency], len(results)),
        cpu_seconds=sum(result.cpu_seconds for result in results),
        parts=tuple(results),
    )


def merged_latency(parts: Sequence[Latency], expected: int) -> Latency | None:
    """One distribution of all responses, by their counts; None unless every client has one with its histogram."""
    if len(parts) < expected or not all(part.histogram for part in parts):
        return None
    cells: Counter[float] = Counter()
    for part in parts:
        for value, count in part.histogram:
            cells[value] += count
    ordered = sorted(cells.items())
    total = sum(cells.values())
    weights = [sum(count for _, count in part.histogram) / total for part in parts]
    mean = sum(weight * part.mean for weight, part in zip(weights, parts, strict=True))
    squares = sum(w * (part.stdev**2 + (part.mean - mean) ** 2) for w, part in zip(weights, parts, strict=True))
    return Latency(
        basis=parts[0].basis,
        mean=mean,
        stdev=math.sqrt(squares),
        min=min(part.min for part in parts),
        max=max(part.max for part in parts),
        percentiles={point: _percentile(ordered, total, float(point)) for point in parts[0].percentiles},
        histogram=tuple(ordered),
    )


def _percentile(ordered: Sequence[tuple[float, int]], total: int, point: float) -> float:
    """The value that this share of all responses does not exceed, as wrk counts it (rounded half up)."""
    rank = max(1, math.floor(point / 100 * total + 0.5))
    passed = 0
    for value, count in ordered:
        passed += count
        if passed >= rank:
            return value
    return ordered[-1][0]
