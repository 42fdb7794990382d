"""Changes rows during a load and records each version of the tables, so that checks can detect stale responses.

A server cannot foresee a change, because its database role cannot see what tfb's database connection does.
"""

import html
import random
import threading
from collections.abc import Mapping, Sequence
from statistics import fmean
from types import TracebackType
from typing import Self

import psycopg

from harness.plan.testtypes import TestType
from harness.verify.checks.evidence import (
    CLOCK_SLACK_SECONDS,
    TableHistory,
    TableSnapshot,
    TableVersion,
    WorldTables,
    append_version,
)
from harness.verify.database_tables import DatabaseTables, TableChange, parse_table_text

# Each change affects only some rows, to limit the load on the database. Changes are frequent, so that a row that the
# server cached before a request is probably stale.
INTERVAL_SECONDS = (0.1, 0.4)  # shortest and longest time between two changes, or between two snapshots
# Mean number of row changes or snapshots in a load of at least 3 s. The longer the load, the longer the intervals.
MEAN_CHANGES = 12
# First words of changed fortunes. Each word sorts to a different position on the page. A server that ignores case
# misplaces the lower-case words.
BEGINNINGS = ("<b>", "<u>", "Accept", "basic", "Debug", "errors", "Few", "zero")


def build_history(
    first: WorldTables, changes: Sequence[Mapping[str, TableChange]] = (), slack: float = 0.0
) -> TableHistory:
    """Return the versions of each table: first the contents in ``first``, then a version for each change.

    ``slack`` is the uncertainty of the exchanges' timestamps in seconds.
    """
    history = {name: [TableVersion(rows=table)] for name, table in first.items()}
    for change in changes:
        for name, (text, begun, done) in change.items():
            append_version(history[name], parse_table_text(text), begun, done, slack)
    return history


class ConcurrentChanges:
    """A context manager that changes rows during a load, or takes snapshots if the test type itself writes rows.

    On exit, it restores the fortunes and, if ``put_back`` is set, also the world tables. Changes require an
    administrator connection; snapshots do not. If a change or a snapshot failed, the exit raises psycopg.Error, because
    the responses can no longer be checked.
    """

    def __init__(
        self, test_type: TestType, tables: DatabaseTables, *, seconds: float, seed: int, put_back: bool
    ) -> None:
        self._test_type = test_type
        self._tables = tables
        self._put_back = put_back
        # Changing a fortune is cheap, so fortunes change at short intervals even in a long load.
        spread = max(1.0, seconds / MEAN_CHANGES / fmean(INTERVAL_SECONDS))
        self._interval_factor = spread if test_type.has_rows else 1.0
        self._dice = random.Random(f"changes {seed}")
        self._stop = threading.Event()
        self._error: psycopg.Error | None = None
        self._changes: list[dict[str, TableChange]] = []
        self._snapshots: list[tuple[dict[str, str], float, float]] = []
        self.first: WorldTables = {}  # world tables before the load; empty if the test type does not use them
        # Fortunes before and after each change; empty if the test type does not use them.
        self.fortunes: list[TableVersion[str]] = []
        self._thread = threading.Thread(target=self._run, name="concurrent changes", daemon=True)

    @property
    def snapshots(self) -> list[TableSnapshot]:
        """Return snapshots of the world tables before, during and after the load."""
        later = [
            TableSnapshot({name: parse_table_text(text) for name, text in texts.items()}, *interval)
            for texts, *interval in self._snapshots
        ]
        return [TableSnapshot(self.first), *later]

    @property
    def history(self) -> TableHistory:
        """Return the versions of the world tables. The history is empty if the test type does not use the tables."""
        return build_history(self.first, self._changes, slack=CLOCK_SLACK_SECONDS)

    def __enter__(self) -> Self:
        if self._test_type.has_rows:
            self.first = self._tables.read_world()
        else:
            self.fortunes.append(TableVersion(rows=self._tables.read_fortunes()))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        try:
            if self._test_type.writes_database:
                self._step()
            if self.first and self._tables.admin:
                if self._put_back:
                    self._tables.restore_world(self.first)
                self._tables.vacuum()
            if self.fortunes:
                self._tables.set_fortunes(self.fortunes[0].rows)
        except psycopg.Error as failure:
            self._error = self._error or failure
        if self._error is not None and error is None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._interval_factor * self._dice.uniform(*INTERVAL_SECONDS)):
                self._step()
        except psycopg.Error as error:
            self._error = error

    def _step(self) -> None:
        if self._test_type.writes_database:
            self._snapshots.append(self._tables.read_snapshot())
        elif self._test_type.has_rows:
            # Changing 2,000 rows costs the database about 13 ms of CPU time.
            self._changes.append(self._tables.change_rows(2_000, self._dice))
        else:
            self._change_fortune()

    def _change_fortune(self) -> None:
        """Change a random fortune and restore the previously changed fortune.

        The new message sorts to a different position and contains characters that need escaping. It is padded so that
        the length of the page does not change, because rule load.2 checks the mean size. Messages with non-ASCII
        characters never change, because some servers encode these characters as longer entities.
        """
        seeded = self.fortunes[0].rows
        identifier = self._dice.choice([i for i, message in seeded.items() if message.isascii()])
        message = f"{self._dice.choice(BEGINNINGS)} {self._dice.getrandbits(32):x} <b>&amp;"
        message += "." * (len(html.escape(seeded[identifier])) - len(html.escape(message)))
        rows = {**seeded, identifier: message}
        begun, done = self._tables.set_fortunes(rows)
        append_version(self.fortunes, rows, begun, done, CLOCK_SLACK_SECONDS)
