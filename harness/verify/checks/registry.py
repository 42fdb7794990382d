"""The explicit lists of all checks, and of test types that are asked in a way of their own, by name."""

from collections.abc import Callable, Mapping

from harness.verify.checks import (
    Check,
    audit,
    bodies,
    connection,
    delay,
    fan_out,
    fortunes,
    http,
    json_shape,
    load,
    randomness,
    statements,
    values,
)
from harness.verify.checks.asking import Asking
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.orders import answers, arrivals, crowd, reading, refusals, storing

# In the order in which a verdict lists them.
CHECKS: dict[str, Check] = {
    check.name: check
    for module in (
        http,
        connection,
        json_shape,
        bodies,
        delay,
        fan_out,
        values,
        randomness,
        statements,
        fortunes,
        answers,
        refusals,
        storing,
        reading,
        crowd,
        arrivals,
        load,
        audit,
    )
    for check in module.CHECKS
}

# Test type -> what asks the server; the others are asked by ``harness.verify.verification`` as their traits say.
GATHERERS: Mapping[str, Callable[[Asking, Evidence], None]] = {"delay": delay.gather, "fan-out": fan_out.gather}
