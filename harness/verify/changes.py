"""Changes rows behind a server that reads them, and keeps what the tables held when: a stale copy shows.

The measured role cannot see who else is connected.
"""

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

import psycopg

from harness.plan.testtypes import TestType
from harness.verify import wire
from harness.verify.checks.asking import Client, Further
from harness.verify.checks.evidence import (
    CLOCKS_SECONDS,
    HIGHEST_ID,
    Case,
    Change,
    Exchange,
    FortuneVersion,
    History,
    Look,
)
from harness.verify.tables import Changed, Tables, numbers

# In verification.
UNDER_WAY = 2  # changes at random moments while a crowd asks
CHANGED_ROWS = HIGHEST_ID // 2  # each time
PAUSE_SECONDS = (0.04, 0.2)  # before such a change
AROUND = 1_000  # requests at most while they are under way, beyond those of the crowd
AROUND_THE_LAST = 3  # requests on each connection before the change between them, and as many after it
# While a load is on: few rows at a time, so that the database has little to do, and often, so that an answer that was
# read a moment too early falls into a change.
TRICKLE_ROWS = 2_000  # some 13 ms of the database's CPU
TRICKLE_SECONDS = (0.1, 0.4)  # between two changes
LOOK_SECONDS = (0.1, 0.4)  # between two looks at what is written
MOST = 12  # changes of rows, or looks, of one load: a longer one has them further apart


class Changing:
    """Changes rows of world, and knows what they held; needs the administrator."""

    def __init__(self, view: Tables, slack: float = 0.0) -> None:
        self._view = view
        self._slack = slack
        self._first = view.world()
        self._changes: list[dict[str, Changed]] = []
        self._ids: set[int] = set()

    def change(self, rows: int = CHANGED_ROWS, dice: random.Random | None = None) -> None:
        """Give so many rows other numbers now, and keep when."""
        dice = dice or random.Random()
        ids = dice.sample(range(1, HIGHEST_ID + 1), rows)
        self._ids.update(ids)  # before: it may be in one table and not in the other
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

    @contextmanager
    def under_way(self) -> Iterator[Callable[[], bool]]:
        """Changes rows at random moments within the block; yields whether one is still to come.

        Leaving it waits for the last, and raises the psycopg.Error of one that failed.
        """

        def at_random() -> None:
            for _ in range(UNDER_WAY):
                time.sleep(random.uniform(*PAUSE_SECONDS))
                self.change()

        with ThreadPoolExecutor(1) as pool:
            changing = pool.submit(at_random)
            yield lambda: not changing.done()
            changing.result()

    def between(self, client: Client, plain: Case, connections: int) -> list[Exchange]:
        """Change rows while connections that have asked before wait to ask again: what was read ahead is stale now."""
        reached = threading.Barrier(connections + 1)
        changed = threading.Event()

        def cases() -> Iterator[Case]:
            yield from [plain] * AROUND_THE_LAST
            with contextlib.suppress(threading.BrokenBarrierError):  # another connection has failed
                reached.wait(wire.PATIENCE)
            changed.wait(wire.PATIENCE)
            yield from [plain] * AROUND_THE_LAST

        exchanges: list[Exchange] = []
        with ThreadPoolExecutor(connections) as pool:
            asking = [pool.submit(client.ask, cases(), place) for place in range(connections)]
            try:
                with contextlib.suppress(threading.BrokenBarrierError):
                    reached.wait(wire.PATIENCE)
                self.change()
            finally:
                changed.set()
            for each in asking:
                exchanges += each.result()
        return exchanges

    def end(self, *, put_back: bool) -> None:
        """Leave no dead rows behind; rows put back, a cache that is filled once is right again."""
        if self._ids and put_back:
            self._view.restore(self._first, self._ids)
        if self._ids:
            self._view.vacuum()


def around(plain: Case, still_changing: Callable[[], bool]) -> Further:
    """What a crowd goes on asking while a change is still to come."""

    def paced() -> bool:
        # A change is waited for, not filled with answers.
        time.sleep(0.01 if still_changing() else 0.0)
        return still_changing()

    return Further(cases=[plain] * AROUND, while_this=paced)


class ConcurrentChanges:
    """Context manager around a load: changes rows that are read, looks at those that are written.

    Fortunes, and with ``put_back`` rows, are as they were however the block ends. Leaving it raises the psycopg.Error
    of a change or look that failed, since nobody knows then what an honest server would have answered.
    """

    def __init__(self, test_type: TestType, view: Tables, *, seconds: float, seed: int, put_back: bool) -> None:
        self._type = test_type
        self._view = view
        self._put_back = put_back
        self._apart = max(1.0, seconds / MOST / TRICKLE_SECONDS[1])
        self._dice = random.Random(f"changes {seed}")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="concurrent changes", daemon=True)
        self._rows: Changing | None = None
        self._failed: psycopg.Error | None = None
        self.fortunes: list[FortuneVersion] = []
        self._looks: list[tuple[dict[str, str], float, float]] = []

    @property
    def looks(self) -> list[Look]:
        """At world, where the test type writes it."""
        return [
            Look(world={name: numbers(text) for name, text in texts.items()}, since=since, until=until)
            for texts, since, until in self._looks
        ]

    @property
    def history(self) -> History | None:
        """Of world, where the test type reads it."""
        return self._rows.history if self._rows else None

    def __enter__(self) -> Self:
        if self._type.has_rows and not self._type.writes_database:
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
        step, pause, times, apart = (
            (self._look, LOOK_SECONDS, range(MOST), self._apart)
            if self._type.writes_database
            else (self._change_rows, TRICKLE_SECONDS, range(MOST), self._apart)
            if self._rows
            else (self._change_fortune, TRICKLE_SECONDS, itertools.count(), 1.0)
        )
        try:
            for _ in times:
                if self._over.wait(apart * self._dice.uniform(*pause)):
                    break
                step()
        except psycopg.Error as error:
            self._failed = error

    def _look(self) -> None:
        begun = time.time()
        self._looks.append((self._view.texts(), begun, time.time()))

    def _change_rows(self) -> None:
        assert self._rows is not None  # noqa: S101 - chosen with them
        self._rows.change(TRICKLE_ROWS, self._dice)

    def _change_fortune(self) -> None:
        before = self.fortunes.pop() if self.fortunes else FortuneVersion(rows=self._view.fortunes())
        self.fortunes.append(before)
        after, (begun, done) = self._view.change_fortune(
            f"Any program that runs is obsolete: {self._dice.getrandbits(32)}."
        )
        self.fortunes[-1] = replace(before, until=done + CLOCKS_SECONDS)
        self.fortunes.append(FortuneVersion(rows=after, since=begun - CLOCKS_SECONDS))
