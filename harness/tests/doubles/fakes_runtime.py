"""An in-memory runtime, databases and load generators that share the fake world's clock."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlparse

from harness.errors import LoadError, StartError
from harness.experiment.generators import LoadResult, LoadRun
from harness.host.metering import Reading
from harness.plan.implementation import Implementation
from harness.records.loads import ClosedLoop, Scenario
from harness.records.measurements import Arrivals, ErrorCounts, Latency, OperationTimes
from harness.records.run_info import BuildRecord, MachineLink, RoleMachine, RunInfo
from harness.runtime import Database, DatabaseAddress, Endpoint, GeneratorStart, Server
from harness.tests.doubles.fakes_world import FakeProcess, FakeWorld
from harness.verify.checks.evidence import RequestCounts

ARRIVALS = 7.4  # arrivals per second at factor 1
GOAL_SECONDS = 0.010
RUNS: list[LoadRun] = []  # all loads; a fake generator's only argument is an index into this list


@dataclass(frozen=True)
class FakeDatabase:
    """A PostgreSQL server that crashes at a given time and works again after ``restore``."""

    world: FakeWorld
    address: DatabaseAddress = field(default_factory=lambda: DatabaseAddress(host="fake", port=1))
    supports_copies: bool = True
    log: Path | None = None

    def restore(self) -> None:
        if self.crash_reason():
            self.world.database_dies_at = math.inf

    def crash_reason(self) -> str | None:
        if self.world.clock.monotonic() < self.world.database_dies_at:
            return None
        return "PostgreSQL ended (killed by SIGKILL)"

    def meter(self) -> "FakeDatabase | None":
        return self if self.world.database_cpus else None

    def read(self) -> Reading:
        now, cpus = self.world.clock.monotonic(), self.world.database_cpus
        return Reading(read_at=now, cpu_seconds=now * cpus, rss=None, run_seconds=None, wait_seconds=None)

    @contextmanager
    def private_database(self, name: str, *, empty: bool = False) -> Iterator[Database]:
        yield replace(self, address=replace(self.address, name=f"own-{name}"))


class FakeRunning:
    """A fake load generator's process."""

    def __init__(self, world: FakeWorld, process: FakeProcess, run: LoadRun, kind: str, queries: int) -> None:
        words = f"loadgen --connections {run.load.connections} --seconds {run.seconds:.0f} {run.url}"
        self.command = tuple(words.split())
        self._world, self._process, self._run, self._kind, self._queries = world, process, run, kind, queries
        self._seconds = 0.0
        load = run.load
        self._rate = {"open": getattr(load, "rate", None), "scenario": ARRIVALS * getattr(load, "factor", 0)}.get(
            load.kind
        )
        self._factor = math.exp(process.random.gauss(0, process.behaviour.window_spread))
        self._requests = 0.0
        self._over = False
        process.loads += 1
        self._trouble = process.behaviour.trouble.get(process.loads)

    def begin(self) -> None:
        """Start the load. The connections open immediately or after a delay."""
        self._process.idle()
        self._begun = self._world.clock.monotonic()
        self._connect()

    def _connect(self) -> None:
        if self._seconds >= self._process.behaviour.connects_after:
            self._process.connected = self._run.load.connections

    def wait(self, seconds: float) -> int | None:
        status = int(self._trouble == "fails")
        if self._over:
            return status
        self._world.require_machine()
        left = math.inf if self._trouble == "never ends" else self._run.seconds - self._seconds
        step = min(max(0.0, seconds), left)
        if step > 0 and not self._process.dead:
            self._requests += self._process.work(self._kind, self._queries, step, self._factor, self._rate)
        self._world.clock.sleep(step)
        self._seconds += step
        self._connect()
        if step < seconds - 1e-9:  # like a real generator, exit just after the requested duration
            self._end()
        return status if self._over else None

    def interrupt(self) -> None:
        self._end()

    def _end(self) -> None:
        self._over = True
        self._process.connected = 0

    def output(self) -> str:
        behaviour = self._process.behaviour
        requests = int(self._requests)
        if self._trouble:
            return "no route to host\n"
        return json.dumps(
            {
                "duration": self._seconds,
                "requests": requests,
                "bytes": round(requests * behaviour.response_bytes),
                "status": round(requests * behaviour.status_errors),
                "capacity": self._process.capacity(self._queries) / self._factor,
                "rate": self._rate,
                "clients": len(self.starts()) if isinstance(self, FakeSeveral) else 0,
            }
        )


class FakeSeveral(FakeRunning):
    """A load generator with two clients, of which the second does not report when it started."""

    def starts(self) -> Sequence[GeneratorStart]:
        first = GeneratorStart(
            client="c1", connections=40, threads=1, go_sent_at=self._begun, start_seen_at=self._begun + 0.02
        )
        return first, replace(first, client="c2", connections=24, go_sent_at=self._begun + 0.25, start_seen_at=None)


@dataclass
class FakeGenerator:
    """A load generator that computes its results. Open-loop latency follows an M/M/1 queue."""

    name: Literal["loadgen", "wrk"] = "loadgen"
    program: str = "fake-generator"
    waits_for_go: bool = False

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        if self.name == "wrk" and not isinstance(run.load, ClosedLoop):
            raise LoadError("wrk supports only closed loops")
        RUNS.append(run)
        return [str(len(RUNS) - 1)]

    def result(self, run: LoadRun, output: str) -> LoadResult:
        values = json.loads(output)
        requests, seconds, bad = values["requests"], values["duration"], values["status"]
        if seconds <= 0:
            raise LoadError(f"no duration for {run.url}")
        at_rate = not isinstance(run.load, ClosedLoop)
        due = round(values["rate"] * seconds) if at_rate else requests
        mean = run.load.connections * seconds / requests if requests else 0.0
        if at_rate:
            free = values["capacity"] - values["rate"]
            mean = 1 / free if free > 0 else seconds
        latency = Latency(
            basis="open-loop, intended send time" if at_rate else "closed-loop, service time",
            mean=mean,
            stdev=mean,
            min=mean / 10,
            max=mean * 8,
            percentiles={"50": mean * math.log(2), "90": mean * math.log(10), "99": mean * math.log(100)},
            histogram=((mean, requests),),
        )
        late = round(due * math.exp(-(run.late_after or GOAL_SECONDS) / mean)) if at_rate and mean else None
        good = requests - bad
        part = {"requests": requests // 2, "bytes": values["bytes"] // 2, "duration": seconds / 2}
        load_result = LoadResult(
            duration=seconds,
            requests=requests,
            bytes=values["bytes"],
            errors=ErrorCounts(status=bad),
            latency=None if self.name == "wrk" or run.load.depth > 1 or not requests else latency,
            cpu_seconds=seconds / 10,
            due=due if at_rate else None,
            answered=min(good, due) if at_rate else None,
            unfinished=max(0, due - requests - 1) if at_rate else None,
            late=late,
            lag_p99=10e-6 if at_rate else None,
            sent_late=0 if at_rate else None,
            arrivals=self._arrivals(due, good, latency) if isinstance(run.load, Scenario) else None,
            account=None if self.name == "wrk" else self._account(requests, bad),
        )
        parts = (load_result.model_copy(update=part),) * values["clients"]
        return load_result.model_copy(update={"parts": parts})

    @staticmethod
    def _arrivals(due: int, done: int, latency: Latency) -> Arrivals:
        one = OperationTimes(
            use_case="shop", operation="create order", due=due, answered=due, errors=ErrorCounts(), latency=latency
        )
        return Arrivals(due=due, done=min(done, due), failed=0, unfinished=due - min(done, due), operations=(one,))

    @staticmethod
    def _account(requests: int, bad: int) -> RequestCounts:
        counts: dict[str, Any] = {each.name: 0 for each in fields(RequestCounts)}
        counts |= {"sent": requests, "received": requests, "successes": requests - bad, "failed": bad}
        return RequestCounts(**counts | {"statuses": {"200": requests - bad}, "all_recorded": False})


@dataclass
class FakeRuntime:
    """A runtime that starts processes in the fake world. Each process has its own port."""

    world: FakeWorld
    supports_copies: bool = True
    side_by_side: bool = True
    network: str = "host"
    accounts: dict[str, str] = field(default_factory=dict)
    name: str = "fake"
    running: type[FakeRunning] = FakeRunning

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        return BuildRecord(status="ok")

    @contextmanager
    def database(self) -> Iterator[FakeDatabase]:
        yield FakeDatabase(self.world, supports_copies=self.supports_copies)

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        world, name = self.world, implementation.name
        number = world.started[name]
        world.started[name] += 1
        if world.behaviours[name].never_starts:
            raise StartError(f"{name}: no valid response within 60 s")
        world.clock.sleep(world.behaviours[name].start_seconds)
        process = FakeProcess(world, name, number, log)
        port = 10_000 + sum(world.started.values())
        world.alive[port] = process
        world.most_alive = max(world.most_alive, len(world.alive))
        try:
            yield Server(
                implementation=implementation,
                endpoint=Endpoint(host="fake", port=port),
                program=process,
                startup_time=process.behaviour.start_seconds,
            )
        finally:
            del world.alive[port]

    def own_generator(self, crate: str = "loadgen") -> str:
        return "fake-generator"

    @contextmanager
    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> Iterator[FakeRunning]:
        run = RUNS[int(arguments[0])]
        address = urlparse(run.url)
        assert address.port is not None
        kind = address.path.strip("/").split("/")[0] or "order"
        queries = int(address.query.partition("=")[2] or 1)
        running = self.running(self.world, self.world.alive[address.port], run, kind, queries)
        try:
            yield running
        finally:
            running.interrupt()

    def versions(self) -> dict[str, str]:
        return {"fake": "1"}


@dataclass
class FakeMachines(FakeRuntime):
    """A runtime with several machines, one of which disappears at a given time."""

    side_by_side: bool = False

    def survey(self, info: RunInfo) -> RunInfo:
        of_client = info.machine.model_copy(update={"cpus_online": 1})
        found = {"server": info.machine, "database": info.machine, "client 1": of_client}
        machines = [RoleMachine(role=r, name=r, address="", engine="", machine=m) for r, m in found.items()]
        ways = (("server", "client 1", 1e7), ("server", "client 2", 9e6), ("database", "server", 5e7))
        links = [MachineLink(of=of, to=to, round_trip=1e-4, throughput=rate) for of, to, rate in ways]
        return info.model_copy(update={"machines": tuple(machines), "links": tuple(links)})

    def require_machines(self) -> None:
        self.world.require_machine()
