"""Runs the load generator wrk with TechEmpower's arguments. toolset/wrk/report.lua prints the result as JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import LoadError
from harness.experiment.generators import LoadResult, LoadRun, headers
from harness.experiment.generators.closed_loop_report import combine, parse_reports
from harness.records.loads import ClosedLoop
from harness.verify.wire import TIMEOUT_SECONDS

DRAWN_FILE = "requests.bin"  # file in the load's folder with the requests from which drawn.lua draws


@dataclass(frozen=True, kw_only=True)
class Wrk:
    """The wrk load generator, for closed loops that last whole seconds. It does not report latency."""

    program: str = "wrk"
    name: Literal["wrk"] = "wrk"
    waits_for_go: bool = False

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Write the requests to the folder, if there are any, and return TechEmpower's arguments.

        Raises LoadError for loads that wrk does not support.
        """
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
        parts = parse_reports(self.name, run, output)
        for part in parts:
            # A cold server may drop each connection once. More errors mean that wrk could not parse the responses.
            if not part.requests and part.errors.read > run.load.connections:
                raise LoadError(
                    f"wrk could not parse any response from {run.url}: the server closed {part.errors.read} "
                    "connections, or sent responses that wrk's parser rejects although HTTP may permit them, for "
                    "example a tab after Content-Length. Use --generator loadgen"
                )
        return combine(parts)
