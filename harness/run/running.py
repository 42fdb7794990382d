"""What a run works with, from outside (``Dependencies``) and while it measures (``Run``)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.host import machine as host
from harness.host.clock import SYSTEM_CLOCK, Clock
from harness.host.leftovers import Leftover, on_this_machine
from harness.measure.audit import audit, obstacle
from harness.measure.loadgen import LoadGenerator
from harness.measure.loadgen.registry import GENERATORS
from harness.measure.sweep import Budget
from harness.measure.testbed import Auditor, Testbed
from harness.plan.config import Settings
from harness.plan.discovery import Implementation
from harness.plan.profile import Replication
from harness.records.models import Machine, RunRecords
from harness.records.store import RunStore
from harness.run.audit_time import AuditTime
from harness.run.preparation import git_state
from harness.run.progress import Progress
from harness.run.rate_tools import RateTools
from harness.runtime import Runtime
from harness.runtime.choice import choose
from harness.stats import stopping
from harness.stats.stopping import Undecided
from harness.verify.verifier import Verifier, WireVerifier

logger = logging.getLogger("tfb.run")


def audits(runtime: Runtime) -> Auditor | None:
    """The auditor, or None where there can be no audits; the log says why."""
    if (why := obstacle(runtime)) is not None:
        logger.warning("no sample is audited: %s", why)
        return None
    return audit


class ChooseRuntime(Protocol):
    """``harness.runtime.choice.choose``, or a double of it."""

    def __call__(
        self, settings: Settings, implementations: Sequence[Implementation], logs: Path, *, run_id: str
    ) -> Runtime:
        """The runtime that the settings ask for."""


class StoppingRule(Protocol):
    """Which of the expected cells (implementation, test type) need another block, and why; empty: the run is done."""

    def __call__(
        self, records: RunRecords, expected: Sequence[tuple[str, str]], replication: Replication
    ) -> Sequence[Undecided]:
        """Looked at after every block."""


def by_tables(
    records: RunRecords, expected: Sequence[tuple[str, str]], replication: Replication
) -> Sequence[Undecided]:
    """Until every order of the tables is decided, or narrow enough."""
    return stopping.undecided(records.samples, expected, replication)


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """All that a run has of the world outside its own code; tests give doubles of it."""

    clock: Clock = SYSTEM_CLOCK
    choose_runtime: ChooseRuntime = choose
    verifier: Verifier = field(default_factory=WireVerifier)
    generators: Mapping[str, Callable[[Runtime], LoadGenerator]] = field(default_factory=lambda: GENERATORS)
    rate_tools: RateTools = field(default_factory=RateTools)
    machine: Callable[[], Machine] = host.facts
    open_files: Callable[[], int] = host.raise_nofile
    free_memory: Callable[[], float] = host.free_memory
    auditing: Callable[[Runtime], Auditor | None] = audits
    revision: Callable[[], tuple[str | None, bool | None]] = git_state
    stopping: StoppingRule = by_tables
    leftovers: Callable[[], Sequence[Leftover]] = on_this_machine


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run that measures: the testbed, and where samples go."""

    testbed: Testbed
    store: RunStore
    progress: Progress
    implementations: Mapping[str, Implementation]
    rate_tools: RateTools
    budget: Budget
    audit_time: AuditTime
    seed: int  # of everything that is drawn at random
    free_memory: Callable[[], float]  # bytes that servers may still take
    stopping: StoppingRule = by_tables
