"""Verification as a run asks for it, which takes no notice of a clock that somebody sets."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from harness.host.clock import JUMP_SECONDS, JUMPS, SYSTEM_CLOCK, time_of_day
from harness.plan.testtypes import TestType
from harness.records.models import CheckResult, Evidence, Load, Verdict
from harness.runtime import NO_DATABASE, DatabaseAddress, Server
from harness.verify import verification
from harness.verify.checks.evidence import Account
from harness.verify.checks.load import read_counters
from harness.verify.tables import Views
from harness.verify.trial import Process, Sampling, TrialAudit

logger = logging.getLogger("tfb.verify")

T = TypeVar("T")


class TrialEvidence(Protocol):
    """Context manager around one load: entered before the generator starts, left when it has ended."""

    @property
    def sampling(self) -> Sampling:
        """What the generator shall write out of the answers."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def judge(self, *, good: int, failed: int, account: Account | None, answers: Path | None) -> Evidence:
        """What the checks object to, once the load is over.

        ``good`` and ``failed`` are answers of 2xx and of other statuses, those after the load's end included. Without
        an account and a file of answers, of a generator that writes none, only the database's counts are judged.
        """


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


class Verifier:
    """Over sockets, with the checks of docs/requirements.md; knows the process that each database is used by.

    Failed checks are results; only what prevents them is an error. The fake world has a double of it.
    """

    def __init__(self) -> None:
        self._views = Views()
        self._processes: dict[DatabaseAddress, Process] = {}

    def begin(self, database: DatabaseAddress) -> None:
        """Note what the database holds, before a process starts on it."""
        if database != NO_DATABASE:
            self._processes[database] = Process(before=read_counters(database))

    def connection(self, server: Server, *, process: int, thorough: bool) -> Verdict:
        """HTTP of the server as a whole."""
        return steadily(lambda: verification.check_connection(server, process=process, thorough=thorough))

    def check(
        self,
        server: Server,
        test_type: TestType,
        database: DatabaseAddress,
        *,
        process: int,
        thorough: bool,
        loads: Sequence[Load],
    ) -> Verdict:
        """One test type, with the sizes of its responses at these loads."""
        return steadily(
            lambda: verification.check(server, test_type, database, process=process, thorough=thorough, loads=loads)
        )

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
    ) -> TrialEvidence:
        """What shall be seen of one load; ``rate`` is the requests/s that are expected, None where nothing is known."""
        process = self._processes.setdefault(database, Process())
        return TrialAudit(
            server, test_type, load, database, self._views, process, seconds=seconds, rate=rate, seed=seed
        )

    def after_load(self, server: Server, test_type: TestType, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """Whether it still verifies, and the database is consistent."""
        return steadily(lambda: verification.after_load(server, test_type, database))

    def end(self, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """What a process has left behind in the database and lost there; nothing where its beginning was not noted."""
        self._views.close(database)
        process = self._processes.pop(database, Process())
        if process.before is None:
            return ()
        return verification.after_process(process.before, read_counters(database), process.due, failed=process.failed)
