"""Changes rows behind a server that reads them, and keeps what the tables held when: a stale copy shows.

The measured role cannot see who else is connected.
"""

import itertools
import random
import threading
import time
from dataclasses import replace
from types import TracebackType
from typing import Self

import psycopg

from harness.plan.testtypes import TestType
from harness.verify.checks.evidence import CLOCKS_SECONDS, HIGHEST_ID, Change, FortuneVersion, History, Look
from harness.verify.tables import Changed, Tables, numbers

# While a load is on: few rows at a time, so that the database has little to do, and often, so that an answer that was
# read a moment too early falls into a change.
TRICKLE_ROWS = 2_000  # some 13 ms of the database's CPU
APART_SECONDS = (0.1, 0.4)  # between two changes, or two looks at what is written
MOST = 12  # changes of rows, or looks, of one load: a longer one has them further apart


class Changing:
    """Changes rows of world, and knows what they held; needs the administrator."""

    def __init__(self, view: Tables, slack: float = 0.0) -> None:
        self._view = view
        self._slack = slack
        self._first = view.world()
        self._changes: list[dict[str, Changed]] = []
        self._begun = False  # a change that failed may be in one table and not in the other

    def change(self, rows: int, dice: random.Random) -> None:
        """Give so many rows other numbers now, and keep when."""
        ids = dice.sample(range(1, HIGHEST_ID + 1), rows)
        self._begun = True
        self._changes.append(self._view.change(ids, step=dice.randrange(1, HIGHEST_ID - 1)))

    @property
    def history(self) -> History:
        """What the tables have held so far; made when it is asked for, since a load may be on before."""
        changes: dict[str, dict[int, list[Change]]] = {}
        for change in self._changes:
            for name, (text, begun, done) in change.items():
                of_table = changes.setdefault(name, {})
                for identifier, number in numbers(text).items():
                    of_table.setdefault(identifier, []).append(Change(begun=begun, done=done, number=number))
        return History(first=self._first, changes=changes, slack=self._slack)

    def end(self, *, put_back: bool) -> None:
        """Leave no dead rows behind; rows put back, a cache that is filled once is right again."""
        if self._begun and put_back:
            self._view.restore(self._first)
        if self._begun:
            self._view.vacuum()


class ConcurrentChanges:
    """Context manager around a load: changes rows that are read, looks at those that are written.

    Fortunes, and with ``put_back`` rows, are as they were however the block ends. Leaving it raises the psycopg.Error
    of a change or look that failed, since nobody knows then what an honest server would have answered.
    """

    def __init__(self, test_type: TestType, view: Tables, *, seconds: float, seed: int, put_back: bool) -> None:
        self._view = view
        self._put_back = put_back
        self._apart = max(1.0, seconds / MOST / APART_SECONDS[1])
        self._dice = random.Random(f"changes {seed}")
        self._over = threading.Event()
        self._failed: psycopg.Error | None = None
        self._rows: Changing | None = None
        self._looks: list[tuple[dict[str, str], float, float]] = []
        self.fortunes: list[FortuneVersion] = []
        if test_type.writes_database:
            self._step = self._look
        else:
            self._step = self._change_rows if test_type.has_rows else self._change_fortune
        self._thread = threading.Thread(target=self._run, name="concurrent changes", daemon=True)

    @property
    def looks(self) -> list[Look]:
        """At world, where the test type writes it."""
        return [Look({name: numbers(text) for name, text in texts.items()}, *when) for texts, *when in self._looks]

    @property
    def history(self) -> History | None:
        """Of world, where the test type reads it."""
        return self._rows.history if self._rows else None

    def __enter__(self) -> Self:
        if self._step == self._change_rows:
            self._rows = Changing(self._view, slack=CLOCKS_SECONDS)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        try:
            if self._rows:
                self._rows.end(put_back=self._put_back)
            if self.fortunes:
                self._view.seeded_fortune()
        except psycopg.Error as failed:
            self._failed = self._failed or failed
        if self._failed is not None and error is None:
            raise self._failed

    def _run(self) -> None:
        # A fortune costs nothing to change: of thousands of pages a second the few that are of before have to be seen.
        of_fortunes = self._step == self._change_fortune
        try:
            for _ in itertools.count() if of_fortunes else range(MOST):
                if self._over.wait((1.0 if of_fortunes else self._apart) * self._dice.uniform(*APART_SECONDS)):
                    break
                self._step()
        except psycopg.Error as error:
            self._failed = error

    def _look(self) -> None:
        begun = time.time()
        self._looks.append((self._view.texts(), begun, time.time()))

    def _change_rows(self) -> None:
        if self._rows:
            self._rows.change(TRICKLE_ROWS, self._dice)

    def _change_fortune(self) -> None:
        if not self.fortunes:
            self.fortunes.append(FortuneVersion(rows=self._view.fortunes()))
        after, (begun, done) = self._view.change_fortune(
            f"Any program that runs is obsolete: {self._dice.getrandbits(32)}."
        )
        self.fortunes[-1] = replace(self.fortunes[-1], until=done + CLOCKS_SECONDS)
        self.fortunes.append(FortuneVersion(rows=after, since=begun - CLOCKS_SECONDS))
