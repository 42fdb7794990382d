"""One load and what was seen of it: the generator's result beside per-second readings of the server."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import LoadError, ServerDiedError
from harness.experiment.generators import TIMEOUT_SECONDS, LoadGenerator, LoadResult, LoadRun
from harness.host import process
from harness.host.clock import Clock
from harness.host.metering import Reading
from harness.host.sockets import SocketCounters
from harness.paths import REPOSITORY
from harness.records.measurements import ClientUsage, LoadObservations, ServerUsage, Window
from harness.runtime import (
    ConnectionTracker,
    Database,
    GeneratorGroup,
    GeneratorStart,
    Meter,
    RunningGenerator,
    Runtime,
    Server,
)

WINDOW_SECONDS = 1.0
# A generator that runs longer than asked by this much is stopped: an answer and the drain may each take the timeout.
SLACK_SECONDS = 10.0 + 2 * TIMEOUT_SECONDS


class Observation(LoadObservations):
    """A load as the generator and the harness saw it."""

    result: LoadResult
    idle_cpus: tuple[float | None, ...] = ()  # that each of the other servers used


def observe(
    runtime: Runtime,
    clock: Clock,
    server: Server,
    generator: LoadGenerator,
    run: LoadRun,
    arguments: Sequence[str],
    folder: Path | None,
    *,
    database: Database,
    response_bytes: float | None,
    others: Sequence[Meter],
    tell: Callable[[Window], None],
) -> Observation:
    """Run the load to its end, by the generator with these arguments. Raises LoadError and ServerDiedError.

    ``database`` is the one that the server uses; ``others`` are of servers that are up and should be idle. ``tell`` is
    told each second of the load while it is on; ``response_bytes``, the verified size, turns byte counts into responses
    until then, afterwards the generator's own totals. ``folder`` is where the generator reads or writes files.
    """
    server.meter.require_alive()
    identity, meter = server.meter.identity(), database.meter()
    steal_before = server.meter.steal_ticks()
    database_before = meter.read() if meter else None
    idle_before = read_all(others)
    with closing(server.meter.connections(server.endpoint.port)) as connections:
        series = _Series(server.meter, connections, run, response_bytes)
        started_at = clock.time()
        waits = generator.waits_for_go
        with runtime.generator(generator.program, arguments, waits_for_go=waits, folder=folder) as running:
            running.begin()
            with realtime_priority():
                try:
                    series.follow(running, clock, run.seconds + SLACK_SECONDS, tell)
                except ServerDiedError:
                    server.meter.require_alive()  # knows the exit status and the last lines
                    raise
                status = running.wait(0)
            database_after = meter.read() if meter else None
            text = running.output()
            begun = running.starts() if isinstance(running, GeneratorGroup) else ()
            command = tuple(argument.removeprefix(f"{REPOSITORY}/") for argument in running.command)
    if status:
        name, how = Path(generator.program).name, process.describe_status(status)
        raise LoadError(f"{name} failed ({how}) on {run.url}: {text.strip()[-500:]}")
    later = server.meter.identity()
    server.meter.require_alive()
    result = generator.result(run, text)
    idle = cpus_used(idle_before, read_all(others))
    known = [cpus for cpus in idle if cpus is not None]
    return Observation(
        started_at=started_at,
        command=command,
        result=result,
        windows=series.windows(result.bytes / result.requests if result.requests else response_bytes),
        server=series.use(),
        database_cpu_seconds=(
            database_after.cpu_seconds - database_before.cpu_seconds if database_after and database_before else None
        ),
        steal_share=_steal_share(steal_before, server.meter.steal_ticks()),
        connections=series.most_connections(),
        idle_cpus=tuple(idle),
        idle_cpu_share=round(max(known), 5) if known else None,
        restarted=later != identity,
        responses_per_request=series.responses_per_request(result),
        clients=_clients(begun, result),
    )


def _clients(begun: Sequence[GeneratorStart], result: LoadResult) -> tuple[ClientUsage, ...]:
    """Each client's part; none where its results or beginnings do not tell them apart."""
    if len(begun) < 2 or len(begun) != len(result.parts):
        return ()
    first = min(each.go_sent_at for each in begun)
    found = []
    for each, part in zip(begun, result.parts, strict=True):
        start_seen_at = each.start_seen_at or each.go_sent_at
        times = {
            "begun": (each.go_sent_at + start_seen_at) / 2 - first,
            "begun_within": (start_seen_at - each.go_sent_at) / 2,
        }
        found.append(ClientUsage.model_validate({**vars(part), **vars(each), **times}))
    return tuple(found)


@contextmanager
def realtime_priority() -> Iterator[None]:
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


@dataclass(frozen=True)
class _Moment:
    reading: Reading
    sockets: SocketCounters | None


class _Series:
    """The readings of one load, and the windows between them."""

    def __init__(self, meter: Meter, sockets: ConnectionTracker, load: LoadRun, response_bytes: float | None) -> None:
        self._meter = meter
        self._sockets = sockets
        self._load = load
        self._response_bytes = response_bytes
        self._first = self._now()
        self._moments = [self._first]  # the ends of windows
        self._glance: SocketCounters | None = None  # within the first window

    def _now(self) -> _Moment:
        return _Moment(self._meter.read(), self._sockets.read())

    def follow(
        self, running: RunningGenerator, clock: Clock, most_seconds: float, tell: Callable[[Window], None]
    ) -> None:
        """Take a reading each second until the generator ends; raises LoadError when it does not."""
        began = clock.monotonic()
        # A container may take that long to start; after that the windows begin without a connection.
        while not self._connected(self._sockets.read()) and clock.monotonic() - began < 5.0:
            if running.wait(0.01) is not None:
                break
        began, tick = clock.monotonic(), 1
        self._moments = [self._now()]  # before, the generator was only being started
        # A load of one second is over when the first window is: its connections are counted while it is at work.
        if running.wait(WINDOW_SECONDS / 2) is None:
            self._glance = self._sockets.read()
        while running.wait(began + tick * WINDOW_SECONDS - clock.monotonic()) is None:
            self._moments.append(self._now())
            tell(self._window(self._moments[-2], self._moments[-1], self._response_bytes))
            if clock.monotonic() - began > most_seconds:
                late = most_seconds - self._load.seconds
                raise LoadError(f"the generator did not end {late:.0f} s after its time on {self._load.url}")
            tick = max(tick, int((clock.monotonic() - began) / WINDOW_SECONDS)) + 1
        self._end = self._meter.read()  # its sockets are gone: this one counts for CPU and memory only

    def windows(self, response_bytes: float | None) -> tuple[Window, ...]:
        """All whole windows, with responses of this size."""
        # At the end of a whole window the generator is still connected; one that outlasts its load is none.
        pairs = zip(self._moments, self._moments[1:], strict=False)
        return tuple(
            self._window(before, after, response_bytes) for before, after in pairs if self._connected(after.sockets)
        )

    def _window(self, before: _Moment, after: _Moment, size: float | None) -> Window:
        responses = None
        if before.sockets and after.sockets and size:
            responses = round((after.sockets.bytes_received - before.sockets.bytes_received) / size, 1)
        return Window(
            start=round(before.reading.at - self._first.reading.at, 4),
            duration=round(after.reading.at - before.reading.at, 4),
            responses=responses,
            server_cpu=round(after.reading.cpu_seconds - before.reading.cpu_seconds, 4),
            wait_share=_wait_share(before.reading, after.reading),
            rss=after.reading.rss,
            connections=self._established(after.sockets),
        )

    def _established(self, sockets: SocketCounters | None) -> int | None:
        """Connections of the generator: those that were there before it are the harness's own."""
        first = self._first.sockets
        return sockets.connections - first.connections if first and sockets else None

    def _connected(self, sockets: SocketCounters | None) -> bool:
        """Whether the generator is at work, as far as can be seen."""
        established = self._established(sockets)
        # One connection more than before may be the probe's.
        return established is None or established >= min(self._load.load.connections, 2)

    def _looks(self) -> list[SocketCounters | None]:
        return [moment.sockets for moment in self._moments] + [self._glance]

    def most_connections(self) -> int | None:
        """The most established connections at the end of any window, and in the middle of the first.

        Not the fewest: a busy machine takes a moment to accept all of them, and wrk closes them when its time is up.
        What matters is whether wrk ever had what it was asked for; connections lost on the way are errors.
        """
        counts = [self._established(sockets) for sockets in self._looks()[1:]]
        return max((count for count in counts if count is not None), default=None)

    def responses_per_request(self, result: LoadResult) -> float | None:
        """Responses for each request, by the bytes that the sockets had carried when they were last looked at."""
        last = max((look for look in self._looks() if look), key=lambda look: look.bytes_sent, default=None)
        first = self._first.sockets
        if first is None or last is None or not result.requests or self._load.requests:  # those differ in size
            return None
        requests = (last.bytes_sent - first.bytes_sent) / self._load.request_bytes
        responses = (last.bytes_received - first.bytes_received) / (result.bytes / result.requests)
        # Below, what is under way outweighs what has been answered.
        return responses / requests if requests >= 100 else None

    def use(self) -> ServerUsage:
        """What the server used from before the generator's start until after its end."""
        first, end = self._first.reading, self._end
        seen = [*(moment.reading for moment in self._moments[1:]), end]
        throttled = None
        if first.throttled_seconds is not None and end.throttled_seconds is not None:
            throttled = end.throttled_seconds - first.throttled_seconds
        return ServerUsage(
            cpu_seconds=end.cpu_seconds - first.cpu_seconds,
            rss_peak=max((each.rss for each in seen if each.rss is not None), default=None),
            wait_share=_wait_share(first, end),
            throttled_seconds=throttled,
            pids=end.pids,
            threads_peak=max((each.threads for each in seen if each.threads is not None), default=None),
        )


def _wait_share(before: Reading, after: Reading) -> float | None:
    if None in (before.run_seconds, before.wait_seconds, after.run_seconds, after.wait_seconds):
        return None
    run = (after.run_seconds or 0) - (before.run_seconds or 0)
    wait = (after.wait_seconds or 0) - (before.wait_seconds or 0)
    return round(wait / (wait + run), 4) if wait + run > 0 else None


def read_all(meters: Sequence[Meter]) -> list[Reading | None]:
    """Now, of each; None of a server that is gone, which is found out when its turn comes."""
    found: list[Reading | None] = []
    for meter in meters:
        try:
            found.append(meter.read())
        except ServerDiedError:
            found.append(None)
    return found


def cpus_used(before: Sequence[Reading | None], after: Sequence[Reading | None]) -> list[float | None]:
    """By each between two readings; None where that is not known."""
    return [
        (later.cpu_seconds - earlier.cpu_seconds) / (later.at - earlier.at)
        if earlier and later and later.at > earlier.at
        else None
        for earlier, later in zip(before, after, strict=True)
    ]


def _steal_share(before: Sequence[float] | None, after: Sequence[float] | None) -> float | None:
    if not before or not after or after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])
