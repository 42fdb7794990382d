"""Which latency of a closed loop is shown, decided in one place: service time where it was measured, else wrk's. Pure.

wrk alters every latency by its correction (docs/method.md). The audited loads of a run hold the same closed loop by the
project's own generator, whose service times are as they were. All rows of a table are shown on one basis: the service
time where each of its implementations has one, else wrk's figures under that name.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from harness.records.models import AuditedLoad, Gate, Latency, LatencyBasis, Outcome, Sample

WRK: LatencyBasis = "closed-loop, wrk-corrected"
SERVICE: LatencyBasis = "closed-loop, service time"
ARRIVALS: LatencyBasis = "open-loop, intended send time"  # of the order service, whose load has no closed loop
NAMES: Mapping[LatencyBasis, str] = {
    SERVICE: "service time of a closed loop",
    ARRIVALS: "from the intended send time",
    WRK: "closed loop of wrk, altered by its correction",
}


class Measured(Protocol):
    """What is read of a sample."""

    @property
    def latency(self) -> Latency | None:
        """Of the published throughput's generator."""

    @property
    def audited(self) -> AuditedLoad | None:
        """The load beside it."""

    @property
    def gates(self) -> tuple[Gate, ...]:
        """That it passed or not."""


def latency_of(sample: Measured, basis: LatencyBasis) -> Latency | None:
    """A sample's latency on this basis; none of a sample that a gate keeps out."""
    if any(gate.outcome is Outcome.FAIL for gate in sample.gates):
        return None
    service = sample.audited.latency if sample.audited else None
    return next((known for known in (service, sample.latency) if known and known.basis == basis), None)


def basis_of(cells: Iterable[Iterable[Measured]]) -> LatencyBasis:
    """That of a table, whose cells hold the samples of one implementation each."""
    return common(_bases(cell) for cell in cells)


def common(bases: Iterable[Collection[LatencyBasis]]) -> LatencyBasis:
    """The first basis that all cells have, of those that have any."""
    known = [found for found in bases if found]
    return next((basis for basis in NAMES if known and all(basis in found for found in known)), WRK)


def basis_to_compare(cells: Iterable[Sequence[Sample]]) -> LatencyBasis:
    """The same where rows are ranked: service time only where every process has one, since they are the unit."""
    whole = [members for members in cells if _bases(members)]
    by_process = [[one for one in members if one.process == process] for members in whole for process in _of(members)]
    return basis_of(by_process)


def _of(members: Sequence[Sample]) -> set[int]:
    return {one.process for one in members if _bases([one])}


def _bases(cell: Iterable[Measured]) -> set[LatencyBasis]:
    return {basis for sample in cell for basis in NAMES if latency_of(sample, basis)}
