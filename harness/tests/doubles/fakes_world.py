"""A world in memory with a clock of its own: servers whose true CPU per request is known, and faults on demand."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import MachineLostError, ServerDiedError
from harness.host.clock import Clock
from harness.host.metering import Reading
from harness.host.sockets import SocketCounters
from harness.records.verification_record import CheckResult

RESPONSE_BYTES = 150.0


class FakeClock(Clock):
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.set_at = math.inf  # when somebody sets the time of day to tomorrow
        self.drift = 0.0  # of the time of day, relative

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_700_000_000.0 + (1 + self.drift) * self.now + (86_400 if self.now >= self.set_at else 0)

    def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What is true of a fake server, and what goes wrong with it."""

    cpu_per_request: float = 50e-6  # seconds, warm; a row more costs as much again
    rss: float = 100e6  # bytes
    start_seconds: float = 0.5
    cold: float = 0.0  # times the warm cost that a cold route costs more
    warm_cpu_seconds: float = 5.0  # of CPU on a route after which a third of that is left
    process_spread: float = 0.0  # standard deviation of the logarithm of the cost, between processes
    window_spread: float = 0.0  # between loads
    idle_cpu: float = 0.0  # CPUs used without any load
    status_errors: float = 0.0  # share of responses with another status
    response_bytes: float = RESPONSE_BYTES
    dies_after: float = math.inf  # seconds of load on one process
    deaths: int = 1  # processes that die so; later ones live
    never_starts: bool = False
    restarts: bool = False  # its identity changes under load
    idle_seconds: float = math.inf  # of so many it uses ``idle_cpu``, then as many not, and so on
    trouble: Mapping[int, str] = field(default_factory=dict)  # a process's load by number: "fails", "never ends"
    connects_after: float = 0.0  # seconds into a load
    other_connections: int = 0  # the harness's own
    request_bytes: float = 0.0  # as the sockets carry them; 0: unknown
    throttled: float | None = None  # seconds, for each second of CPU
    threads: int | None = None
    sockets: bool = True  # seen


@dataclass
class FakeWorld:
    """Everything that the fakes share."""

    clock: FakeClock = field(default_factory=FakeClock)
    cpus: int = 2
    behaviours: dict[str, Behaviour] = field(default_factory=lambda: defaultdict(Behaviour))
    memory: float = 8e9
    alive: dict[int, "FakeProcess"] = field(default_factory=dict)  # by port
    most_alive: int = 0
    started: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    vanishes_at: float = math.inf  # by the clock: a machine, which does not come back by itself
    vanished: bool = False
    database_dies_at: float = math.inf  # by the clock
    database_cpus: float = 0.0  # that PostgreSQL uses; 0: unknown
    steal: float = 0.0  # share of the CPUs' time that the hypervisor takes
    objections: tuple[CheckResult, ...] = ()  # to the answers of every trial
    talks: bool = False  # what the verifier is asked stands in its results

    def require_machine(self) -> None:
        """Raises MachineLostError while it is away."""
        if self.clock.monotonic() >= self.vanishes_at:
            self.vanished, self.vanishes_at = True, math.inf
        if self.vanished:
            raise MachineLostError("the engine of the machine app has not answered for 5 s")

    def free_memory(self) -> float:
        return self.memory - sum(process.behaviour.rss for process in self.alive.values())


class FakeProcess:
    """One process of a fake server, as the harness sees it: what it has used and answered so far."""

    def __init__(self, world: FakeWorld, name: str, number: int, log: Path) -> None:
        self.world = world
        self.name = name
        self.number = number
        self.log = log
        self.behaviour = world.behaviours[name]
        self.random = random.Random(f"1/{name}/{number}")
        self.factor = math.exp(self.random.gauss(0, self.behaviour.process_spread))
        self.cpu = 0.0
        self.warm: dict[str, float] = defaultdict(float)  # CPU seconds by route
        self.loaded = 0.0  # seconds of load
        self.requests = 0.0  # of all time
        self.connected = 0
        self.dead = False
        self.loads = 0
        self._idle_since = world.clock.monotonic()

    def idle(self) -> None:
        """Account for the time without load since the last look."""
        now = self.world.clock.monotonic()
        at_work = int(now / self.behaviour.idle_seconds) % 2 == 0
        self.cpu += max(0.0, now - self._idle_since) * self.behaviour.idle_cpu * at_work
        self._idle_since = now

    def capacity(self, queries: int) -> float:
        """Requests/s that it can answer, warm."""
        return self.world.cpus / (self.behaviour.cpu_per_request * self.factor * queries)

    def work(self, kind: str, queries: int, seconds: float, factor: float, rate: float | None) -> float:
        """Be under load; the requests answered, at most ``rate`` a second. Costs fall while the route warms up."""
        behaviour = self.behaviour
        if self.loaded + seconds > behaviour.dies_after and self.number < behaviour.deaths:
            seconds = max(0.0, behaviour.dies_after - self.loaded)
            self.dead = True
        answered, left = 0.0, seconds
        while left > 1e-9:
            step = min(left, 0.1)
            cold = 1 + behaviour.cold * math.exp(-self.warm[kind] / behaviour.warm_cpu_seconds)
            cost = behaviour.cpu_per_request * self.factor * factor * cold * queries
            cpus = min(self.world.cpus, rate * cost) if rate else self.world.cpus
            self.cpu += step * cpus
            self.warm[kind] += step * cpus
            answered += step * cpus / cost
            left -= step
        self.loaded += seconds
        self._idle_since = self.world.clock.monotonic() + seconds
        self.requests += answered
        return answered

    def read(self) -> Reading:
        if self.dead:
            raise ServerDiedError(f"{self.name} is gone")
        if not self.connected:
            self.idle()
        return Reading(
            at=self.world.clock.monotonic(),
            cpu_seconds=self.cpu,
            rss=self.behaviour.rss,
            run_seconds=self.cpu,
            wait_seconds=0.04 * self.cpu,
            throttled_seconds=None if self.behaviour.throttled is None else self.behaviour.throttled * self.cpu,
            pids=(self.number,),
            threads=self.behaviour.threads,
        )

    def connections(self, _port: int) -> "FakeConnections":
        return FakeConnections(self)

    def identity(self) -> str:
        later = self.behaviour.restarts and self.loaded > 0
        return f"{self.name}-{self.number}-{self.loaded if later else 0}"

    def require_alive(self) -> None:
        if self.dead:
            raise ServerDiedError(f"{self.name}: the server ended (killed by SIGKILL)")

    def end(self) -> float | None:
        return 0.0

    def steal_ticks(self) -> tuple[float, float] | None:
        ticks = self.world.clock.monotonic() * 100 * self.world.cpus
        return self.world.steal * ticks, ticks


@dataclass
class FakeConnections:
    """The generator's connections as the kernel would count them."""

    process: FakeProcess

    def read(self) -> SocketCounters | None:
        behaviour, requests = self.process.behaviour, self.process.requests
        if not behaviour.sockets:
            return None
        return SocketCounters(
            connections=self.process.connected + behaviour.other_connections,
            bytes_received=round(requests * behaviour.response_bytes),
            bytes_sent=round(requests * behaviour.request_bytes),
        )

    def close(self) -> None:
        """Nothing to give back."""
