"""The floor: an implementation tagged ``limit`` is no contestant, it shows what the machine, kernel and protocol cost.

It stands in the tables without a rank, and every other row says how many times its CPU per request it takes. Where
nothing else was run, or scores are relative to it by request, it is ranked as any other.
"""

from collections.abc import Mapping
from statistics import median

from harness.records.models import Load, RunInfo
from harness.stats.values import CellValues

TAG = "limit"

Cells = Mapping[tuple[str, str], Mapping[Load, CellValues]]


def limits(run: RunInfo) -> tuple[str, ...]:
    """The implementations that are left out of ranks, in the run's order."""
    found = tuple(info.name for info in run.implementations if TAG in (tag.lower() for tag in info.tags))
    rest = len(run.implementations) - len(found)
    return tuple(name for name in found if rest and name != run.reference)


def reason(cell: CellValues | None) -> str:
    """Why it has no rank, with its own figures: req/s and CPU seconds per request as medians over replicates."""
    words = "the floor: what the machine allows, not ranked"
    if cell is None or not cell.throughput or not cell.cpu_per_request:
        return words
    rate, cpu = median(cell.throughput.values()), median(cell.cpu_per_request.values())
    return f"{words} ({rate:,.0f} req/s, {cpu * 1e6:.3g} µs CPU/req)"


def word(name: str, kind: str, level: Load, names: tuple[str, ...], cells: Cells) -> str | None:
    """``2.5× the floor``: CPU per request over the cheapest limit's at the same level; None where one is missing."""
    own = _cpu(cells, name, kind, level)
    known = [cpu for other in names if other != name and (cpu := _cpu(cells, other, kind, level))]
    return f"CPU {own / min(known):.3g}× the floor" if own and known else None


def _cpu(cells: Cells, name: str, kind: str, level: Load) -> float | None:
    """CPU seconds per request, median over replicates."""
    cell = cells.get((name, kind), {}).get(level)
    return median(cell.cpu_per_request.values()) if cell is not None and cell.cpu_per_request else None
