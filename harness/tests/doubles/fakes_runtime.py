"""A runtime, a load generator and a verifier in memory: the whole spine runs on them, on the world's own clock."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlparse

from harness.errors import LoadError, ServerDiedError, StartError
from harness.measure.loadgen import Load, LoadResult
from harness.plan.discovery import Implementation
from harness.plan.testtypes import TestType
from harness.records.models import Build, CheckResult, Errors, Latency, Load, Outcome, Verdict
from harness.runtime import Database, DatabaseAddress, Endpoint, Server
from harness.tests.doubles.fakes_world import RESPONSE_BYTES, FakeConnections, FakeProcess, World
from harness.verify import verification
from harness.verify.checks.evidence import Exchange
from harness.verify.checks.load import DatabaseCounters


class FakeServer:
    """A started process, as the harness sees it."""

    def __init__(self, implementation: Implementation, endpoint: Endpoint, process: FakeProcess, log: Path) -> None:
        self.implementation = implementation
        self.endpoint = endpoint
        self.meter = process
        self.log = log
        self.startup_time = process.behaviour.start_seconds
        self.upstream = None

    def connections(self) -> FakeConnections:
        return FakeConnections(self.meter)

    def identity(self) -> str:
        self.require_alive()
        later = self.meter.behaviour.restarts and self.meter.loaded > 0
        return f"{self.meter.name}-{self.meter.number}-{self.meter.loaded if later else 0}"

    def require_alive(self) -> None:
        if self.meter.dead:
            raise ServerDiedError(f"{self.meter.name}: the server ended (killed by SIGKILL)")


@dataclass(frozen=True)
class FakeDatabase:
    """Counts rows by the database's name; knows when it was restored."""

    world: World
    address: DatabaseAddress = field(default_factory=lambda: DatabaseAddress(host="fake", port=1))
    divisible: bool = True

    def restore(self) -> None:
        self.world.events.append(("restore", self.address.name))

    def obituary(self) -> None:
        return None

    def meter(self) -> None:
        return None

    @contextmanager
    def own(self, name: str) -> Iterator[Database]:
        yield replace(self, address=replace(self.address, name=f"own-{name}"))

    def connections_free(self) -> int:
        return self.world.max_connections - sum(p.behaviour.connections for p in self.world.alive.values())


class FakeRunning:
    """A load that is on."""

    def __init__(
        self, world: World, process: FakeProcess, load: Load, kind: str, queries: int, rate: float | None = None
    ) -> None:
        self.command = ("fake-generator", load.url)
        self._world, self._process, self._load, self._kind, self._queries = world, process, load, kind, queries
        self._seconds = 0.0
        self._rate = rate
        self._asked = load.seconds if rate else float(math.ceil(load.seconds))
        self._factor = math.exp(process.random.gauss(0, process.behaviour.window_spread))
        self._requests = 0.0
        self._over = False

    def begin(self) -> None:
        """Connections are there at once."""
        self._process.idle()
        self._process.connected = self._load.connections
        self._world.loads.append((self._process.name, self._load, self._world.clock.monotonic()))

    def wait(self, seconds: float) -> int | None:
        if self._over:
            return 0
        self._world.require_machine()
        step = min(max(0.0, seconds), self._asked - self._seconds)
        if step > 0 and not self._process.dead:
            self._requests += self._process.work(self._load, self._kind, self._queries, step, self._factor, self._rate)
        self._world.clock.sleep(step)
        self._seconds += step
        if self._seconds >= self._asked - 1e-9:
            self._end()
        return 0 if self._over else None

    def interrupt(self) -> None:
        self._end()

    def _end(self) -> None:
        self._over = True
        self._process.connected = 0

    def output(self) -> str:
        behaviour = self._process.behaviour
        requests = int(self._requests)
        return json.dumps(
            {
                "duration": self._seconds,
                "requests": requests,
                "bytes": round(requests * behaviour.response_bytes),
                "status": round(requests * behaviour.status_errors),
                "connections": self._load.connections,
                "pipelined": self._load.depth > 1,
                "capacity": self._process.capacity(self._queries) / self._factor,
            }
        )


class FakeGenerator:
    """Loads by arithmetic."""

    program = "fake-generator"
    waits_for_go = False
    folder: Path | None = None
    timeout_seconds = 8.0

    def arguments(self, load: Load) -> Sequence[str]:
        return [json.dumps(asdict(load))]

    def result(self, load: Load, output: str) -> LoadResult:
        values = json.loads(output)
        requests, seconds = values["requests"], values["duration"]
        if seconds <= 0:
            raise LoadError(f"no duration for {load.url}")
        mean = values["connections"] * seconds / requests if requests else 0.0
        latency = Latency(
            basis="closed-loop, wrk-corrected",
            mean=mean,
            stdev=0.0,
            min=mean,
            max=mean,
            percentiles={"50": mean},
            histogram=((mean, requests),),
        )
        return LoadResult(
            duration=seconds,
            requests=requests,
            bytes=values["bytes"],
            errors=Errors(status=values["status"]),
            latency=None if values["pipelined"] or not requests else latency,
            cpu_seconds=seconds / 10,
        )


@dataclass
class FakeRuntime:
    """Starts processes of the world, each on a port of its own."""

    world: World
    builds: dict[str, Build] = field(default_factory=dict)
    divisible: bool = True
    side_by_side: bool = True
    network: str = "host"
    accounts: dict[str, str] = field(default_factory=dict)
    name: str = "fake"

    def build(self, implementation: Implementation, log: Path) -> Build:
        return self.builds.get(implementation.name, Build(status="ok"))

    @contextmanager
    def database(self) -> Iterator[FakeDatabase]:
        yield FakeDatabase(self.world, divisible=self.divisible)

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[FakeServer]:
        world, name = self.world, implementation.name
        number = world.started[name]
        world.started[name] += 1
        world.events.append(("start", name))
        if world.behaviours[name].never_starts:
            raise StartError(f"{name}: no valid response within 60 s")
        world.clock.sleep(world.behaviours[name].start_seconds)
        process = FakeProcess(world, name, database.name, number)
        port = 10_000 + sum(world.started.values())
        world.alive[port] = process
        world.most_alive = max(world.most_alive, len(world.alive))
        try:
            yield FakeServer(implementation, Endpoint(host="fake", port=port), process, log)
        finally:
            del world.alive[port]
            world.events.append(("stop", name))

    def own_generator(self) -> str:
        return "fake-generator"

    @contextmanager
    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> Iterator[FakeRunning]:
        load = Load(**json.loads(arguments[0]))
        address = urlparse(load.url)
        assert address.port is not None
        kind = address.path.strip("/").split("/")[0]
        queries = int(address.query.partition("=")[2] or 1)
        rate = json.loads(arguments[1])["rate"] if len(arguments) > 1 else None
        yield FakeRunning(self.world, self.world.alive[address.port], load, kind, queries, rate)

    def steal_ticks(self) -> tuple[float, float] | None:
        return 0.0, self.world.clock.monotonic() * 100 * self.world.cpus

    def versions(self) -> dict[str, str]:
        return {"fake": "1"}


@dataclass
class FakeMachines(FakeRuntime):
    """The runtime on a machine that vanishes when the world says so, and comes back unless ``stays_away``."""

    side_by_side: bool = False
    stays_away: bool = False
    waited: list[float] = field(default_factory=list)

    def require_machines(self) -> None:
        self.world.require_machine()

    def recovered(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.world.clock.sleep(seconds if self.stays_away else 5.0)
        self.world.vanished = self.stays_away
        return not self.stays_away


@dataclass
class FakeWatch:
    """Sees nothing wrong, unless told."""

    failures: tuple[CheckResult, ...] = ()
    exchanges: tuple[Exchange, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing to stop."""


@dataclass
class FakeVerifier:
    """Passes everything but what it is told to fail: (implementation, test type) at these moments."""

    world: World
    fails_before: frozenset[tuple[str, str]] = frozenset()
    fails_after: frozenset[tuple[str, str]] = frozenset()
    seconds: float = 0.1
    loses_orders: bool = False
    emptied: int = 0  # times

    def connection(self, server: Server, *, replicate: int, thorough: bool) -> Verdict:
        return self._verdict(server, "http", replicate, thorough, failed=False)

    def check(
        self,
        server: Server,
        test_type: TestType,
        database: DatabaseAddress,
        *,
        replicate: int,
        thorough: bool,
        levels: Sequence[Load],
    ) -> Verdict:
        failed = (server.implementation.name, test_type.name) in self.fails_before
        verdict = self._verdict(server, test_type.name, replicate, thorough, failed=failed)
        sizes = {
            "" if level.queries is None else str(level.queries): (RESPONSE_BYTES, RESPONSE_BYTES) for level in levels
        }
        return verdict.model_copy(update={"response_bytes": sizes})

    def after_load(self, server: Server, test_type: TestType, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        failed = (server.implementation.name, test_type.name) in self.fails_after
        return (CheckResult(check="fake-after", rule="fake.2", outcome=Outcome.FAIL if failed else Outcome.PASS),)

    def watch(self, server: Server, test_type: TestType, level: Load, database: DatabaseAddress) -> FakeWatch:
        return FakeWatch()

    def empty_orders(self, database: DatabaseAddress) -> None:
        self.emptied += 1

    def orders_answered(self, answers: Path, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        outcome = Outcome.FAIL if self.loses_orders else Outcome.PASS
        return (CheckResult(check="fake-orders", rule="fake.3", outcome=outcome),)

    def table_use(self, database: DatabaseAddress) -> DatabaseCounters:
        read, written = self.world.rows[database.name]
        return DatabaseCounters(fetched=read, updated=written)

    def statements(self, database: DatabaseAddress) -> None:
        """They are not counted."""

    def load(
        self,
        before: DatabaseCounters,
        after: DatabaseCounters,
        *,
        answered_reads: int,
        answered_writes: int,
        answered_fortunes: int = 0,
        failed_responses: int = 0,
    ) -> tuple[CheckResult, ...]:
        return verification.check_load(
            before,
            after,
            answered_reads=answered_reads,
            answered_writes=answered_writes,
            answered_fortunes=answered_fortunes,
            failed_responses=failed_responses,
        )

    def _verdict(self, server: Server, kind: str, replicate: int, thorough: bool, *, failed: bool) -> Verdict:
        self.world.clock.sleep(self.seconds)
        outcome = Outcome.FAIL if failed else Outcome.PASS
        return Verdict(
            implementation=server.implementation.name,
            test_type=kind,
            replicate=replicate,
            thorough=thorough,
            outcome=outcome,
            results=(CheckResult(check="fake", rule="fake.1", outcome=outcome, message="fake" if failed else ""),),
            duration=self.seconds,
        )
