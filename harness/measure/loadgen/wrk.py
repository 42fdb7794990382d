"""wrk, unmodified, with TechEmpower's arguments and headers; toolset/wrk/report.lua prints one JSON line."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from harness.errors import LoadError
from harness.measure.loadgen import Load, LoadResult
from harness.results.records import Errors, Latency

TIMEOUT_SECONDS = 8  # TechEmpower's


Count = Annotated[int, Field(ge=0, le=10**18)]
Figure = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]


class _LatencyLine(BaseModel):
    mean: Figure
    stdev: Figure
    min: Count
    max: Count
    percentiles: dict[str, Count]
    histogram: tuple[tuple[Count, Count], ...]


class _Line(BaseModel):
    duration_us: Count
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
        """The JSON line of report.lua; raises LoadError with what came instead."""
        line = next((text for text in reversed(output.splitlines()) if text.startswith("{")), None)
        if line is None:
            raise LoadError(f"wrk printed no result for {load.url}: {output.strip()[-500:] or 'nothing at all'}")
        try:
            # A run without a single response prints nan, which JSON does not know.
            values = _Line.model_validate(json.loads(line.replace("-nan", "0").replace("nan", "0")))
        except (ValueError, RecursionError) as error:  # of JSON, of the model, of a number of thousands of digits
            raise LoadError(f"wrk's result for {load.url} is not what report.lua prints: {line[:300]}") from error
        if values.duration_us <= 0:
            raise LoadError(f"wrk reports no duration for {load.url}: {line[:300]}")
        return LoadResult(
            duration=values.duration_us / 1e6,
            requests=values.requests,
            bytes=values.bytes,
            errors=values.errors,
            latency=None if load.pipeline > 1 or not values.requests else _latency(values.latency_us),
            cpu_seconds=values.cpu_seconds,
        )


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
