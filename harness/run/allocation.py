"""Which cells the next round measures: all of them alike, or where it decides, as ``harness.rank`` says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.results.records import RunInfo, Sample

TestCell = tuple[str, str]  # implementation, test type


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Windows for the next round, at the headline level of each of these; a cell may stand there more than once."""

    cells: Sequence[TestCell]
    text: str = ""  # what more time would buy


class Allocate(Protocol):
    """Looks at what was measured and says where the next round's windows go."""

    def __call__(
        self,
        info: RunInfo,
        samples: Sequence[Sample],
        measured: Mapping[TestCell, int],
        *,
        window_seconds: float,
        remaining_seconds: float,
        seed: int,
    ) -> Allocation:
        """``measured``: windows of each live cell so far, at its headline level."""


def alike(
    info: RunInfo,
    samples: Sequence[Sample],
    measured: Mapping[TestCell, int],
    *,
    window_seconds: float,
    remaining_seconds: float,
    seed: int,
) -> Allocation:
    """Every cell once a round."""
    del info, samples, window_seconds, remaining_seconds, seed
    return Allocation(cells=tuple(measured))
