"""Machines that vanish in the middle of a run: noticed, waited for, and what they took measured again."""

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from harness.errors import MachineLostError
from harness.records.store import set_aside
from harness.run.running import Run

BACK_SECONDS = 30.0  # that a run waits for a machine that it has lost


@runtime_checkable
class OverMachines(Protocol):
    """A runtime whose servers run on machines that can vanish."""

    def require_machines(self) -> None:
        """Ask every machine now; raises MachineLostError that names the one that does not answer."""

    def recovered(self, seconds: float) -> bool:
        """Whether all machines answer, or answer again within the time; what servers left there is removed."""


def look(run: Run) -> None:
    """After something has failed: raises MachineLostError where a machine is to blame, not an implementation."""
    runtime = run.testbed.runtime
    if isinstance(runtime, OverMachines):
        runtime.require_machines()


def await_return(run: Run, lost: Collection[tuple[str, int]], error: MachineLostError) -> None:
    """Set aside what was lost, and wait until all machines answer; raises the error when they do not in time.

    ``lost`` are replicates (implementation, process): also those that had a record already, of a failure.
    """
    set_aside(run.store.folder, lost)
    runtime = run.testbed.runtime
    if not isinstance(runtime, OverMachines):
        raise error
    names = ", ".join(sorted({name for name, _ in lost}))
    run.progress.problem(f"{error}; waiting up to {BACK_SECONDS:.0f} s for it")
    if not runtime.recovered(BACK_SECONDS):
        raise error
    run.progress.problem(f"all machines answer again: {names} is measured from its beginning")
