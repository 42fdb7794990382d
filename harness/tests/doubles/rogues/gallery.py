"""All rogues, by name."""

from harness.tests.doubles.rogues import Rogue, constants, http, pages, rows, updates, waiting

ROGUES: dict[str, Rogue] = {
    rogue.name: rogue for module in (http, constants, waiting, rows, updates, pages) for rogue in module.ROGUES
}
