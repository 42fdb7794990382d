"""Rogues that wait: each is honest until a moment that a short look would not reach, in each of the six test types.

What they do then is the same for all of a test type; when they begin is the table ``WHEN``.
"""

import time
from collections.abc import Callable

from harness.tests.doubles.reference import ReferenceServer, Session
from harness.tests.doubles.rogues import Change, under_load
from harness.tests.doubles.rogues.busy import When, busy, instead, while_busy
from harness.tests.doubles.rogues.cunning import another_greeting, from_memory, other_numbers
from harness.tests.doubles.rogues.updates import nothing

OLD_SECONDS = 3.5  # of a connection
HONEST_SECONDS = 2.0  # of a server's life under load
HONEST_REQUESTS = 1_500
BEGINNING_SECONDS = 0.5  # of each load
PAUSE_SECONDS = 0.1  # without a request, after which a load is another one
MANY = 24  # connections
SLOW_SECONDS = 0.25  # between two requests of a connection that is slow


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


def old_connection(self: ReferenceServer, session: Session) -> bool:
    begun: float = session.state.setdefault("begun", time.monotonic())
    return busy(self) and time.monotonic() - begun > OLD_SECONDS


def after_seconds(self: ReferenceServer, _session: Session) -> bool:
    if not busy(self):
        return False
    with self.lock:
        since: float = self.state.setdefault("busy since", time.monotonic())
    return time.monotonic() - since > HONEST_SECONDS


def after_requests(self: ReferenceServer, _session: Session) -> bool:
    with self.lock:
        self.state["requests"] = self.state.get("requests", 0) + 1
        return busy(self) and self.state["requests"] > HONEST_REQUESTS


def after_the_beginning(self: ReferenceServer, _session: Session) -> bool:
    return of_load(self)[1] > BEGINNING_SECONDS and busy(self)


def at_some_levels(self: ReferenceServer, _session: Session) -> bool:
    return self.lasting_connections > MANY


def at_some_times(self: ReferenceServer, _session: Session) -> bool:
    return busy(self) and int(time.time() * 2) % 4 == 0


def every_other_load(self: ReferenceServer, _session: Session) -> bool:
    return of_load(self)[0] % 2 == 1 and busy(self)


def without_slow_neighbours(self: ReferenceServer, session: Session) -> bool:
    """While no open connection leaves as much time between its requests as one that only looks."""
    now = time.monotonic()
    with self.lock:
        asked: dict[int, float] = self.state.setdefault("asked", {})
        asked[session.number] = now
        return busy(self) and not any(SLOW_SECONDS < now - at < 2 * SLOW_SECONDS for at in asked.values())


# When a rogue begins, in words, and what is particular of the trial that shows it.
WHEN: dict[str, tuple[str, When, dict[str, float]]] = {
    "old-connections": ("on connections older than 3.5 s", old_connection, {"seconds": 5.0}),
    "after-two-seconds": ("after 2 s under load in all", after_seconds, {}),
    "after-thousands": ("after 1,500 requests in all", after_requests, {}),
    "after-the-beginning": ("but in the first half second of each load", after_the_beginning, {}),
    "at-some-levels": ("on more than 24 connections", at_some_levels, {"connections": 32}),
    "at-some-times": ("in one half second of four, while many ask", at_some_times, {"seconds": 2.5}),
    "every-other-load": ("in every other load", every_other_load, {}),
    "without-slow-neighbours": ("while no connection beside is slow", without_slow_neighbours, {}),
}


def old_page(when: When) -> Change:
    """Fortunes out of memory; which connection asks is not known where they are read, so it is kept before."""

    def body(self: ReferenceServer, session: Session, test_type: str, request: object) -> bytes:
        kept: bytes | None = self.state.get("page")
        if kept is not None and when(self, session):
            return kept
        self.state["page"] = page = ReferenceServer.body(self, session, test_type, request)  # type: ignore[arg-type]
        return page

    return {"body": body}


# What a rogue of a test type does, and what catches it.
CHEATS: dict[str, tuple[str, str, Callable[[When], Change]]] = {
    "json": ("another message", "json-message", another_greeting),
    "plaintext": ("another greeting", "plaintext-body", another_greeting),
    "db": ("rows out of memory", "rows-read", from_memory),
    "query": ("other numbers", "equals-row", other_numbers),
    "fortune": ("a page out of memory", "rows-read", old_page),
    "update": ("nothing written", "rows-written", lambda when: instead("write", when, nothing)),
}


def fixed(self: ReferenceServer) -> str:
    return str(self.state.setdefault("date", ReferenceServer.date(self)))


ROGUES = (
    *(
        under_load(f"{test_type}-{name}", test_type, caught_by, f"{does} {begins}", change(when), **trial)
        for name, (begins, when, trial) in WHEN.items()
        for test_type, (does, caught_by, change) in CHEATS.items()
    ),
    under_load("date-stands-still", "json", "date-moves", "a Date that stands still while many ask", while_busy({"date": fixed}), seconds=6.0),
)  # fmt: skip
