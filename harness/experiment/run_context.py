"""The objects that every stage of a run uses: settings, progress, records, and access to the machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from harness.experiment import first_use
from harness.experiment.first_use import FirstUseTask
from harness.experiment.generators import LoadGenerator
from harness.experiment.generators.registry import GENERATORS
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_setup import Revision, read_revision
from harness.host import machine as host
from harness.host.clock import SYSTEM_CLOCK, Clock
from harness.host.leftovers import Leftover, local_leftovers
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings
from harness.records.run_info import Machine, RunInfo
from harness.records.store import RunStore
from harness.runtime import Runtime
from harness.runtime.choice import choose_runtime
from harness.verify.verifier import Verifier


@runtime_checkable
class MultiMachineRuntime(Protocol):
    """A runtime that places servers, database and clients on different machines."""

    def require_machines(self) -> None:
        """Contact every machine. If one does not respond, raise a MachineLostError that names it."""

    def survey(self, info: RunInfo) -> RunInfo:
        """Return a copy of ``info`` that describes network links and all machines. The server's machine comes first."""


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """The functions through which a run accesses the machine. Tests replace them with fakes."""

    clock: Clock = SYSTEM_CLOCK
    choose_runtime: Callable[..., Runtime] = choose_runtime
    verifier: Verifier = field(default_factory=Verifier)
    generators: Mapping[str, Callable[[Runtime], LoadGenerator]] = field(default_factory=lambda: GENERATORS)
    machine: Callable[[], Machine] = host.read_machine
    open_files: Callable[[], object] = host.raise_open_file_limit  # increases tfb's limit on open files
    free_memory: Callable[[], float] = host.free_memory
    revision: Callable[[], Revision] = read_revision
    leftovers: Callable[[], Sequence[Leftover]] = local_leftovers
    first_use: Callable[[Settings, Plan], Sequence[FirstUseTask]] = first_use.find_first_use_tasks


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The objects that all stages of a run share."""

    settings: Settings
    progress: ProgressTracker
    dependencies: Dependencies
    store: RunStore
