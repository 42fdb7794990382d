"""Verification as a run asks for it: thorough in an implementation's first process, else brief.

A failed check is part of the verdict; only what prevents verification altogether is an error.
"""

import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from harness.host.clock import CLOCK_JUMP_SECONDS, MAX_CLOCK_JUMPS, SYSTEM_CLOCK, wall_clock_offset
from harness.plan.testtypes import TestType
from harness.records.loads import Load
from harness.records.outcome import worst_outcome
from harness.records.verification_record import CheckResult, VerificationRecord
from harness.runtime import NO_DATABASE, DatabaseAddress, Server
from harness.verify import wire
from harness.verify.checks import LOAD, SERVER, connection
from harness.verify.checks.after_load import read_counters
from harness.verify.checks.asking import Asking, Client, Lane
from harness.verify.checks.evidence import Evidence, Exchange
from harness.verify.checks.http import DATE_BEHIND_SECONDS
from harness.verify.database_tables import tables
from harness.verify.trial import ProcessAudit, TrialAudit
from harness.verify.verification import PLAIN, Gathering, judge

logger = logging.getLogger("tfb.verify")

# Limits of servers show here: Puma closes after 10 requests of a connection while others wait, Tomcat and Apache after
# 100, nginx after 1,000. One connection makes the last, and some at once the others.
LASTING_REQUESTS = 1001
CROWD_CONNECTIONS, CROWD_REQUESTS = 32, 20  # per connection

P = ParamSpec("P")
T = TypeVar("T")


def steadily(judge: Callable[P, T]) -> Callable[P, T]:
    """Makes a judgement again during which somebody has set the machine's clock.

    Answers are held against the time of day (Date, the order of changes): a clock that jumps is no server's fault.
    """

    @functools.wraps(judge)
    def steady(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(MAX_CLOCK_JUMPS):
            before = wall_clock_offset(SYSTEM_CLOCK)
            found = judge(*args, **kwargs)
            jump = wall_clock_offset(SYSTEM_CLOCK) - before
            if abs(jump) < CLOCK_JUMP_SECONDS:
                return found
            logger.warning("the machine's clock was set by %+.1f s meanwhile: verified again", jump)
        return judge(*args, **kwargs)

    return steady


class Verifier:
    """Over sockets, with the checks of docs/requirements.md; knows the process that each database is used by.

    ``patience`` is how long to wait for bytes, in seconds. The fake world has a double of it.
    """

    def __init__(self, patience: float = wire.PATIENCE) -> None:
        self._patience = patience
        self._processes: dict[DatabaseAddress, ProcessAudit] = {}

    def begin(self, database: DatabaseAddress) -> None:
        """Note what the database holds, before a process starts on it."""
        self._processes.pop(database, ProcessAudit()).close()
        if database != NO_DATABASE:
            self._processes[database] = ProcessAudit(before=read_counters(database))

    @steadily
    def connection(self, server: Server, *, process: int, thorough: bool) -> VerificationRecord:
        """HTTP of the server as a whole, as a verdict of its own whose test type is ``http``."""
        began = time.monotonic()
        # json and plaintext first: their answers are cheap, differ from each other and never change.
        urls, kinds = server.implementation.urls, list(server.implementation.test_types.values())
        constant = [kind for kind in kinds if kind.response_shape in ("message", "greeting")]
        targets = [kind.target(urls[kind.name]) for kind in (constant or kinds)[:2]]
        rules = server.implementation.rules
        evidence = Evidence(test_type=SERVER, thorough=thorough, rules=rules)
        if not any(kind.requests for kind in kinds):  # else what a service declares is all that is asked of it
            client = Client(server.endpoint, kinds[0], targets[0], self._patience)
            evidence.exchanges = client.ask([PLAIN])
            if thorough and constant and evidence.exchanges[0].ok:
                evidence.exchanges += _stays_open(client)
            if thorough:
                evidence.wire = connection.gather(server.endpoint, targets, self._patience)
            evidence.exchanges += client.ask([PLAIN] * 3)
            # Until the Date is another, which it may be once a second.
            first, until = evidence.exchanges[0].header("date"), time.monotonic() + DATE_BEHIND_SECONDS
            while thorough and first and evidence.exchanges[-1].header("date") == first and time.monotonic() < until:
                time.sleep(0.05)
                evidence.exchanges += client.ask([PLAIN])
        return _verdict(server, SERVER, process, evidence, began)

    @steadily
    def check(
        self,
        server: Server,
        test_type: TestType,
        database: DatabaseAddress | None,
        *,
        process: int,
        thorough: bool,
        loads: Sequence[Load],
    ) -> VerificationRecord:
        """One test type, with the sizes of its responses at these loads."""
        began = time.monotonic()
        gathering = self._gathered(server, test_type, database, thorough=thorough)
        levels = sorted({load.queries for load in loads}, key=lambda queries: queries or 0) or [None]
        sizes = {f"{queries or ''}": gathering.size(queries) for queries in levels}
        known = {level: size for level, size in sizes.items() if size is not None}
        return _verdict(server, test_type.name, process, gathering.evidence, began, known)

    def _gathered(
        self, server: Server, test_type: TestType, database: DatabaseAddress | None, *, thorough: bool
    ) -> Gathering:
        read = database if test_type.reads_database else None
        asking = Asking(server=server, test_type=test_type, patience=self._patience, thorough=thorough, database=read)
        gathering = Gathering(asking)
        # A cache that is refreshed now and then may hold what changed rows held, until the next time.
        if read and any(kind.cached for kind in server.implementation.test_types.values()):
            process = self._processes.setdefault(read, ProcessAudit())
            if test_type.cached:
                gathering.evidence.cached = process.recent()
            elif gathering.evidence.history:
                process.note(gathering.evidence.history)
        return gathering

    def trial(
        self,
        server: Server,
        test_type: TestType,
        load: Load,
        database: DatabaseAddress,
        *,
        seconds: float,
        rate: float | None,
        seed: int,
    ) -> TrialAudit:
        """What shall be seen of one load; ``rate`` is the requests/s that are expected, None where nothing is known."""
        return TrialAudit(
            server=server,
            test_type=test_type,
            load=load,
            database=database,
            process=self._processes.setdefault(database, ProcessAudit()),
            seconds=seconds,
            rate=rate,
            seed=seed,
        )

    @steadily
    def after_load(self, server: Server, test_type: TestType, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """Whether it still verifies, briefly, and the table that was updated is consistent."""
        if test_type.writes_database and test_type.has_rows:
            with tables(database) as view:
                view.settle()  # wrk leaves when its time is up; what it had asked for last is still being written
        return judge(self._gathered(server, test_type, database, thorough=False).evidence)

    def end(self, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """Of a process that has stopped: whether what it answered under load reached the tables, and what is left.

        Nothing where its beginning was not noted.
        """
        process = self._processes.pop(database, ProcessAudit())
        process.close()
        if process.before is None:
            return ()
        use = read_counters(database).since(process.before)
        return judge(Evidence(test_type=LOAD, use=use, due=process.due))


def _stays_open(client: Client) -> list[Exchange]:
    """Ask many times on many connections at once, and on one connection until it is closed; return the exchanges."""
    found = client.crowd([PLAIN] * (CROWD_CONNECTIONS * CROWD_REQUESTS), CROWD_CONNECTIONS)
    with Lane(client) as lane:
        for _ in range(LASTING_REQUESTS):
            found.append(lane.send(PLAIN))
            if found[-1].response is None or found[-1].closed or found[-1].reconnected:
                break
    return found


def _verdict(
    server: Server,
    name: str,
    process: int,
    evidence: Evidence,
    began: float,
    sizes: dict[str, tuple[float, float]] | None = None,
) -> VerificationRecord:
    results = judge(evidence)
    return VerificationRecord(
        implementation=server.implementation.name,
        test_type=name,
        process=process,
        thorough=evidence.thorough,
        outcome=worst_outcome(result.outcome for result in results),
        results=results,
        duration=time.monotonic() - began,
        response_bytes=sizes or {},
    )
