"""wrk, unmodified, with TechEmpower's arguments and headers; toolset/wrk/report.lua prints one JSON line."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from harness.errors import LoadError
from harness.experiment.generators import TIMEOUT_SECONDS, LoadResult, LoadRun, headers
from harness.records.loads import ClosedLoop
from harness.records.measurements import ErrorCounts

ReportedCount = Annotated[int, Field(ge=0, le=10**18)]


class WrkLine(BaseModel):
    """What toolset/wrk/report.lua prints."""

    duration_us: Annotated[int, Field(ge=-(10**18), le=10**18)]  # by the time of day, which somebody may set
    requests: ReportedCount
    bytes: ReportedCount
    cpu_seconds: Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
    errors: ErrorCounts


@dataclass(frozen=True, kw_only=True)
class Wrk:
    """wrk, unmodified, with TechEmpower's arguments: closed loops of whole seconds, without latency and account."""

    program: str = "wrk"
    name: Literal["wrk"] = "wrk"
    waits_for_go: bool = False

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """TechEmpower's command line; raises LoadError for what is no closed loop."""
        load = run.load
        if not isinstance(load, ClosedLoop):
            raise LoadError(f"wrk makes closed loops alone, not {load.label}: --generator loadgen makes others")
        if run.requests:
            raise LoadError("wrk asks for one URL alone, not for requests of a service: --generator loadgen does")
        script = ["pipeline.lua", run.url, "--", str(load.depth)] if load.depth > 1 else ["report.lua", run.url]
        return [
            *(word for header in headers(run) for word in ("-H", header)),
            *("--latency", "-d", str(math.ceil(run.seconds)), "-c", str(load.connections)),
            *("--timeout", str(TIMEOUT_SECONDS), "-t", str(run.threads), "-s", *script),
        ]

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """The lines of report.lua, of several clients as one; raises LoadError with what came instead."""
        lines = [text for text in output.splitlines() if text.startswith("{")]
        if not lines:
            raise LoadError(f"wrk printed no result for {run.url}: {output.strip()[-500:] or 'nothing at all'}")
        parts = tuple(self._part(run, line) for line in lines)
        if len(parts) == 1:
            return parts[0]
        requests = sum(part.requests for part in parts)
        rate = sum(part.requests / part.duration for part in parts)  # each client divides by its own time
        return LoadResult(
            duration=requests / rate if rate else max(part.duration for part in parts),
            requests=requests,
            bytes=sum(part.bytes for part in parts),
            errors=ErrorCounts(
                **{kind: sum(getattr(part.errors, kind) for part in parts) for kind in ErrorCounts.model_fields}
            ),
            latency=None,
            cpu_seconds=sum(part.cpu_seconds for part in parts),
            parts=parts,
        )

    def _part(self, run: LoadRun, line: str) -> LoadResult:
        try:
            found = WrkLine.model_validate_json(line)
        except ValidationError as error:
            raise LoadError(f"wrk's result for {run.url} is not what report.lua prints: {line[:300]}") from error
        if found.duration_us <= 0:
            raise LoadError(f"wrk reports no duration for {run.url}, or the time of day was set under it: {line[:300]}")
        # Again and again on each connection: not one that a cold server has dropped.
        if not found.requests and found.errors.read > run.load.connections:
            raise LoadError(
                f"wrk understood no response of {run.url}: {found.errors.read} connections were closed, or "
                "answered with what its parser refuses although HTTP may allow it (a tab behind Content-Length, say): "
                "--generator loadgen measures with another"
            )
        return LoadResult.model_validate({**vars(found), "duration": found.duration_us / 1e6, "latency": None})
