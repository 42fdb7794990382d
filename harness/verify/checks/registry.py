"""The explicit lists of all checks, and of test types whose evidence is gathered by functions of their own."""

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
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.verification_client import VerificationTask

EXTRAS = {name: import_module(package) for name, package in TEST_TYPES.items()}

# In the order in which a verdict lists the checks; within a module, in the order of definition.
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

# Test type -> function that gathers its evidence. ``harness.verify.verification`` gathers for all other test types.
GATHERERS: Mapping[str, Callable[[VerificationTask, Evidence], None]] = {
    DECLARED: expectations.gather,
    "delay": delay.gather,
    "fan-out": fan_out.gather,
    **{name: extra.gather for name, extra in EXTRAS.items()},
}


# Test type -> module that judges its own loads: ``watched(database)`` observes the tables during a load, and
# ``seen(answers, database, watched)`` returns the evidence and the number of arrivals.
LOADS = {name: extra.load for name, extra in EXTRAS.items()}
