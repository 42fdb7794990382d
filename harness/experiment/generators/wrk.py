"""Runs the load generator wrk with TechEmpower's arguments. toolset/wrk/report.lua prints the result as JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from harness.errors import LoadError
from harness.experiment.generators import LoadResult, LoadRun, headers
from harness.records.loads import ClosedLoop
from harness.records.measurements import ErrorCounts
from harness.verify.wire import TIMEOUT_SECONDS

ReportedCount = Annotated[int, Field(ge=0, le=10**18)]

DRAWN_FILE = "requests.bin"  # in the load's folder: the requests from which drawn.lua draws at random


class WrkLine(BaseModel):
    """The JSON result of wrk, as printed by toolset/wrk/report.lua."""

    # wrk uses the system clock, so the duration may even be negative if the clock was set during the load.
    duration_us: Annotated[int, Field(ge=-(10**18), le=10**18)]
    requests: ReportedCount
    bytes: ReportedCount
    cpu_seconds: Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
    errors: ErrorCounts


@dataclass(frozen=True, kw_only=True)
class Wrk:
    """The wrk load generator, for closed loops that last whole seconds. It does not report latency."""

    program: str = "wrk"
    name: Literal["wrk"] = "wrk"
    waits_for_go: bool = False

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Return TechEmpower's arguments. Raises LoadError for loads that wrk does not support."""
        load = run.load
        if not isinstance(load, ClosedLoop):
            raise LoadError(f"wrk supports only closed loops, not {load.label}. Use --generator loadgen")
        if run.protocol != "http1":
            raise LoadError(f"wrk supports only HTTP/1.1, not {run.protocol}. Use --generator loadgen")
        if load.close_after:
            raise LoadError(f"wrk keeps connections open, but {load.label} closes them. Use --generator loadgen")
        if any(each.request for each in run.requests):
            raise LoadError("wrk supports only a single URL, not the requests of a service. Use --generator loadgen")
        script = ["pipeline.lua", run.url, "--", str(load.depth)] if load.depth > 1 else ["report.lua", run.url]
        if run.requests:
            file = folder / DRAWN_FILE
            requests = (each.head(run.host) + each.body for each in run.requests)
            file.write_bytes(b"".join(b"%d\n%b" % (len(each), each) for each in requests))
            script = ["drawn.lua", run.url, "--", str(file), str(run.seed)]
        return [
            *(word for header in headers(run) for word in ("-H", header)),
            *("--latency", "-d", str(math.ceil(run.seconds)), "-c", str(load.connections)),
            *("--timeout", str(TIMEOUT_SECONDS), "-t", str(run.threads), "-s", *script),
        ]

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Return the combined result of all clients. Raises LoadError for invalid output."""
        lines = [text for text in output.splitlines() if text.startswith("{")]
        if not lines:
            raise LoadError(f"wrk printed no result for {run.url}: {output.strip()[-500:] or 'no output'}")
        parts = tuple(self._part(run, line) for line in lines)
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
            parts=parts,
        )

    def _part(self, run: LoadRun, line: str) -> LoadResult:
        """Return the result of a single client."""
        try:
            result = WrkLine.model_validate_json(line)
        except ValidationError as error:
            raise LoadError(f"wrk's result for {run.url} is not in the format of report.lua: {line[:300]}") from error
        if result.duration_us <= 0:
            raise LoadError(f"wrk reported no duration for {run.url}, perhaps because the clock was set: {line[:300]}")
        # A cold server may drop each connection once. More errors mean that wrk could not parse the responses.
        if not result.requests and result.errors.read > run.load.connections:
            raise LoadError(
                f"wrk could not parse any response from {run.url}: the server closed {result.errors.read} connections, "
                "or sent responses that wrk's parser rejects although HTTP may permit them, for example a tab after "
                "Content-Length. Use --generator loadgen"
            )
        return LoadResult(
            duration=result.duration_us / 1e6,
            requests=result.requests,
            bytes=result.bytes,
            errors=result.errors,
            latency=None,
            cpu_seconds=result.cpu_seconds,
        )
