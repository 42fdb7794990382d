"""The explicit lists of all checks, and of test types that are asked, or loaded, in a way of their own, by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from harness.extras.orders.verify import answers, gathering, reading, storing
from harness.extras.orders.verify import load as order_load
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

# In the order in which a verdict lists them: the checks of a module as they stand there.
MODULES = (
    *(http, connection, bodies, delay, fan_out, values, randomness, statements, fortunes),
    *(answers, storing, reading, order_load),
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
    "order": gathering.gather,
}


class OwnLoad(Protocol):
    """How a load of a test type's own is judged."""

    def empty(self, database: DatabaseAddress) -> None:
        """Prepare the tables."""

    def seen(self, answers: Path, database: DatabaseAddress) -> tuple[Evidence, int]:
        """What it shows, and how many arrivals it had."""


LOADS: Mapping[str, OwnLoad] = {"order": order_load}
