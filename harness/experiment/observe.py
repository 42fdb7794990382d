"""One load and what was seen of it: the generator's result beside per-second readings of the server."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.errors import LoadError, ServerDiedError
from harness.experiment.generators import Generator, LoadResult, LoadRun
from harness.host import process
from harness.host.clock import Clock
from harness.paths import REPOSITORY
from harness.records.models import ClientUse, ServerUse, Window
from harness.runtime import Begun, Connections, Database, Meter, OfSeveral, Reading, Runtime, Server, Sockets
from harness.runtime import Generator as Running

WINDOW_SECONDS = 1.0
SLACK_SECONDS = 10.0  # a generator that runs longer than asked by this much is stopped


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A load as the generator and the harness saw it."""

    started_at: float  # epoch seconds
    command: tuple[str, ...]  # of the generator, with the repository's paths relative to its root
    result: LoadResult
    windows: tuple[Window, ...]
    server: ServerUse
    database_cpu_seconds: float | None
    steal_share: float | None
    connections: int | None  # most established at the end of any window
    idle_cpu_share: float | None  # CPUs that the other servers used meanwhile; None where there are none
    restarted: bool
    clients: tuple[ClientUse, ...] = ()  # of a load from several machines
    responses_per_request: float | None = None  # None where the sockets cannot be seen


class Bench(Protocol):
    """With what a load is made."""

    @property
    def runtime(self) -> Runtime:
        """Starts the generator."""

    @property
    def clock(self) -> Clock:
        """Of the run."""

    def tell(self, window: Window) -> None:
        """Told each second of a load while it is on; must be quick."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """On what a load is put."""

    server: Server
    database: Database  # the one that this server uses
    response_bytes: float | None  # verified size of a response
    others: Sequence[Meter] = field(default_factory=tuple)  # servers that are up and should be idle


def observe(bench: Bench, target: Target, run: LoadRun, generator: Generator, folder: Path) -> Observation:
    """Run the load to its end. Raises LoadError and ServerDiedError.

    ``target.response_bytes`` turns byte counts into responses while the load is on; afterwards the generator's own
    totals replace it. ``folder`` is for the generator's files.
    """
    runtime, server, clock = bench.runtime, target.server, bench.clock
    identity = server.identity()
    database = target.database.meter()
    steal_before = runtime.steal_ticks()
    database_before = database.read() if database else None
    idle_before = readings(target.others)
    connections = server.connections()
    try:
        series = _Series(server.meter, connections, run, target.response_bytes)
        started_at = clock.time()
        arguments, waits = generator.arguments(run, folder), generator.waits_for_go
        kept = (
            folder if run.sampling or run.plan or run.requests else None
        )  # where the generator writes files, and they are read
        with runtime.generator(generator.program, arguments, waits_for_go=waits, folder=kept) as running:
            running.begin()
            with woken_promptly():
                _follow(running, run, server, series, clock, generator.timeout_seconds, bench.tell)
                status = running.wait(0)
            database_after = database.read() if database else None
            text = running.output()
            begun = running.begun() if isinstance(running, OfSeveral) else ()
            command = tuple(running.command)
    finally:
        connections.close()
    if status:
        raise LoadError(
            f"{Path(generator.program).name} failed ({process.describe_status(status)}) on {run.url}: "
            f"{text.strip()[-500:]}"
        )
    server.require_alive()
    result = generator.result(run, text)
    return Observation(
        started_at=started_at,
        command=tuple(argument.removeprefix(f"{REPOSITORY}/") for argument in command),
        result=result,
        windows=series.windows(result.bytes / result.requests if result.requests else None),
        server=series.use(),
        database_cpu_seconds=database_after.cpu_seconds - database_before.cpu_seconds
        if database_after and database_before
        else None,
        steal_share=_steal_share(steal_before, runtime.steal_ticks()),
        connections=series.most_connections(),
        idle_cpu_share=_idle_share(idle_before, readings(target.others)),
        restarted=server.identity() != identity,
        responses_per_request=series.responses_per_request(run, result),
        clients=_clients(begun, result),
    )


def _clients(begun: Sequence[Begun], result: LoadResult) -> tuple[ClientUse, ...]:
    """Each client's part; none where its results or beginnings do not tell them apart."""
    parts = result.parts
    if len(begun) < 2 or len(begun) != len(parts):
        return ()
    first = min(each.word_at for each in begun)
    return tuple(
        ClientUse(
            client=each.client,
            connections=each.connections,
            threads=each.threads,
            requests=part.requests,
            bytes=part.bytes,
            duration=part.duration,
            cpu_seconds=part.cpu_seconds,
            wait_seconds=part.wait_seconds,
            begun=(each.word_at + (each.seen_at or each.word_at)) / 2 - first,
            begun_within=((each.seen_at or each.word_at) - each.word_at) / 2,
        )
        for each, part in zip(begun, parts, strict=True)
    )


def _follow(
    running: Running,
    load: LoadRun,
    server: Server,
    series: "_Series",
    clock: Clock,
    patience: float,
    tell: Callable[[Window], None],
) -> None:
    """Take a reading each second until the generator ends; raises LoadError when it does not."""
    began = clock.monotonic()
    tick = 1
    try:
        # A container may take that long to start; after that the windows begin without a connection.
        while series.idle() and clock.monotonic() - began < 5.0 and running.wait(0.01) is None:
            pass
        began = clock.monotonic()
        series.begin()
        # A load of one second is over when the first window is: its connections are counted while it is at work.
        if running.wait(WINDOW_SECONDS / 2) is None:
            series.glance()
        while running.wait(began + tick * WINDOW_SECONDS - clock.monotonic()) is None:
            tell(series.take())
            if clock.monotonic() - began > load.seconds + patience + SLACK_SECONDS:
                raise LoadError(
                    f"the generator did not end {SLACK_SECONDS + patience:.0f} s after its time on {load.url}"
                )
            tick = max(tick, int((clock.monotonic() - began) / WINDOW_SECONDS)) + 1
        series.finish()
    except ServerDiedError:
        server.require_alive()  # knows the exit status and the last lines
        raise


@contextmanager
def woken_promptly() -> Iterator[None]:
    """Real-time priority for this thread where the system allows it (as root), so that windows end when they should.

    Where servers and generators want every CPU, a thread that sleeps a second may otherwise wake half a second late. It
    works for a few milliseconds a second; what it starts has the usual priority.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


@dataclass(frozen=True, kw_only=True)
class _Moment:
    reading: Reading
    sockets: Sockets | None


class _Series:
    """The readings of one load, and the windows between them."""

    def __init__(self, meter: Meter, sockets: Connections, load: LoadRun, response_bytes: float | None) -> None:
        self._meter = meter
        self._sockets = sockets
        self._response_bytes = response_bytes
        self._fewest = min(load.load.connections, 2)  # one connection more than before may be the probe's
        self._first = self._now()
        self._moments = [self._first]  # the ends of windows
        self._glance: Sockets | None = None

    def _now(self) -> _Moment:
        return _Moment(reading=self._meter.read(), sockets=self._sockets.read())

    def idle(self) -> bool:
        """Whether the generator is not connected yet; False where connections cannot be seen."""
        return not self._connected(self._sockets.read())

    def begin(self) -> None:
        """The first window begins now: before, the generator was only being started."""
        self._moments = [self._now()]

    def take(self) -> Window:
        """Read now; the window since the reading before."""
        self._moments.append(self._now())
        return self._window(self._moments[-2], self._moments[-1], self._response_bytes)

    def glance(self) -> None:
        """Count the connections within a window."""
        self._glance = self._sockets.read()

    def finish(self) -> None:
        """The reading after the generator's end; its sockets are gone, so that it counts for CPU and memory only."""
        self._end = self._meter.read()

    def windows(self, response_bytes: float | None) -> tuple[Window, ...]:
        """All whole windows, with responses by the generator's own bytes per request."""
        size = response_bytes or self._response_bytes
        pairs = zip(self._moments, self._moments[1:], strict=False)
        # At the end of a whole window the generator is still connected; one that outlasts its load is none.
        return tuple(self._window(before, after, size) for before, after in pairs if self._connected(after.sockets))

    def _window(self, before: _Moment, after: _Moment, size: float | None) -> Window:
        cpu = after.reading.cpu_seconds - before.reading.cpu_seconds
        responses = None
        if before.sockets and after.sockets and size:
            responses = (after.sockets.bytes_received - before.sockets.bytes_received) / size
        return Window(
            start=round(before.reading.at - self._first.reading.at, 4),
            duration=round(after.reading.at - before.reading.at, 4),
            responses=None if responses is None else round(responses, 1),
            server_cpu=round(cpu, 4),
            wait_share=_wait_share(before.reading, after.reading),
            rss=after.reading.rss,
            connections=self._established(after.sockets),
        )

    def _established(self, sockets: Sockets | None) -> int | None:
        """Connections of the generator: those that were there before it are the harness's own."""
        first = self._first.sockets
        return sockets.connections - first.connections if first and sockets else None

    def _connected(self, sockets: Sockets | None) -> bool:
        """Whether the generator is at work, as far as can be seen."""
        established = self._established(sockets)
        return established is None or established >= self._fewest

    def most_connections(self) -> int | None:
        """The most established connections at the end of any window, and in the middle of the first.

        Not the fewest: a busy machine takes a moment to accept all of them, and wrk closes them when its time is up.
        What matters is whether wrk ever had what it was asked for; connections lost on the way are errors.
        """
        counts = [self._established(moment.sockets) for moment in self._moments[1:]]
        counts.append(self._established(self._glance))
        known = [count for count in counts if count is not None]
        return max(known, default=None)

    def responses_per_request(self, load: LoadRun, result: LoadResult) -> float | None:
        """Responses for each request, by the bytes that the sockets had carried when they were last looked at."""
        looks = [moment.sockets for moment in self._moments] + [self._glance]
        last = max((look for look in looks if look), key=lambda look: look.bytes_sent, default=None)
        first = self._first.sockets
        if first is None or last is None or not result.requests or load.requests:  # those differ in size
            return None
        requests = (last.bytes_sent - first.bytes_sent) / load.request_bytes
        responses = (last.bytes_received - first.bytes_received) / (result.bytes / result.requests)
        # Below, what is under way outweighs what has been answered.
        return responses / requests if requests >= 100 else None

    def use(self) -> ServerUse:
        """What the server used from before the generator's start until after its end."""
        first = self._first.reading
        sizes = [m.reading.rss for m in [*self._moments[1:]] if m.reading.rss is not None]
        sizes += [self._end.rss] if self._end.rss is not None else []
        threads = [reading.threads for reading in (*(m.reading for m in self._moments[1:]), self._end)]
        throttled = (self._end.throttled_seconds, first.throttled_seconds)
        return ServerUse(
            cpu_seconds=self._end.cpu_seconds - first.cpu_seconds,
            rss_peak=max(sizes, default=None),
            wait_share=_wait_share(first, self._end),
            throttled_seconds=throttled[0] - throttled[1]
            if throttled[0] is not None and throttled[1] is not None
            else None,
            pids=self._end.pids,
            threads_peak=max((count for count in threads if count is not None), default=None),
        )


def _wait_share(before: Reading, after: Reading) -> float | None:
    if None in (before.run_seconds, before.wait_seconds, after.run_seconds, after.wait_seconds):
        return None
    run = (after.run_seconds or 0) - (before.run_seconds or 0)
    wait = (after.wait_seconds or 0) - (before.wait_seconds or 0)
    return round(wait / (wait + run), 4) if wait + run > 0 else None


def readings(meters: Sequence[Meter]) -> list[Reading | None]:
    """Now, of each; None of a server that is gone, which is found out when its turn comes."""
    found: list[Reading | None] = []
    for meter in meters:
        try:
            found.append(meter.read())
        except ServerDiedError:
            found.append(None)
    return found


def _idle_share(before: Sequence[Reading | None], after: Sequence[Reading | None]) -> float | None:
    """CPUs that the busiest of these used between the readings, by run time: ticks are too coarse for a second."""
    shares = [
        later.used_since(earlier) / (later.at - earlier.at)
        for earlier, later in zip(before, after, strict=True)
        if earlier and later and later.at > earlier.at
    ]
    return round(max(shares), 5) if shares else None


def _steal_share(before: Sequence[float] | None, after: Sequence[float] | None) -> float | None:
    if not before or not after or after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])
