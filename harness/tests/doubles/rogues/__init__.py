"""What a rogue is: the reference server with one or a few methods replaced, and the check that is meant to catch it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import ReferenceServer

# A method's replacement: a function of the server and whatever the method takes. The gallery is the one place where a
# signature is not spelt out, because each entry replaces another method.
Change = Mapping[str, Callable[..., Any] | partialmethod[Any]]


@dataclass(frozen=True)
class Rogue:
    name: str
    test_type: str  # the test in which it misbehaves; "http" where it is the server as a whole
    caught_by: str  # the check meant for it
    does: str  # what it does wrong, in a few words
    change: Change
    base: type[ReferenceServer] = ReferenceServer  # what it changes
    under_load: bool = False  # misbehaves only while many connections are open, or after many requests
    seconds: float = 1.5  # of the load that shows it, then

    def server(self, database: DatabaseAddress | None = None, upstream: str | None = None) -> ReferenceServer:
        rogue: ReferenceServer = type("RogueServer", (self.base,), dict(self.change))(database, upstream)
        return rogue


def under_load(name: str, test_type: str, caught_by: str, does: str, change: Change, **more: Any) -> Rogue:
    return Rogue(name, test_type, caught_by, does, change, under_load=True, **more)


def every(server: ReferenceServer, count: int) -> bool:
    """True at each ``count``-th call."""
    with server.lock:
        server.state["calls"] = server.state.get("calls", 0) + 1
        return bool(server.state["calls"] % count == 0)
