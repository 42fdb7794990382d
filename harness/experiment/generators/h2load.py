"""Runs h2load, the witness for HTTP/2. toolset/h2load/h2load-timed adds the CPU time to the output."""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urljoin

from harness.errors import LoadError
from harness.experiment.generators import LoadResult, LoadRun
from harness.experiment.generators.closed_loop_report import combine
from harness.paths import TOOLSET
from harness.records.loads import ClosedLoop
from harness.records.measurements import ErrorCounts
from harness.runtime import Runtime
from harness.verify.wire import TIMEOUT_SECONDS

URLS_FILE = "urls.txt"  # file in the load's folder with the URLs that h2load requests in turn
SCRIPT = "h2load-timed"
# The summary that h2load 1.40 and later print. h2load has no machine-readable format.
SUMMARY = re.compile(
    r"^finished in (?P<number>[\d.]+)(?P<unit>us|ms|s), (?P<rate>[\d.]+) req/s.*?"
    r"^requests: .*?(?P<succeeded>\d+) succeeded, (?P<failed>\d+) failed, (?P<errored>\d+) errored, "
    r"(?P<timeout>\d+) timeout.*?^traffic: \S+ \((?P<bytes>\d+)\) total.*?"
    r"^\d+m[\d.]+s \d+m[\d.]+s$\s"  # the shell's CPU time
    r"^(?P<user_minutes>\d+)m(?P<user>[\d.]+)s (?P<system_minutes>\d+)m(?P<system>[\d.]+)s$",
    re.MULTILINE | re.DOTALL,
)
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, kw_only=True)
class H2load:
    """The load generator of nghttp2, for closed loops over HTTP/2. tfb does not use the latency that it reports."""

    program: str = SCRIPT
    name: Literal["h2load"] = "h2load"
    waits_for_go: bool = False

    @classmethod
    def of(cls, runtime: Runtime) -> Self:
        """Return the generator. It starts the script by path in the local runtime, and by name in the Docker image."""
        return cls(program=str(TOOLSET / "h2load" / SCRIPT) if runtime.name == "local" else SCRIPT)

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Write the URLs to the folder and return the arguments. Raises LoadError for loads that need loadgen."""
        load = run.load
        if not isinstance(load, ClosedLoop) or load.close_after or run.protocol != "http2":
            raise LoadError(f"h2load supports only closed loops over HTTP/2, not {load.label}")
        urls = [urljoin(run.url, each.target) for each in run.requests] or [run.url]
        random.Random(run.seed).shuffle(urls)
        (folder / URLS_FILE).write_text("".join(f"{url}\n" for url in urls), encoding="utf-8")
        return [
            *("-c", str(load.connections), "-t", str(min(run.threads, load.connections)), "-m", str(load.depth)),
            *("-D", str(math.ceil(run.seconds)), f"--connection-active-timeout={run.seconds + TIMEOUT_SECONDS:.0f}"),
            *("-H", f"Accept: {run.accept}", "-i", str(folder / URLS_FILE)),
        ]

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Return the combined result of all clients. Raises LoadError for invalid output."""
        summaries = [match.groupdict() for match in SUMMARY.finditer(output)]
        if not summaries:
            raise LoadError(f"h2load printed no result for {run.url}: {output.strip()[-500:] or 'no output'}")
        return combine([_part(run, summary) for summary in summaries])


def _part(run: LoadRun, summary: dict[str, str]) -> LoadResult:
    """Return the result of a single client.

    h2load's failures include errors, and its errors include timeouts. If h2load cannot connect, all counts are zero.
    """
    succeeded, rate = int(summary["succeeded"]), float(summary["rate"])
    failed, errored, timeout = (int(summary[name]) for name in ("failed", "errored", "timeout"))
    status = failed - errored
    return LoadResult(
        # h2load rounds the duration to 10 ms, but the rate has two decimals.
        duration=succeeded / rate if rate else float(summary["number"]) * UNITS[summary["unit"]] or run.seconds,
        requests=succeeded + status,
        bytes=int(summary["bytes"]),
        errors=ErrorCounts(
            connect=0 if succeeded + failed else run.load.connections,
            status=status,
            read=errored - timeout,
            timeout=timeout,
        ),
        latency=None,
        cpu_seconds=60.0 * (int(summary["user_minutes"]) + int(summary["system_minutes"]))
        + float(summary["user"])
        + float(summary["system"]),
    )
