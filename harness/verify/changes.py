"""Changes rows behind a server that reads them, and keeps what the tables held when: a stale copy shows.

The measured role cannot see who else is connected.
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
from harness.verify.checks.evidence import CLOCKS_SECONDS, History, TableSnapshot, Version, WorldTables, supersede
from harness.verify.database_tables import Changed, DatabaseTables, numbers

# While a load is on: few rows at a time, so that the database has little to do, and often, so that an answer that was
# read a moment too early falls into a change.
TRICKLE_ROWS = 2_000  # some 13 ms of the database's CPU
APART_SECONDS = (0.1, 0.4)  # between two changes, or two looks at what is written
# Where a changed fortune begins: in eight places of the order, which are the same by code point and by alphabet.
BEGINNINGS = ("<b>", "<u>", "Accept", "Basic", "Debug", "Errors", "Few", "zero")
MOST = 12  # changes of rows, or looks, of one load on average: a longer one has them further apart


def history_of(first: WorldTables, changed: Sequence[Mapping[str, Changed]] = (), slack: float = 0.0) -> History:
    """What the tables have held: ``first``, then each change. Made when it is asked for: a load may be on before."""
    history = {name: [Version(rows=table)] for name, table in first.items()}
    for change in changed:
        for name, (text, begun, done) in change.items():
            supersede(history[name], numbers(text), begun, done, slack)
    return history


class ConcurrentChanges:
    """Context manager around a load: changes rows that are read, looks at those that are written.

    Fortunes, and with ``put_back`` rows, are as they were however the block ends; changes need the administrator, looks
    do not. Leaving it raises the psycopg.Error of a change or look that failed, since nobody knows then what an honest
    server would have answered.
    """

    def __init__(self, test_type: TestType, view: DatabaseTables, *, seconds: float, seed: int, put_back: bool) -> None:
        self._type = test_type
        self._view = view
        self._put_back = put_back
        # A fortune costs nothing to change: of thousands of pages a second the few that are of before have to be seen.
        self._apart = max(1.0, seconds / MOST / fmean(APART_SECONDS)) if test_type.has_rows else 1.0
        self._dice = random.Random(f"changes {seed}")
        self._over = threading.Event()
        self._failed: psycopg.Error | None = None
        self._changed: list[dict[str, Changed]] = []
        self._looks: list[tuple[dict[str, str], float, float]] = []
        self.first: WorldTables = {}  # what world held before, where it is the table of the test type
        self.fortunes: list[Version[str]] = []  # where the test type reads them
        self._thread = threading.Thread(target=self._run, name="concurrent changes", daemon=True)

    @property
    def looks(self) -> list[TableSnapshot]:
        """At world, where the test type writes it: the first one before the block, the last one when it has ended."""
        later = [
            TableSnapshot({name: numbers(text) for name, text in texts.items()}, *when) for texts, *when in self._looks
        ]
        return [TableSnapshot(self.first), *later]

    @property
    def history(self) -> History:
        """Of world, where the test type reads it."""
        return history_of(self.first, self._changed, slack=CLOCKS_SECONDS)

    def __enter__(self) -> Self:
        if self._type.has_rows:
            self.first = self._view.world()
        else:
            self.fortunes.append(Version(rows=self._view.fortunes()))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        try:
            if self._type.writes_database:
                self._step()
            if self.first and self._view.admin:
                if self._put_back:
                    self._view.restore(self.first)
                self._view.vacuum()
            if self.fortunes:
                self._view.set_fortunes(self.fortunes[0].rows)
        except psycopg.Error as failed:
            self._failed = self._failed or failed
        if self._failed is not None and error is None:
            raise self._failed

    def _run(self) -> None:
        try:
            while not self._over.wait(self._apart * self._dice.uniform(*APART_SECONDS)):
                self._step()
        except psycopg.Error as error:
            self._failed = error

    def _step(self) -> None:
        if self._type.writes_database:
            self._looks.append(self._view.look())
        elif self._type.has_rows:
            self._changed.append(self._view.change(TRICKLE_ROWS, self._dice))
        else:
            self._change_fortune()

    def _change_fortune(self) -> None:
        """Another one each time, the last one as it was again: it moves, and has to be escaped.

        The page keeps its length, which load.2 knows; some servers write other characters than ASCII as entities.
        """
        seeded = self.fortunes[0].rows
        identifier = self._dice.choice([i for i, message in seeded.items() if message.isascii()])
        message = f"{self._dice.choice(BEGINNINGS)} {self._dice.getrandbits(32):x} <b>&amp;"
        message += "." * (len(html.escape(seeded[identifier])) - len(html.escape(message)))
        rows = {**seeded, identifier: message}
        begun, done = self._view.set_fortunes(rows)
        supersede(self.fortunes, rows, begun, done, CLOCKS_SECONDS)
