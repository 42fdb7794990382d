"""Registers all checks, and the functions that gather evidence for special test types."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import DECLARED, TestType
from harness.plugins import Extensions
from harness.runtime import DatabaseAddress, Server
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


class LoadVerification(Protocol):
    """An interface for plugins that verify loads. Usually, a module implements it."""

    def observe_load(self, database: DatabaseAddress, /) -> AbstractContextManager[object]:
        """Prepare the database. Return a context manager that observes the load and yields the ``observations``."""

    def gather_evidence(
        self,
        responses_file: Path,
        database: DatabaseAddress,
        observations: Any,  # noqa: ANN401 - the value of ``observe_load``
        /,
    ) -> tuple[Evidence, int]:
        """Return the evidence and the number of checked responses. Raises LoadError for an unknown file format."""


class TestTypeVerification(Protocol):
    """An interface for plugins that verify a test type. Usually, a module implements it."""

    @property
    def check_modules(self) -> Sequence[object]:
        """Return the modules that contain the plugin's checks. Checks are module attributes of type ``Check``."""

    @property
    def load(self) -> LoadVerification | None:
        """Return the plugin's verification of loads, or None to check recorded responses as usual."""

    @property
    def drawing(self) -> "RequestDrawing | None":
        """Return the plugin's request generator, or None if the plugin does not generate requests."""

    def gather(self, task: VerificationTask, evidence: Evidence, /) -> None:
        """Send requests to the server and add the exchanges to the evidence."""


class RequestDrawing(Protocol):
    """An interface for plugins that draw a load's requests at random. Usually, a module implements it."""

    def draw(self, server: Server, test_type: TestType, seed: int, /) -> Sequence[PreparedRequest]:
        """Return the random requests that the load generator may send."""

    def observe(self, server: Server, seed: int, /) -> AbstractContextManager[object]:
        """Return a context manager that observes a load. The yielded value becomes ``Evidence.extension``."""


VERIFICATIONS: Mapping[str, TestTypeVerification] = Extensions[TestTypeVerification]("verifications").load_all()

# Verdicts list checks in the order of these modules and, within a module, in the order of definition.
MODULES = (
    *(http, connection, bodies, delay, fan_out, values, randomness, statements, fortunes),
    *(module for extra in VERIFICATIONS.values() for module in extra.check_modules),
    *(after_load, expectations, conduct),
)
CHECKS: dict[str, Check] = {
    check.name: check
    for module in MODULES
    for value in vars(module).values()
    for check in (value if isinstance(value, tuple) else (value,))
    if isinstance(check, Check)
}

# Test type -> function that gathers evidence. ``verification.EvidenceGatherer`` handles all other test types.
GATHERERS: Mapping[str, Callable[[VerificationTask, Evidence], None]] = {
    DECLARED: expectations.gather,
    "delay": delay.gather,
    "fan-out": fan_out.gather,
    **{name: extra.gather for name, extra in VERIFICATIONS.items()},
}


# Test type -> the plugin's verification of loads, which replaces the usual checks of responses.
LOADS = {name: extra.load for name, extra in VERIFICATIONS.items() if extra.load}
DRAWINGS = {name: extra.drawing for name, extra in VERIFICATIONS.items() if extra.drawing}


def draw_requests(server: Server, test_type: TestType, seed: int) -> Sequence[PreparedRequest]:
    """Return a load's requests if a plugin draws them or a service declares them. Otherwise, return no requests."""
    drawing = DRAWINGS.get(test_type.name)
    return drawing.draw(server, test_type, seed) if drawing else test_type.requests
