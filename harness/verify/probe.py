"""Watches a server while the load is on: a few requests a second on one connection, judged when the load is over.

During the load the probe only sends, receives and keeps what came; every check runs afterwards, so that it costs the
machine a few hundred microseconds a second. A server that answers the generator with less than it answered verification
is seen here.
"""

import itertools
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from harness.plan.discovery import Rules
from harness.plan.testtypes import TestType
from harness.records.models import CheckResult, Load, Outcome
from harness.runtime import DatabaseAddress, Endpoint
from harness.verify import verification, wire
from harness.verify.checks.asking import Client
from harness.verify.checks.evidence import Evidence, Exchange, Version
from harness.verify.checks.tables import tables

PERIOD_SECONDS = 0.3  # between two requests


class Probe:
    """Context manager around one measurement; ``failures`` holds the checks that failed, once it is left."""

    def __init__(
        self,
        *,
        endpoint: Endpoint,
        test_type: TestType,
        url: str,
        level: Load,
        database: DatabaseAddress | None,
        period: float = PERIOD_SECONDS,
        patience: float = wire.PATIENCE,
        rules: Rules = "tfb",
    ) -> None:
        target = test_type.target(url)
        self._client = Client(endpoint, test_type, target, patience)
        self._case = verification.PLAIN if level.queries is None else verification.rows(level.queries)
        self._database = database if test_type.reads_database else None
        self._type = test_type
        self._period = period
        self._patience = patience
        self._over = threading.Event()
        self._exchanges: list[Exchange] = []
        self._thread = threading.Thread(target=self._watch, name="probe", daemon=True)
        self.evidence = Evidence(test_type=test_type.name, url=target, thorough=False, under_load=True, rules=rules)
        self.failures: tuple[CheckResult, ...] = ()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(self._patience + 1)
        if error is None:
            self.failures = self._judge()

    @property
    def requests(self) -> int:
        """How many it sent."""
        return len(self._exchanges)

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """What it asked and was answered."""
        return tuple(self._exchanges)

    def _watch(self) -> None:
        """One request a period on one connection, until the load is over; at least one."""
        for exchange in self._client.asking(itertools.repeat(self._case)):
            self._exchanges.append(exchange)
            if self._over.wait(self._period):
                return

    def _judge(self) -> tuple[CheckResult, ...]:
        self.evidence.crowd = list(self._exchanges)
        if self._database:
            with tables(self._database) as view:
                if self._type.answer == "page":
                    self.evidence.fortunes = view.fortunes()
                elif not self._type.writes_database:  # else what the load writes can't be told from the probe's
                    self.evidence.versions = [Version(world=view.world())]
        return tuple(result for result in verification.judge(self.evidence) if result.outcome is Outcome.FAIL)
