"""The explicit lists of all checks, and of test types that are asked, or loaded, in a way of their own, by name."""

from collections.abc import Callable, Mapping
from importlib import import_module

from harness.extras import TEST_TYPES
from harness.plan.testtypes import DECLARED
from harness.verify.checks import (
    Check,
    after_load,
    bodies,
    conduct,
    connection,
    delay,
    expectations,
    fan_out,
    fortunes,
    http,
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
    *(after_load, expectations, conduct),
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
    DECLARED: expectations.gather,
    "delay": delay.gather,
    "fan-out": fan_out.gather,
    **{name: extra.gather for name, extra in EXTRAS.items()},
}


# Test type -> the module that judges its own loads: ``empty(database)`` prepares the tables, and
# ``seen(answers, database)`` is the evidence with the number of arrivals.
LOADS = {name: extra.load for name, extra in EXTRAS.items()}
