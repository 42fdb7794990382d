"""The explicit lists of all checks, and of test types that are asked, or loaded, in a way of their own, by name."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

from harness.extras import TEST_TYPES
from harness.plan.testtypes import DECLARED
from harness.runtime import DatabaseAddress
from harness.verify.checks import (
    Check,
    bodies,
    connection,
    declared,
    delay,
    fan_out,
    fortunes,
    http,
    load,
    randomness,
    statements,
    values,
)
from harness.verify.checks.asking import Asking
from harness.verify.checks.evidence import Evidence

EXTRAS = {name: import_module(package) for name, package in TEST_TYPES.items()}

# In the order in which a verdict lists them: the checks of a module as they stand there.
MODULES = (
    *(http, connection, bodies, delay, fan_out, values, randomness, statements, fortunes),
    *(module for extra in EXTRAS.values() for module in extra.CHECKS),
    *(load, declared),
)
CHECKS: dict[str, Check] = {
    check.name: check
    for module in MODULES
    for value in vars(module).values()
    for check in (value if isinstance(value, tuple) else (value,))
    if isinstance(check, Check)
}

# Test type -> what asks the server; the others are asked by ``harness.verify.verification`` as their traits say.
GATHERERS: Mapping[str, Callable[[Asking, Evidence], None]] = {
    DECLARED: declared.gather,
    "delay": delay.gather,
    "fan-out": fan_out.gather,
    **{name: extra.gather for name, extra in EXTRAS.items()},
}


class OwnLoad(Protocol):
    """How a load of a test type's own is judged."""

    def empty(self, database: DatabaseAddress) -> None:
        """Prepare the tables."""

    def seen(self, answers: Path, database: DatabaseAddress) -> tuple[Evidence, int]:
        """What it shows, and how many arrivals it had."""


LOADS: Mapping[str, OwnLoad] = {name: extra.load for name, extra in EXTRAS.items()}
