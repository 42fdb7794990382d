"""Verifies an implementation without load, on a fresh server with a private database."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import psycopg

from harness.errors import ServerDiedError, StartError, TfbError
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import MultiMachineRuntime
from harness.plan.implementation import Implementation
from harness.records.loads import Load
from harness.records.store import RunStore
from harness.records.verification_record import WHOLE_SERVER, Outcome, VerificationRecord
from harness.runtime import Database, Runtime, Server, SharedDatabase
from harness.runtime.crashes import find_errors
from harness.runtime.database.refusals import RefusalWatch
from harness.verify import process_conduct
from harness.verify.checks.evidence import ConductFacts
from harness.verify.verifier import Verifier


class VerificationSetup(Protocol):
    """The runtime, database and logs that a verification uses."""

    @property
    def runtime(self) -> Runtime:
        """The runtime that starts servers."""

    @property
    def database(self) -> SharedDatabase:
        """The PostgreSQL server that all servers use."""

    @property
    def logs(self) -> RunStore:
        """The store for the servers' logs."""


def _is_unknown_route(verdict: VerificationRecord) -> bool:
    """Return whether the response to the declared URL had the status 404 or 405."""
    statuses = [each.actual or "" for each in verdict.results if each.check == "status-ok"]
    return any(re.match(r"40[45]\b", status) for status in statuses)


def quote_log(logged: str | None, verdict: VerificationRecord) -> VerificationRecord:
    """Add an error from the server's log to the first failed check of a verdict.

    The error is appended to ``actual``, because ``message`` must stay equal for failures with the same cause.
    """
    failed = next((each for each in verdict.results if each.outcome is Outcome.FAIL), None)
    if failed is None or not logged:
        return verdict
    actual = f"{failed.actual}; server log: {logged}" if failed.actual else f"server log: {logged}"
    quoted = failed.model_copy(update={"actual": actual})
    return verdict.model_copy(update={"results": tuple(quoted if each is failed else each for each in verdict.results)})


class Verification:
    """The verification of an implementation: HTTP, each test type, and the behaviour of the server's process."""

    def __init__(
        self,
        implementation: Implementation,
        kinds: Mapping[str, Sequence[Load]],
        setup: VerificationSetup,
        progress: ProgressTracker,
        *,
        strict: bool,
    ) -> None:
        self._implementation, self._kinds, self._setup = implementation, kinds, setup
        self._progress, self._strict = progress, strict
        self._log: Path = setup.logs.log(implementation.name, "verify")
        self._verifier = Verifier()
        self._verdicts: list[VerificationRecord] = []
        self._stop_seconds: float | None = None
        self._root_processes: tuple[str, ...] | None = None
        self._stopped = False
        self._logged: dict[str, str] = {}  # failed test type -> error that the server logged during the verification

    def verdicts(self) -> list[VerificationRecord]:
        """Verify the implementation and return the verdicts. Report any problem that prevented a verdict.

        The server gets a private database, role and password, so hard-coded credentials fail. If the server exits
        while a test type is being verified, only that test type fails. tfb restarts the server for the others.
        """
        started_at = time.monotonic()
        mistakes: tuple[str, ...] = ()
        try:
            with ExitStack() as stack:
                database = self._database(stack)
                watch = RefusalWatch.start(database.address, self._setup.database.log)
                try:
                    self._verify_all(database)
                except (StartError, ServerDiedError):
                    for mistake in watch.find_mistakes(self._log):
                        self._progress.problem(f"{self._implementation.name}: the server {mistake}")
                    raise
                mistakes = self._mistakes(watch)
        except (TfbError, psycopg.Error) as error:
            address = self._setup.database.address
            source = f"PostgreSQL at {address.host}:{address.port}"
            self._progress.problem(str(error) if isinstance(error, TfbError) else f"{source}: {str(error).strip()}")
        if not mistakes:  # messages about ignored database settings already quote the log
            self._verdicts = [quote_log(self._logged.get(each.test_type), each) for each in self._verdicts]
        if self._verdicts:  # otherwise, the server never started
            self._judge_conduct(mistakes, started_at)
        return self._verdicts

    def _judge_conduct(self, mistakes: tuple[str, ...], started_at: float) -> None:
        """Add the verdict on the server process's behaviour and on the implementation's folder."""
        facts = ConductFacts(
            database_mistakes=mistakes,
            stop_requested=self._stopped,
            stop_seconds=self._stop_seconds,
            root_processes=self._root_processes,
            folder=process_conduct.read_folder(self._implementation, strict=self._strict),
            strict=self._strict,
        )
        if verdict := process_conduct.verify_conduct(self._implementation, facts, started_at):
            self._verdicts.append(verdict)

    def _database(self, stack: ExitStack) -> Database:
        """Return a private database, or the shared database.

        Use the shared database if the database server does not support private databases. Also use it for an
        implementation without a ``local`` block, because its container hard-codes the database's host and name.
        """
        shared = self._setup.database
        if not shared.supports_copies or self._implementation.local is None:
            return shared
        empty = self._implementation.is_service
        return stack.enter_context(shared.private_database(f"{self._implementation.name}-verify", empty=empty))

    def _mistakes(self, watch: RefusalWatch) -> tuple[str, ...]:
        """If a test type that reads the database failed, return the database settings that the server ignores.

        Failures because the server has no route for the test type's URL do not count: the database did not cause them.
        """
        types = self._implementation.test_types
        failures = (v for v in self._verdicts if v.outcome is Outcome.FAIL and v.test_type != WHOLE_SERVER)
        failed = [v.test_type for v in failures if not _is_unknown_route(v)]
        reading = any(types[kind].reads_database for kind in failed)
        return watch.find_mistakes(self._log, expected=True) if reading else ()

    def _verify_all(self, database: Database) -> None:
        """Verify all test types. If the server exits unexpectedly, restart it for the remaining test types."""
        remaining = [WHOLE_SERVER, *self._kinds]
        implementation, path = self._implementation, self._implementation.ready_path
        while remaining:
            database.restore()
            with self._setup.runtime.start(implementation, database.address, self._log, ready_path=path) as server:
                name = WHOLE_SERVER
                try:
                    while remaining:
                        name = remaining.pop(0)
                        log_begin = self._log.stat().st_size if self._log.exists() else 0
                        self._verdicts.append(self._verify(server, name, database))
                        self._keep_error(self._verdicts[-1], log_begin)
                        server.program.require_alive()
                    self._stop(server)
                except ServerDiedError as error:
                    self._progress.problem(f"while verifying {name}: {error}")

    def _keep_error(self, verdict: VerificationRecord, log_begin: int) -> None:
        """If the test type failed, remember the first error that the log contains after byte ``log_begin``."""
        failed = verdict.outcome is Outcome.FAIL and verdict.test_type != WHOLE_SERVER
        if failed and (errors := find_errors(self._log, log_begin)):
            self._logged[verdict.test_type] = errors[0]

    def _verify(self, server: Server, name: str, database: Database) -> VerificationRecord:
        """Return the verdict on a test type or, if ``name`` is WHOLE_SERVER, on HTTP."""
        if name == WHOLE_SERVER:
            return self._verifier.verify_http(server, process=0, thorough=True)
        kind, loads = self._implementation.test_types[name], self._kinds[name]
        return self._verifier.verify_test_type(server, kind, database.address, process=0, thorough=True, loads=loads)

    def _stop(self, server: Server) -> None:
        """Stop the server. Record how long this takes, and which of the server's processes ran as root."""
        runtime = self._setup.runtime
        if runtime.name == "docker" and not isinstance(runtime, MultiMachineRuntime):
            self._root_processes = process_conduct.find_root_processes(server)
        self._stop_seconds, self._stopped = server.program.end(), True
