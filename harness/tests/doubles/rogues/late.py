"""Rogues that wait: each is honest until a moment that a short look would not reach."""

import time

from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import under_load
from harness.tests.doubles.rogues.busy import busy, instead, while_busy
from harness.tests.doubles.rogues.cunning import another_greeting, from_memory, other_numbers
from harness.tests.doubles.rogues.updates import nothing

OLD_SECONDS = 3.5  # of a connection
HONEST_SECONDS = 2.0  # of a server's life under load
BEGINNING_SECONDS = 0.5  # of each load
PAUSE_SECONDS = 0.1  # without a request, after which a load is another one


def of_load(self: ReferenceServer) -> tuple[int, float]:
    """Which load is on, from 0, and for how many seconds."""
    now = time.monotonic()
    with self.lock:
        found: tuple[int, float, float] = self.state.get("load", (-1, now, 0.0))
        number, since, last = found
        if now - last > PAUSE_SECONDS:
            number, since = number + 1, now
        self.state["load"] = number, since, now
    return number, now - since


def old_connection(self: ReferenceServer, session: ClientSession) -> bool:
    begun: float = session.state.setdefault("begun", time.monotonic())
    return busy(self) and time.monotonic() - begun > OLD_SECONDS


def after_seconds(self: ReferenceServer, _session: ClientSession) -> bool:
    if not busy(self):
        return False
    with self.lock:
        since: float = self.state.setdefault("busy since", time.monotonic())
    return time.monotonic() - since > HONEST_SECONDS


def after_the_beginning(self: ReferenceServer, _session: ClientSession) -> bool:
    return of_load(self)[1] > BEGINNING_SECONDS and busy(self)


def at_some_times(self: ReferenceServer, _session: ClientSession) -> bool:
    return busy(self) and int(time.time() * 2) % 4 == 0


def every_other_load(self: ReferenceServer, _session: ClientSession) -> bool:
    return of_load(self)[0] % 2 == 1 and busy(self)


def fixed(self: ReferenceServer) -> str:
    return str(self.state.setdefault("date", ReferenceServer.date(self)))


ROGUES = (
    under_load("old-connections", "query", "equals-row", "other numbers on connections older than 3.5 s", other_numbers(old_connection), seconds=5.0),
    under_load("after-two-seconds", "json", "json-message", "another message after 2 s under load in all", another_greeting(after_seconds)),
    under_load("after-the-beginning", "update", "rows-written", "nothing written but in the first half second of each load", instead("write", after_the_beginning, nothing)),
    under_load("at-some-times", "plaintext", "plaintext-body", "another greeting in one half second of four, while many ask", another_greeting(at_some_times), seconds=2.5),
    under_load("every-other-load", "db", "rows-read", "rows out of memory in every other load", from_memory(every_other_load)),
    under_load("date-stands-still", "json", "date-moves", "a Date that stands still while many ask", while_busy({"date": fixed}), seconds=6.0),
)  # fmt: skip
