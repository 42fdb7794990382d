"""Changes rows behind a server that reads them, and keeps what the tables held when: a stale copy shows."""

import contextlib
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from harness.verify import wire
from harness.verify.checks.asking import Client, Further
from harness.verify.checks.evidence import Case, Exchange, Version
from harness.verify.checks.tables import Tables

UNDER_WAY = 2  # changes at random moments while a crowd asks
CHANGED_SHARE = 0.5  # of the rows, each time
PAUSE_SECONDS = (0.04, 0.2)  # before such a change
AROUND = 1_000  # requests at most while they are under way, beyond those of the crowd
AROUND_PAUSE = 0.01  # seconds between two of these on a connection: a change is waited for, not filled with answers
AROUND_THE_LAST = 3  # requests on each connection before the change between them, and as many after it


class Changing:
    """The versions of the tables of one verification; needs the administrator."""

    def __init__(self, view: Tables) -> None:
        self._view = view
        self._world = view.world()
        self._since: dict[str, float] = {}
        self._earlier: list[Version] = []
        self.begun = False  # a change: it may be in one table and not in the other

    @property
    def versions(self) -> list[Version]:
        """What the tables have held so far, oldest first."""
        return [*self._earlier, Version(world=self._world, since=self._since)]

    def change(self, seed: int | None = None) -> None:
        """Change rows now, and keep when; a seed makes it the same rows and numbers again."""
        self.begun = True
        times = self._view.change(CHANGED_SHARE, seed=secrets.randbits(32) if seed is None else seed)
        until = {name: done for name, (_, done) in times.items()}
        self._earlier.append(Version(world=self._world, since=self._since, until=until))
        self._world, self._since = self._view.world(), {name: begun for name, (begun, _) in times.items()}

    @contextmanager
    def under_way(self) -> Iterator[Callable[[], bool]]:
        """Changes rows at random moments within the block; yields whether one is still to come.

        Leaving it waits for the last, and raises the psycopg.Error of one that failed.
        """
        with ThreadPoolExecutor(1) as pool:
            changing = pool.submit(self._at_random)
            yield lambda: not changing.done()
            changing.result()

    def _at_random(self) -> None:
        for _ in range(UNDER_WAY):
            time.sleep(random.uniform(*PAUSE_SECONDS))
            self.change()

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

    def restore(self) -> None:
        """The rows as they were at first."""
        self._view.restore(self.versions[0].world)


def around(plain: Case, still_changing: Callable[[], bool]) -> Further:
    """What a crowd goes on asking while a change is still to come."""

    def paced() -> bool:
        time.sleep(AROUND_PAUSE if still_changing() else 0.0)
        return still_changing()

    return Further(cases=[plain] * AROUND, while_this=paced)
