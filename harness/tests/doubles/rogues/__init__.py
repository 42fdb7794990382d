"""Rogues: the reference server with replaced methods, and the check that must catch each rogue."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import ReferenceServer

# Method name -> replacement. Signatures are not checked, because each rogue replaces different methods.
Change = Mapping[str, Callable[..., Any] | partialmethod[Any]]


@dataclass(frozen=True)
class Rogue:
    name: str
    test_type: str  # the affected test type, or "http" if the whole server is affected
    caught_by: str  # name of the check that must catch the rogue
    does: str  # the violation: completes "a server that …"
    change: Change
    base: type[ReferenceServer] = ReferenceServer  # the class that the rogue changes
    under_load: bool = False  # the rogue cheats only under load
    seconds: float = 1.5  # duration of the load that must reveal the cheat

    def server(self, database: DatabaseAddress | None = None, upstream: str | None = None) -> ReferenceServer:
        rogue: ReferenceServer = type("RogueServer", (self.base,), dict(self.change))(database, upstream)
        return rogue


def under_load(name: str, test_type: str, caught_by: str, does: str, change: Change, **more: Any) -> Rogue:
    return Rogue(name, test_type, caught_by, does, change, under_load=True, **more)


def every(server: ReferenceServer, count: int) -> bool:
    """Return True on every ``count``-th call."""
    with server.lock:
        server.state["calls"] = server.state.get("calls", 0) + 1
        return bool(server.state["calls"] % count == 0)
