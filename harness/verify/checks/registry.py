"""The explicit list of all checks, by name, in the order in which a verdict lists them."""

from harness.verify.checks import (
    Check,
    bodies,
    connection,
    fortunes,
    http,
    json_shape,
    load,
    randomness,
    statements,
    values,
)

CHECKS: dict[str, Check] = {
    check.name: check
    for module in (http, connection, json_shape, bodies, values, randomness, statements, fortunes, load)
    for check in module.CHECKS
}
