"""All rogues, by name."""

from harness.tests.doubles.rogues import Rogue, busy, constants, http, orders, pages, rows, stale, updates, waiting

ROGUES: dict[str, Rogue] = {
    rogue.name: rogue
    for module in (http, constants, waiting, rows, updates, pages, stale, orders, busy)
    for rogue in module.ROGUES
}
