"""Runs a load while observing the server, the database and the idle servers."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import LoadError, ServerDiedError
from harness.experiment.generators import LoadGenerator, LoadResult, LoadRun
from harness.experiment.load_windows import LoadWindows
from harness.host import process
from harness.host.clock import Clock
from harness.host.metering import Reading
from harness.paths import REPOSITORY
from harness.records.loads import Scenario
from harness.records.measurements import ClientUsage, LoadObservations, Window
from harness.runtime import Database, GeneratorGroup, GeneratorStart, Meter, RunningGenerator, Runtime, Server
from harness.verify.wire import TIMEOUT_SECONDS

# A load may take this much longer than planned: the last response and the drain may take up to TIMEOUT_SECONDS each.
SLACK_SECONDS = 10.0 + 2 * TIMEOUT_SECONDS


class Observation(LoadObservations):
    """Measurements that the generator and the harness took during a load."""

    result: LoadResult
    idle_cpus: tuple[float | None, ...] = ()  # CPUs that each idle server used; None if it died


@dataclass(frozen=True, kw_only=True)
class ObservedLoad:
    """A load, and the servers and the database to observe while it runs."""

    server: Server
    database: Database  # the server's database
    generator: LoadGenerator
    run: LoadRun
    folder: Path  # folder for the generator's files
    metered_port: int | None = None  # port whose connections are metered; 0 for none, None for the server's main port
    # Mean bytes per verified response, from which tfb estimates throughput until the generator reports it.
    response_bytes: float | None = None
    idle_meters: Sequence[Meter] = ()  # meters of the running servers that are not under load


def observe(runtime: Runtime, clock: Clock, load: ObservedLoad, on_window: Callable[[Window], None]) -> Observation:
    """Run a load until the generator exits. Each second, call ``on_window`` with the latest window.

    Raises LoadError if the generator fails or reports no valid result, and ServerDiedError if the server dies.
    """
    server, run = load.server, load.run
    arguments = load.generator.arguments(run, load.folder)
    server.program.require_alive()
    identity, database_meter = server.program.identity(), load.database.meter()
    steal_before = server.program.steal_ticks()
    database_before = database_meter.read() if database_meter else None
    idle_before = read_all(load.idle_meters)
    port = server.endpoint.metered_port if load.metered_port is None else load.metered_port
    with closing(server.program.connections(port)) as connections:
        windows = LoadWindows(server.program, connections, run, load.response_bytes)
        started_at = clock.time()
        with _start_generator(runtime, load, arguments) as running:
            running.begin()
            status = _follow(windows, running, clock, load, on_window)
            database_after = database_meter.read() if database_meter else None
            output = running.output()
            generator_starts = running.starts() if isinstance(running, GeneratorGroup) else ()
            command = tuple(argument.removeprefix(f"{REPOSITORY}/") for argument in running.command)
    if status:
        name, how = Path(load.generator.program).name, process.describe_status(status)
        raise LoadError(f"{name} failed ({how}) on {run.url}: {output.strip()[-500:]}")
    identity_after = server.program.identity()
    server.program.require_alive()
    result = load.generator.result(run, output)
    idle_cpus = cpus_used(idle_before, read_all(load.idle_meters))
    known_cpus = [cpus for cpus in idle_cpus if cpus is not None]
    return Observation(
        started_at=started_at,
        command=command,
        result=result,
        windows=windows.windows(result.bytes / result.requests if result.requests else load.response_bytes),
        server=windows.server_usage(),
        database_cpu_seconds=(
            database_after.cpu_seconds - database_before.cpu_seconds if database_after and database_before else None
        ),
        steal_share=_steal_share(steal_before, server.program.steal_ticks()),
        connections=windows.max_connections(),
        idle_cpus=tuple(idle_cpus),
        idle_cpu_share=round(max(known_cpus), 5) if known_cpus else None,
        restarted=identity_after != identity,
        responses_per_request=windows.responses_per_request(result),
        clients=_clients(generator_starts, result),
    )


def _start_generator(
    runtime: Runtime, load: ObservedLoad, arguments: Sequence[str]
) -> AbstractContextManager[RunningGenerator]:
    """Start the generator. Give it access to the folder only if it reads or writes files."""
    generator, run = load.generator, load.run
    uses_files = run.sampling or run.requests or isinstance(run.load, Scenario)
    folder = load.folder if uses_files else None
    return runtime.generator(generator.program, arguments, waits_for_go=generator.waits_for_go, folder=folder)


def _follow(
    windows: LoadWindows,
    running: RunningGenerator,
    clock: Clock,
    load: ObservedLoad,
    on_window: Callable[[Window], None],
) -> int | None:
    """Observe the load until the generator exits, then return the exit status."""
    with realtime_priority():
        try:
            windows.follow(running, clock, load.run.seconds + SLACK_SECONDS, on_window)
        except ServerDiedError:
            load.server.program.require_alive()  # raise an error that quotes the exit status and the end of the log
            raise
        return running.wait(0)


def _clients(generator_starts: Sequence[GeneratorStart], result: LoadResult) -> tuple[ClientUsage, ...]:
    """Return the resources that each of several clients used.

    Return an empty tuple for a single client, or if the number of results differs from the number of clients.
    """
    if len(generator_starts) < 2 or len(generator_starts) != len(result.parts):
        return ()
    first_go_at = min(each.go_sent_at for each in generator_starts)
    clients = []
    for start, part in zip(generator_starts, result.parts, strict=True):
        start_seen_at = start.start_seen_at or start.go_sent_at
        clients.append(
            ClientUsage(
                client=start.client,
                connections=start.connections,
                threads=start.threads,
                requests=part.requests,
                bytes=part.bytes,
                duration=part.duration,
                cpu_seconds=part.cpu_seconds,
                wait_seconds=part.wait_seconds,
                begun=(start.go_sent_at + start_seen_at) / 2 - first_go_at,
                begun_within=(start_seen_at - start.go_sent_at) / 2,
            )
        )
    return tuple(clients)


@contextmanager
def realtime_priority() -> Iterator[None]:
    """Run a block with real-time priority, if permitted, so that windows end on time.

    With normal priority, this thread may wake up half a second late if servers and generators use all CPUs. The block
    must use at most a few milliseconds of CPU time per second. Child processes get normal priority.
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


def read_all(meters: Sequence[Meter]) -> list[Reading | None]:
    """Return each meter's reading, with None for a server that has died. A later step reports the death."""
    readings: list[Reading | None] = []
    for meter in meters:
        try:
            readings.append(meter.read())
        except ServerDiedError:
            readings.append(None)
    return readings


def cpus_used(before: Sequence[Reading | None], after: Sequence[Reading | None]) -> list[float | None]:
    """Return how many CPUs each server used between two readings. An element is None if a reading is missing."""
    return [
        (later.cpu_seconds - earlier.cpu_seconds) / (later.read_at - earlier.read_at)
        if earlier and later and later.read_at > earlier.read_at
        else None
        for earlier, later in zip(before, after, strict=True)
    ]


def _steal_share(before: Sequence[float] | None, after: Sequence[float] | None) -> float | None:
    """Return the fraction of CPU time that the hypervisor stole between two readings, or None if unknown.

    A reading is a (stolen ticks, total ticks) pair.
    """
    if not before or not after or after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])
