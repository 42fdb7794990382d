"""Parses the JSON reports of wrk's script and of the WebSocket witness, and combines several clients' results."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from harness.errors import LoadError
from harness.experiment.generators import GeneratorName, LoadResult, LoadRun
from harness.records.measurements import ErrorCounts

ReportedCount = Annotated[int, Field(ge=0, le=10**18)]


class ClosedLoopReport(BaseModel):
    """The JSON result of a closed loop, as printed by toolset/wrk/report.lua and toolset/websocket-witness."""

    # wrk uses the system clock, so the duration may even be negative if the clock was set during the load.
    duration_us: Annotated[int, Field(ge=-(10**18), le=10**18)]
    requests: ReportedCount
    bytes: ReportedCount
    cpu_seconds: Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
    errors: ErrorCounts


def parse_reports(name: GeneratorName, run: LoadRun, output: str) -> tuple[LoadResult, ...]:
    """Return the result of each client from the concatenated output. Raises LoadError for invalid output."""
    lines = [text for text in output.splitlines() if text.startswith("{")]
    if not lines:
        raise LoadError(f"{name} printed no result for {run.url}: {output.strip()[-500:] or 'no output'}")
    return tuple(_parse(name, run, line) for line in lines)


def _parse(name: GeneratorName, run: LoadRun, line: str) -> LoadResult:
    """Return the result of a single client."""
    try:
        report = ClosedLoopReport.model_validate_json(line)
    except ValidationError as error:
        raise LoadError(f"{name}'s result for {run.url} is not a valid report: {line[:300]}") from error
    if report.duration_us <= 0:
        raise LoadError(f"{name} reported no duration for {run.url}, perhaps because the clock was set: {line[:300]}")
    return LoadResult(
        duration=report.duration_us / 1e6,
        requests=report.requests,
        bytes=report.bytes,
        errors=report.errors,
        latency=None,
        cpu_seconds=report.cpu_seconds,
    )


def combine(parts: Sequence[LoadResult]) -> LoadResult:
    """Return the combined result of all clients."""
    if len(parts) == 1:
        return parts[0]
    requests = sum(part.requests for part in parts)
    rate = sum(part.requests / part.duration for part in parts)  # add rates, because the clients' durations differ
    return LoadResult(
        duration=requests / rate if rate else max(part.duration for part in parts),
        requests=requests,
        bytes=sum(part.bytes for part in parts),
        errors=ErrorCounts(
            **{kind: sum(getattr(part.errors, kind) for part in parts) for kind in ErrorCounts.model_fields}
        ),
        latency=None,
        cpu_seconds=sum(part.cpu_seconds for part in parts),
        parts=tuple(parts),
    )
