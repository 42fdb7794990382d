"""All rogues, by name."""

from harness.tests.doubles.rogues import Rogue, constants, http, pages, rows, updates

ROGUES: dict[str, Rogue] = {
    rogue.name: rogue for module in (http, constants, rows, updates, pages) for rogue in module.ROGUES
}
