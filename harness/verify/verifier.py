"""Verifies servers over HTTP: thoroughly in an implementation's first process, and briefly in later processes.

A verdict lists the results of the checks. Only problems that prevent verification raise exceptions.
"""

import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from harness.host.clock import CLOCK_JUMP_SECONDS, MAX_CLOCK_JUMPS, SYSTEM_CLOCK, wall_clock_offset
from harness.plan.testtypes import TestType
from harness.records.loads import Load
from harness.records.verification_record import WHOLE_SERVER, CheckResult, VerificationRecord, worst_outcome
from harness.runtime import NO_DATABASE, DatabaseAddress, Server
from harness.verify import wire
from harness.verify.checks import LOAD, connection
from harness.verify.checks.after_load import read_counters
from harness.verify.checks.evidence import Evidence, Exchange
from harness.verify.checks.http import DATE_BEHIND_SECONDS
from harness.verify.checks.verification_client import Client, ReconnectingConnection, VerificationTask
from harness.verify.database_tables import open_tables
from harness.verify.trial import ProcessVerification, TrialContext, TrialVerification
from harness.verify.verification import PLAIN, EvidenceGatherer, run_checks

logger = logging.getLogger("tfb.verify")

CONCURRENT_CONNECTIONS, REQUESTS_PER_CONNECTION = 32, 20

P = ParamSpec("P")
T = TypeVar("T")


def retry_on_clock_jump(verify: Callable[P, T]) -> Callable[P, T]:
    """Wrap a verification function so that it runs again if the system clock was set in the meantime.

    Some checks compare responses with the time of day, so setting the clock could make a correct server fail.
    """

    @functools.wraps(verify)
    def verify_with_steady_clock(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(MAX_CLOCK_JUMPS):
            before = wall_clock_offset(SYSTEM_CLOCK)
            result = verify(*args, **kwargs)
            jump = wall_clock_offset(SYSTEM_CLOCK) - before
            if abs(jump) < CLOCK_JUMP_SECONDS:
                return result
            logger.warning("The system clock changed by %+.1f s during verification. Verifying again.", jump)
        return verify(*args, **kwargs)

    return verify_with_steady_clock


class Verifier:
    """A runner for the checks in docs/requirements.md. It waits up to ``timeout`` seconds for each response."""

    def __init__(self, timeout: float = wire.TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        self._processes: dict[DatabaseAddress, ProcessVerification] = {}

    def start_process(self, database: DatabaseAddress) -> None:
        """Record the database's counters. Call this method before a server process starts."""
        self._processes.pop(database, ProcessVerification()).close()
        if database != NO_DATABASE:
            self._processes[database] = ProcessVerification(before=read_counters(database))

    @retry_on_clock_jump
    def verify_http(self, server: Server, *, process: int, thorough: bool) -> VerificationRecord:
        """Verify how the server uses HTTP, once for all test types. Return the verdict for ``WHOLE_SERVER``."""
        started_at = time.monotonic()
        # Prefer json and plaintext, because their responses are cheap, constant and different from each other.
        urls, test_types = server.implementation.urls, list(server.implementation.test_types.values())
        constant = [test_type for test_type in test_types if test_type.response_shape in ("message", "greeting")]
        targets = [test_type.target(urls[test_type.name]) for test_type in (constant or test_types)[:2]]
        evidence = Evidence(test_type=WHOLE_SERVER, thorough=thorough, rules=server.implementation.rules)
        # Skip services, because tfb must send them only declared requests.
        if not any(test_type.requests for test_type in test_types):
            client = Client(server.endpoint, test_types[0], targets[0], self._timeout)
            evidence.exchanges = client.send_in_order([PLAIN])
            if thorough and constant and evidence.exchanges[0].ok:
                evidence.exchanges += _probe_connection_limits(client)
            if thorough:
                evidence.probes = connection.gather(server.endpoint, targets, self._timeout)
            evidence.exchanges += client.send_in_order([PLAIN] * 3)
            if thorough:
                evidence.exchanges += _send_until_date_changes(client, evidence.exchanges)
        return _verdict(server, WHOLE_SERVER, process, evidence, started_at)

    @retry_on_clock_jump
    def verify_test_type(
        self,
        server: Server,
        test_type: TestType,
        database: DatabaseAddress | None,
        *,
        process: int,
        thorough: bool,
        loads: Sequence[Load],
    ) -> VerificationRecord:
        """Verify a test type, and determine bounds on the response size for each of the given loads."""
        started_at = time.monotonic()
        gatherer = self._gather(server, test_type, database, thorough=thorough)
        query_counts = sorted({load.queries for load in loads}, key=lambda queries: queries or 0) or [None]
        sizes = {f"{queries or ''}": gatherer.response_size(queries) for queries in query_counts}
        known_sizes = {level: size for level, size in sizes.items() if size is not None}
        verdict = _verdict(server, test_type.name, process, gatherer.evidence, started_at)
        return verdict.model_copy(update={"response_bytes": known_sizes})

    def _gather(
        self, server: Server, test_type: TestType, database: DatabaseAddress | None, *, thorough: bool
    ) -> EvidenceGatherer:
        database = database if test_type.reads_database else None
        gatherer = EvidenceGatherer(
            VerificationTask(
                server=server, test_type=test_type, timeout=self._timeout, thorough=thorough, database=database
            )
        )
        # A periodically refreshed cache may still contain old rows.
        if database and any(other.cached for other in server.implementation.test_types.values()):
            process = self._processes.setdefault(database, ProcessVerification())
            if test_type.cached:
                gatherer.evidence.cached_rows = process.recent_rows()
            elif gatherer.evidence.history:
                process.remember_rows(gatherer.evidence.history)
        return gatherer

    def verify_trial(self, context: TrialContext) -> TrialVerification:
        """Return a context manager that gathers evidence during the load of a trial."""
        process = self._processes.setdefault(context.database, ProcessVerification())
        return TrialVerification(context=context, process=process)

    @retry_on_clock_jump
    def verify_after_load(
        self, server: Server, test_type: TestType, database: DatabaseAddress
    ) -> tuple[CheckResult, ...]:
        """Briefly verify a test type after a load, including the tables if the test type updates them."""
        if test_type.writes_database and test_type.has_rows:
            with open_tables(database) as tables:
                # The server may still be processing wrk's last requests, because wrk does not wait for responses.
                tables.wait_until_idle()
        return run_checks(self._gather(server, test_type, database, thorough=False).evidence)

    def end_process(self, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """Check what a process read and changed in the database. Call this method after the process has stopped."""
        process = self._processes.pop(database, ProcessVerification())
        process.close()
        if process.before is None:
            return ()
        activity = read_counters(database).since(process.before)
        return run_checks(Evidence(test_type=LOAD, database_activity=activity, expected_work=process.expected_work))


def _probe_connection_limits(client: Client) -> list[Exchange]:
    """Send requests on many connections at once. Then send up to 1,001 requests on a single connection.

    Stop if the server closes the single connection.
    """
    exchanges = client.send_concurrently(
        [PLAIN] * (CONCURRENT_CONNECTIONS * REQUESTS_PER_CONNECTION), CONCURRENT_CONNECTIONS
    )
    with ReconnectingConnection(client) as single:
        # Exceed the usual limits on requests per connection: 10 in Puma while other clients wait, 100 in Tomcat and
        # Apache, and 1,000 in nginx.
        for _ in range(1001):
            exchanges.append(single.send(PLAIN))
            if exchanges[-1].response is None or exchanges[-1].closed or exchanges[-1].reconnected:
                break
    return exchanges


def _send_until_date_changes(client: Client, earlier: Sequence[Exchange]) -> list[Exchange]:
    """Send requests until Date differs from that of the first earlier response, or until a time limit."""
    exchanges = [earlier[-1]]
    first_date, deadline = earlier[0].header("date"), time.monotonic() + DATE_BEHIND_SECONDS
    while first_date and exchanges[-1].header("date") == first_date and time.monotonic() < deadline:
        time.sleep(0.05)
        exchanges += client.send_in_order([PLAIN])
    return exchanges[1:]


def _verdict(server: Server, name: str, process: int, evidence: Evidence, started_at: float) -> VerificationRecord:
    results = run_checks(evidence)
    return VerificationRecord(
        implementation=server.implementation.name,
        test_type=name,
        process=process,
        thorough=evidence.thorough,
        outcome=worst_outcome(result.outcome for result in results),
        results=results,
        duration=time.monotonic() - started_at,
        response_bytes={},
    )
