"""Changes rows during a load, and records the versions of the tables, which reveals stale responses.

The servers' database role cannot see the sessions of tfb.
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

# A change affects few rows, which limits the work of the database. Changes are frequent, so that a response with rows
# that were read slightly too early coincides with a change.
ROWS_PER_CHANGE = 2_000  # takes about 13 ms of the database's CPU time
INTERVAL_SECONDS = (0.1, 0.4)  # bounds of the interval between two changes, or between two snapshots
MEAN_CHANGES = 12  # mean number of changes or snapshots in a load; longer loads have longer intervals
# Beginnings of a changed fortune. They sort to eight positions that are the same by code point and by alphabet.
BEGINNINGS = ("<b>", "<u>", "Accept", "Basic", "Debug", "Errors", "Few", "zero")


def build_history(
    first: WorldTables, changes: Sequence[Mapping[str, TableChange]] = (), slack: float = 0.0
) -> TableHistory:
    """Return the versions of the tables: ``first``, followed by a version for each change. ``slack`` is in seconds."""
    history = {name: [TableVersion(rows=table)] for name, table in first.items()}
    for change in changes:
        for name, (text, begun, done) in change.items():
            append_version(history[name], parse_table_text(text), begun, done, slack)
    return history


class ConcurrentChanges:
    """A context manager for a load. It changes rows that the test type reads, or takes snapshots of written rows.

    On exit, it restores the fortunes; if ``put_back`` is set, it also restores other rows. Only changes require an
    administrator. If a change or snapshot failed, the exit raises psycopg.Error, because the correct responses are
    unknown.
    """

    def __init__(
        self, test_type: TestType, tables: DatabaseTables, *, seconds: float, seed: int, put_back: bool
    ) -> None:
        self._test_type = test_type
        self._tables = tables
        self._put_back = put_back
        # Changing a fortune is cheap. Among thousands of pages per second, it suffices to detect a few stale pages.
        spread = max(1.0, seconds / MEAN_CHANGES / fmean(INTERVAL_SECONDS))
        self._interval_factor = spread if test_type.has_rows else 1.0
        self._dice = random.Random(f"changes {seed}")
        self._stop = threading.Event()
        self._error: psycopg.Error | None = None
        self._changes: list[dict[str, TableChange]] = []
        self._snapshots: list[tuple[dict[str, str], float, float]] = []
        self.first: WorldTables = {}  # initial world tables, if the test type uses them
        self.fortunes: list[TableVersion[str]] = []  # versions of the fortunes, if the test type reads them
        self._thread = threading.Thread(target=self._run, name="concurrent changes", daemon=True)

    @property
    def snapshots(self) -> list[TableSnapshot]:
        """Return snapshots of written world tables, from before the load to after it."""
        later = [
            TableSnapshot({name: parse_table_text(text) for name, text in texts.items()}, *interval)
            for texts, *interval in self._snapshots
        ]
        return [TableSnapshot(self.first), *later]

    @property
    def history(self) -> TableHistory:
        """Return the versions of the world tables, if the test type reads them."""
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
            self._changes.append(self._tables.change_rows(ROWS_PER_CHANGE, self._dice))
        else:
            self._change_fortune()

    def _change_fortune(self) -> None:
        """Change a random fortune, and restore the fortune that was changed before it.

        The new message has a different position and requires escaping. The length of the page remains constant, as the
        check load.2 expects. Only ASCII messages are changed, because some servers write other characters as entities.
        """
        seeded = self.fortunes[0].rows
        identifier = self._dice.choice([i for i, message in seeded.items() if message.isascii()])
        message = f"{self._dice.choice(BEGINNINGS)} {self._dice.getrandbits(32):x} <b>&amp;"
        message += "." * (len(html.escape(seeded[identifier])) - len(html.escape(message)))
        rows = {**seeded, identifier: message}
        begun, done = self._tables.set_fortunes(rows)
        append_version(self.fortunes, rows, begun, done, CLOCK_SLACK_SECONDS)
