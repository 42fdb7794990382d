"""All rogues by name: those that verification catches, and those that only a load reveals."""

from harness.tests.doubles.rogues import (
    Rogue,
    busy,
    constants,
    cunning,
    hidden,
    http,
    late,
    orders,
    pages,
    rows,
    stale,
    updates,
    waiting,
)

WITHOUT_DATABASE = frozenset({"http", "json", "plaintext", "hello", "delay", "fan-out"})
_MODULES = (http, constants, waiting, rows, updates, pages, stale, orders, busy, hidden, cunning, late)
EVERYONE: dict[str, Rogue] = {rogue.name: rogue for module in _MODULES for rogue in module.ROGUES}
ROGUES = {name: rogue for name, rogue in EVERYONE.items() if not rogue.under_load}
UNDER_LOAD = {name: rogue for name, rogue in EVERYONE.items() if rogue.under_load}
