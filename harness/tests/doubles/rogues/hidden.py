"""Variants of other modules' rogues that cheat only while many connections are open."""

from dataclasses import replace

from harness.tests.doubles.rogues import Rogue, constants, http, pages, rows, updates
from harness.tests.doubles.rogues.busy import while_busy

KNOWN = {rogue.name: rogue for module in (constants, http, pages, rows, updates) for rogue in module.ROGUES}
# Rogue -> the check that catches it under load. None: the check that also catches it in verification.
HIDDEN: dict[str, str | None] = {
    "ends-bodies-by-closing": "one-answer-a-request",
    "never-writes": "rows-written",
    **dict.fromkeys(("fails-sometimes", "date-in-local-time", "json-as-text", "json-other-greeting", "races")),
    **dict.fromkeys(("string-ids", "always-row-42", "first-nine-tenths", "serves-memory", "select-in")),
    **dict.fromkeys(("does-not-read", "small-numbers", "no-doctype", "advertises")),
}


def hidden(rogue: Rogue, check: str | None) -> Rogue:
    name, does, change = f"{rogue.name}-when-busy", f"{rogue.does}, under load", while_busy(rogue.change)
    return replace(rogue, name=name, caught_by=check or rogue.caught_by, does=does, change=change, under_load=True)


ROGUES = tuple(hidden(KNOWN[name], check) for name, check in HIDDEN.items())
