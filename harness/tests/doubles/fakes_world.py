"""An in-memory fake world: a simulated clock, servers with a given CPU cost per request, and faults on demand."""

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
    """A clock that advances only by ``sleep``."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.set_at = math.inf  # at this monotonic time, the wall clock jumps forward by a day
        self.drift = 0.0  # relative drift of the wall clock

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_700_000_000.0 + (1 + self.drift) * self.now + (86_400 if self.now >= self.set_at else 0)

    def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """A fake server's true properties and its faults."""

    cpu_per_request: float = 50e-6  # CPU seconds per row of a warm server
    rss: float = 100e6  # bytes
    start_seconds: float = 0.5
    cold: float = 0.0  # additional cost on a cold route, as a multiple of the warm cost
    warm_cpu_seconds: float = 5.0  # CPU seconds on a route after which ``cold`` has fallen to 1/e
    compiles: bool = False  # attribute half of the additional CPU time to compiler threads
    process_spread: float = 0.0  # standard deviation of log(cost) between processes
    window_spread: float = 0.0  # standard deviation of log(cost) between loads on the same process
    idle_cpu: float = 0.0  # number of CPUs that the server uses without a load
    status_errors: float = 0.0  # share of responses that have a wrong status
    response_bytes: float = RESPONSE_BYTES
    dies_after: float = math.inf  # seconds under load until a process dies
    deaths: int = 1  # number of processes that die; all later ones survive
    never_starts: bool = False
    restarts: bool = False  # change the process's identity under load
    idle_seconds: float = math.inf  # ``idle_cpu`` alternates between on and off for this long
    trouble: Mapping[int, str] = field(
        default_factory=dict
    )  # index of a load on its process, from 1 -> "fails" or "never ends"
    connects_after: float = 0.0  # seconds from a load's start until the generator connects
    other_connections: int = 0  # connections that the harness keeps open besides the generator's
    request_bytes: float = 0.0  # bytes that the sockets carry per request; 0: unknown
    throttled: float | None = None  # throttled seconds per CPU second
    threads: int | None = None
    sockets: bool = True  # the kernel provides socket counters


@dataclass
class FakeWorld:
    """State that all fakes share."""

    clock: FakeClock = field(default_factory=FakeClock)
    cpus: int = 2
    behaviours: dict[str, Behaviour] = field(default_factory=lambda: defaultdict(Behaviour))
    memory: float = 8e9
    alive: dict[int, "FakeProcess"] = field(default_factory=dict)  # port -> running process
    most_alive: int = 0
    started: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    vanishes_at: float = math.inf  # clock time at which a machine disappears
    vanished: bool = False
    database_dies_at: float = math.inf  # clock time at which the database dies
    database_cpus: float = 0.0  # number of CPUs used by PostgreSQL; 0: unknown
    steal: float = 0.0  # share of the CPU time that the hypervisor steals
    objections: tuple[CheckResult, ...] = ()  # findings in each trial
    talks: bool = False  # let the verifier put its arguments into its results

    def require_machine(self) -> None:
        """Raise MachineLostError while the machine is lost."""
        if self.clock.monotonic() >= self.vanishes_at:
            self.vanished, self.vanishes_at = True, math.inf
        if self.vanished:
            raise MachineLostError("the engine of the machine app has not answered for 5 s")

    def free_memory(self) -> float:
        return self.memory - sum(process.behaviour.rss for process in self.alive.values())


class FakeProcess:
    """A fake server's process, its resource usage and its request count."""

    def __init__(self, world: FakeWorld, name: str, number: int, log: Path) -> None:
        self.world = world
        self.name = name
        self.number = number
        self.log = log
        self.behaviour = world.behaviours[name]
        self.random = random.Random(f"1/{name}/{number}")
        self.factor = math.exp(self.random.gauss(0, self.behaviour.process_spread))
        self.cpu = 0.0
        self.compiler_cpu = 0.0
        self.warm: dict[str, float] = defaultdict(float)  # route -> CPU seconds spent on it
        self.loaded = 0.0  # seconds under load
        self.requests = 0.0  # requests since the process started
        self.connected = 0
        self.dead = False
        self.loads = 0
        self._idle_since = world.clock.monotonic()

    def idle(self) -> None:
        """Add the CPU time that the server used while it was idle."""
        now = self.world.clock.monotonic()
        at_work = int(now / self.behaviour.idle_seconds) % 2 == 0
        self.cpu += max(0.0, now - self._idle_since) * self.behaviour.idle_cpu * at_work
        self._idle_since = now

    def capacity(self, queries: int) -> float:
        """Return a warm server's maximum number of requests per second."""
        return self.world.cpus / (self.behaviour.cpu_per_request * self.factor * queries)

    def work(self, kind: str, queries: int, seconds: float, factor: float, rate: float | None) -> float:
        """Simulate a load of at most ``rate`` requests/s and return the number of responses.

        A request costs less as its route warms up.
        """
        behaviour = self.behaviour
        if self.loaded + seconds > behaviour.dies_after and self.number < behaviour.deaths:
            seconds = max(0.0, behaviour.dies_after - self.loaded)
            self.dead = True
        answered, remaining = 0.0, seconds
        while remaining > 1e-9:
            step = min(remaining, 0.1)
            cold = 1 + behaviour.cold * math.exp(-self.warm[kind] / behaviour.warm_cpu_seconds)
            cost = behaviour.cpu_per_request * self.factor * factor * cold * queries
            cpus = min(self.world.cpus, rate * cost) if rate else self.world.cpus
            self.cpu += step * cpus
            self.compiler_cpu += step * cpus * (1 - 1 / cold) / 2
            self.warm[kind] += step * cpus
            answered += step * cpus / cost
            remaining -= step
        self.loaded += seconds
        self._idle_since = self.world.clock.monotonic() + seconds
        self.requests += answered
        return answered

    def read(self) -> Reading:
        self.require_alive()
        if not self.connected:
            self.idle()
        return Reading(
            read_at=self.world.clock.monotonic(),
            cpu_seconds=self.cpu,
            rss=self.behaviour.rss,
            run_seconds=self.cpu,
            wait_seconds=0.04 * self.cpu,
            compiler_seconds=self.compiler_cpu if self.behaviour.compiles else None,
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
    """The kernel's counters for the generator's connections."""

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
        pass
