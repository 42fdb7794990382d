"""Rogues that are honest at first and cheat later."""

import time

from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import under_load
from harness.tests.doubles.rogues.busy import busy, instead, while_busy
from harness.tests.doubles.rogues.cunning import another_greeting, from_memory, other_numbers
from harness.tests.doubles.rogues.updates import nothing

OLD_SECONDS = 3.5  # minimum age of an old connection
HONEST_SECONDS = 2.0  # honest seconds under load
BEGINNING_SECONDS = 0.5  # honest seconds at the start of each load
PAUSE_SECONDS = 0.1  # after a pause of this length, the next request starts a new load


def current_load(self: ReferenceServer) -> tuple[int, float]:
    """Return the current load's number, from 0, and its age in seconds."""
    now = time.monotonic()
    with self.lock:
        found: tuple[int, float, float] = self.state.get("load", (-1, now, 0.0))
        number, since, last = found
        if now - last > PAUSE_SECONDS:
            number, since = number + 1, now
        self.state["load"] = number, since, now
    return number, now - since


def old_connection(self: ReferenceServer, session: ClientSession) -> bool:
    started_at: float = session.state.setdefault("begun", time.monotonic())
    return busy(self) and time.monotonic() - started_at > OLD_SECONDS


def after_seconds(self: ReferenceServer, _session: ClientSession) -> bool:
    if not busy(self):
        return False
    with self.lock:
        since: float = self.state.setdefault("busy since", time.monotonic())
    return time.monotonic() - since > HONEST_SECONDS


def after_the_beginning(self: ReferenceServer, _session: ClientSession) -> bool:
    return current_load(self)[1] > BEGINNING_SECONDS and busy(self)


def at_some_times(self: ReferenceServer, _session: ClientSession) -> bool:
    return busy(self) and int(time.time() * 2) % 4 == 0


def every_other_load(self: ReferenceServer, _session: ClientSession) -> bool:
    return current_load(self)[0] % 2 == 1 and busy(self)


def fixed(self: ReferenceServer) -> str:
    return str(self.state.setdefault("date", ReferenceServer.date(self)))


ROGUES = (
    under_load("old-connections", "query", "equals-row", "returns wrong numbers on connections older than 3.5 s", other_numbers(old_connection), seconds=5.0),
    under_load("after-two-seconds", "json", "json-message", "returns a wrong message from the third second under load", another_greeting(after_seconds)),
    under_load("after-the-beginning", "update", "rows-written", "writes only in the first half second of each load", instead("write", after_the_beginning, nothing)),
    under_load("at-some-times", "plaintext", "plaintext-body", "returns a wrong greeting during a quarter of the time, under load", another_greeting(at_some_times), seconds=2.5),
    under_load("every-other-load", "db", "rows-read", "serves rows from memory in every second load", from_memory(every_other_load)),
    under_load("date-stands-still", "json", "date-moves", "sends the same Date forever, under load", while_busy({"date": fixed}), seconds=6.0),
)  # fmt: skip
