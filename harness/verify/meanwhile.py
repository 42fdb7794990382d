"""What the harness does to the tables while an audited load is on: changes rows that are read, looks at those written.

A server that answers out of memory while many ask answers numbers or messages that the table no longer holds; one that
writes after it has answered is met by a look in between. The measured role cannot see who else is connected.
"""

import random
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

import psycopg

from harness.plan.testtypes import TestType
from harness.runtime import DatabaseAddress
from harness.verify.changing import Changing
from harness.verify.checks.evidence import CLOCKS_SECONDS, FortuneVersion, Look, Version
from harness.verify.checks.tables import Tables, tables

FIRST, LAST = 0.2, 0.8  # of the load: between these changes come, so that answers of before and after are there
CHANGES = 3  # an answer read a moment too early shows only where a change falls into that moment
LOOK_SECONDS = (0.1, 0.5)  # between two looks at what is written
MOST_LOOKS = 6


class Meanwhile:
    """Context manager around one audited load; what it has seen or changed is in its attributes afterwards.

    Without an administrator's account, and for test types whose rows may be cached, it does nothing. What it has
    changed is put back however the block ends; leaving it raises the psycopg.Error of a change or look that failed,
    since nobody knows then what an honest server would have answered.
    """

    def __init__(self, test_type: TestType, database: DatabaseAddress | None, seconds: float, seed: int) -> None:
        self._type = test_type
        able = test_type.reads_database and test_type.counts_statements
        self._database = database if able and database and database.admin_user else None
        self._seconds = seconds
        self._dice = random.Random(f"meanwhile {seed}")
        self._over = threading.Event()
        self._stack = ExitStack()
        self._thread = threading.Thread(target=self._act, name="meanwhile", daemon=True)
        self._view: Tables | None = None
        self.versions: list[Version] = []  # of world, where it was changed
        self.fortunes: list[FortuneVersion] = []  # likewise
        self.looks: list[Look] = []
        self._world: Changing | None = None
        self._fortune_begun = False
        self._failed: psycopg.Error | None = None

    def __enter__(self) -> Self:
        if self._database:
            self._view = self._stack.enter_context(tables(self._database))
            if not self._type.writes_database and self._type.answer != "page":
                self._world = Changing(self._view)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        with self._stack:
            if self._view:
                self._thread.join()
                self._undo(self._view)
        if self._failed is not None and error is None:
            raise self._failed

    def _act(self) -> None:
        assert self._view is not None  # noqa: S101 - started with one
        try:
            self._look_or_change(self._view)
        except psycopg.Error as error:
            self._failed = error

    def _look_or_change(self, view: Tables) -> None:
        if self._type.writes_database:
            while len(self.looks) < MOST_LOOKS and not self._over.wait(self._dice.uniform(*LOOK_SECONDS)):
                begun = time.time()
                world = view.world()
                self.looks.append(Look(world=world, since=begun, until=time.time()))
        else:
            begun = time.monotonic()
            for moment in sorted(self._dice.uniform(FIRST, LAST) * self._seconds for _ in range(CHANGES)):
                if self._over.wait(max(0.0, begun + moment - time.monotonic())):
                    break
                self._change(view)

    def _change(self, view: Tables) -> None:
        seed = self._dice.getrandbits(32)
        if self._world:
            self._world.change(seed)
            self.versions = [_widened(version) for version in self._world.versions]
            return
        self._fortune_begun = True
        before = self.fortunes.pop() if self.fortunes else FortuneVersion(rows=view.fortunes())
        after, (begun, done) = view.change_fortune(seed)
        self.fortunes.append(replace(before, until=done + CLOCKS_SECONDS))
        self.fortunes.append(FortuneVersion(rows=after, since=begun - CLOCKS_SECONDS))

    def _undo(self, view: Tables) -> None:
        """The rows as they were: what another test type may cache of them is right again."""
        if self._fortune_begun:
            view.seeded_fortune()
        if self._world and self._world.begun:
            self._world.restore()
            view.vacuum()


def _widened(version: Version) -> Version:
    """By what the generator's clock and this process's may differ."""
    return Version(
        world=version.world,
        since={name: at - CLOCKS_SECONDS for name, at in version.since.items()},
        until={name: at + CLOCKS_SECONDS for name, at in version.until.items()},
    )
