"""Verification as a run asks for it: a Protocol, so that the spine runs without wire and database, and the real one."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from harness.host.clock import JUMP_SECONDS, JUMPS, SYSTEM_CLOCK, time_of_day
from harness.plan.orders import USE_CASES
from harness.plan.testtypes import TestType
from harness.records.models import CheckResult, Load, Verdict
from harness.runtime import DatabaseAddress, Server
from harness.verify import order_load, verification
from harness.verify.checks.evidence import Exchange
from harness.verify.checks.load import DatabaseCounters, read_statements, read_table_use
from harness.verify.checks.statement_counts import Snapshot
from harness.verify.probe import Probe

logger = logging.getLogger("tfb.verify")

T = TypeVar("T")


class Watch(Protocol):
    """Looks at answers while a load is on; ``failures`` holds the checks that failed, once it is left."""

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """What was wrong."""

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """What it asked and was answered, once it is left."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class Verifier(Protocol):
    """What a run asks about a server's answers. Failed checks are results; only what prevents them is an error."""

    def connection(self, server: Server, *, replicate: int, thorough: bool) -> Verdict:
        """HTTP of the server as a whole."""

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
        """One test type, with the sizes of its responses at these levels."""

    def after_load(self, server: Server, test_type: TestType, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """Whether it still verifies, and the database is consistent."""

    def watch(self, server: Server, test_type: TestType, level: Load, database: DatabaseAddress) -> Watch:
        """A look at answers while a load is on."""

    def table_use(self, database: DatabaseAddress) -> DatabaseCounters:
        """What all sessions did to the world tables so far."""

    def statements(self, database: DatabaseAddress) -> Snapshot | None:
        """What the statements of servers came to so far; None where they are not counted."""

    def empty_orders(self, database: DatabaseAddress) -> None:
        """Empty the order service's tables, while a server is connected."""

    def orders_answered(self, answers: Path, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """Whether the database has just the rows that a load's answers, a line of each arrival, say."""

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
        """Whether the rows that were answered under load were read and written."""


def steadily(judge: Callable[[], T]) -> T:
    """A judgement during which nobody has set the machine's clock; it is made again where somebody did.

    Answers are held against the time of day (Date, the order of changes): a clock that jumps is no server's fault.
    """
    for _ in range(JUMPS):
        before = time_of_day(SYSTEM_CLOCK)
        found = judge()
        jump = time_of_day(SYSTEM_CLOCK) - before
        if abs(jump) < JUMP_SECONDS:
            return found
        logger.warning("the machine's clock was set by %+.1f s meanwhile: verified again", jump)
    return judge()


class WireVerifier:
    """Over sockets, with the checks of docs/requirements.md."""

    def connection(self, server: Server, *, replicate: int, thorough: bool) -> Verdict:
        """``verification.check_connection``."""
        return steadily(
            lambda: verification.check_connection(
                implementation=server.implementation.name,
                urls=server.implementation.urls,
                endpoint=server.endpoint,
                replicate=replicate,
                thorough=thorough,
                rules=server.implementation.rules,
            )
        )

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
        """``verification.check``."""
        return steadily(
            lambda: verification.check(
                implementation=server.implementation.name,
                urls=server.implementation.urls,
                endpoint=server.endpoint,
                test_type=test_type,
                database=database,
                thorough=thorough,
                replicate=replicate,
                levels=levels,
                upstream=server.upstream,
                rules=server.implementation.rules,
            )
        )

    def after_load(self, server: Server, test_type: TestType, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """``verification.after_load``."""
        return steadily(
            lambda: verification.after_load(
                urls=server.implementation.urls,
                endpoint=server.endpoint,
                test_type=test_type,
                database=database,
                upstream=server.upstream,
                rules=server.implementation.rules,
            )
        )

    def watch(self, server: Server, test_type: TestType, level: Load, database: DatabaseAddress) -> Watch:
        """A probe on a connection of its own."""
        url = server.implementation.urls[test_type.name]
        return Probe(
            endpoint=server.endpoint,
            test_type=test_type,
            url=url,
            level=level,
            database=database,
            rules=server.implementation.rules,
        )

    def table_use(self, database: DatabaseAddress) -> DatabaseCounters:
        """PostgreSQL's own counters."""
        return read_table_use(database)

    def statements(self, database: DatabaseAddress) -> Snapshot | None:
        """``pg_stat_statements``."""
        return read_statements(database)

    def empty_orders(self, database: DatabaseAddress) -> None:
        """``order_load.empty``."""
        order_load.empty(database)

    def orders_answered(self, answers: Path, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """``order_load.judge``, of a load that began on empty tables."""
        return order_load.judge(answers, USE_CASES, database, {})

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
        """``verification.check_load``."""
        return verification.check_load(
            before,
            after,
            answered_reads=answered_reads,
            answered_writes=answered_writes,
            answered_fortunes=answered_fortunes,
            failed_responses=failed_responses,
        )
