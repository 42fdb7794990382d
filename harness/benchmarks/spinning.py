"""Real servers whose true difference is set: one small Node server that spins for a calibrated time a request."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness.errors import EnvironmentLacksError, LoadError
from harness.host import process, toolchain
from harness.measure.loadgen import Load, LoadResult
from harness.measure.loadgen.wrk import Wrk
from harness.plan.testtypes import ACCEPT_JSON
from harness.runtime import Endpoint
from harness.runtime.database.embedded import free_port
from harness.runtime.local import LocalRuntime
from harness.runtime.metering.proc import ProcessTreeMeter
from harness.runtime.readiness import startup_time

PROGRAM = Path(__file__).with_name("spin.mjs")
PATH = "/json"
CALIBRATION_ROUNDS = 20_000  # of spinning, so that its cost stands out from the noise
CALIBRATION_TURNS = 5
SLACK_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where servers and generators run."""

    connections: int
    server_cpus: Sequence[int] | None
    other_cpus: Sequence[int] | None

    @classmethod
    def on(cls, connections: int, *, pinned: bool) -> "Site":
        """Pinned: the first usable CPU serves and the others load, where there is more than one."""
        first, *others = sorted(os.sched_getaffinity(0))
        if not (pinned and others):
            return cls(connections=connections, server_cpus=None, other_cpus=None)
        return cls(connections=connections, server_cpus=[first], other_cpus=others)

    def wrk(self, arguments: Sequence[str]) -> Sequence[str]:
        """The command of a load."""
        return LocalRuntime(work=Path(), other_cpus=self.other_cpus).generator_command("wrk", arguments)


@dataclass(frozen=True, kw_only=True)
class Spinner:
    """A running server."""

    endpoint: Endpoint
    meter: ProcessTreeMeter


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One load on one server."""

    started_at: float  # epoch seconds
    throughput: float  # requests per second
    cpu_per_request: float  # seconds
    requests: int
    seconds: float


@contextmanager
def spinner(site: Site, rounds: int) -> Iterator[Spinner]:
    """A fresh server process that spins so many rounds a request."""
    node = toolchain.find("node")
    if node is None:
        raise EnvironmentLacksError("node is not on this machine: bench-method's servers need it (./tfb doctor)")
    endpoint = Endpoint(host="127.0.0.1", port=free_port())
    environment = {**os.environ, "PORT": str(endpoint.port), "SPIN": str(rounds)}
    began = time.monotonic()
    child = process.Child([str(node.program), str(PROGRAM)], env=environment, cpus=site.server_cpus)
    with process.running(child):
        startup_time(endpoint, PATH, began, lambda: _alive(child))
        yield Spinner(endpoint=endpoint, meter=ProcessTreeMeter(child.pid))


def _alive(child: process.Child) -> None:
    status = child.poll()
    if status is not None:
        raise LoadError(f"the spinning server ended ({process.describe_status(status)})")


def measure(site: Site, servers: Sequence[Spinner], seconds: float) -> list[Figures]:
    """Load all these servers at the same time, each with a wrk of its own, started in this order."""
    loads = [
        Load(
            url=server.endpoint.url(PATH),
            host=server.endpoint.host,
            accept=ACCEPT_JSON,
            seconds=seconds,
            connections=site.connections,
            threads=1,
        )
        for server in servers
    ]
    generator = Wrk()
    before, started, children, outputs = [], [], [], []
    try:
        for load, server in zip(loads, servers, strict=True):
            output = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, with those of the other servers
            outputs.append(output)
            before.append(server.meter.read())
            started.append(time.time())
            children.append(process.Child(site.wrk(generator.arguments(load)), stdout=output))
        for child in children:
            if child.wait(seconds + SLACK_SECONDS) != 0:
                raise LoadError("wrk failed or did not end in time while measuring the spinning servers")
        after = [server.meter.read() for server in servers]
        results = []
        for load, output in zip(loads, outputs, strict=True):
            output.seek(0)
            results.append(generator.result(load, output.read().decode(errors="replace")))
    finally:
        for child in children:
            child.stop()
        for output in outputs:
            output.close()
    return [
        _figures(at, result, end.cpu_seconds - begin.cpu_seconds)
        for at, result, begin, end in zip(started, results, before, after, strict=True)
    ]


def _figures(started_at: float, result: LoadResult, cpu_seconds: float) -> Figures:
    if result.requests == 0 or result.errors.total:
        raise LoadError(f"a spinning server answered {result.requests} requests with {result.errors.total} errors")
    return Figures(
        started_at=started_at,
        throughput=result.requests / result.duration,
        cpu_per_request=cpu_seconds / result.requests,
        requests=result.requests,
        seconds=result.duration,
    )


def calibrate(site: Site, seconds: float, warm_up: float) -> float:
    """Rounds of spinning that cost as much CPU as a request without any, measured under load in turns."""
    per_request = []
    with spinner(site, 0) as plain, spinner(site, CALIBRATION_ROUNDS) as spinning:
        for server in (plain, spinning):
            measure(site, [server], warm_up)
        for _ in range(CALIBRATION_TURNS):
            base = measure(site, [plain], seconds)[0].cpu_per_request
            more = measure(site, [spinning], seconds)[0].cpu_per_request
            if more > base:
                per_request.append(CALIBRATION_ROUNDS * base / (more - base))
    if not per_request:
        raise LoadError("spinning did not cost any CPU: this machine is too busy to calibrate on")
    return median(per_request)
