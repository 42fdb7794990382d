"""Where the generator, not the servers, set the pace of a cell. Pure."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from harness.records.models import Load
from harness.stats.values import CellValues

WORD = "at the generator's ceiling"


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Several implementations tied where the generator, not they, sets the pace."""

    test_type: str
    level: Load
    implementations: tuple[str, ...]
    throughput: float  # requests per second of the fastest
    text: str


def ceilings(cells: Mapping[tuple[str, str], Mapping[Load, CellValues]], share: float) -> tuple[Ceiling, ...]:
    """Cells whose fastest implementations lie within ``share`` of each other with a saturated generator.

    Two implementations are enough, because each of them must have been generator-bound in half of its samples.
    """
    bound = {
        (test_type, level)
        for (_, test_type), levels in cells.items()
        for level, cell in levels.items()
        if cell.generator_bound
    }
    groups: defaultdict[tuple[str, Load], dict[str, CellValues]] = defaultdict(dict)
    for (name, test_type), levels in cells.items() if bound else ():
        for level, cell in levels.items():
            if (test_type, level) in bound:
                groups[test_type, level][name] = cell
    found = []
    for (test_type, level), by_name in groups.items():
        top = max(cell.median_throughput for cell in by_name.values())
        tied = sorted(
            name
            for name, cell in by_name.items()
            if top > 0 and cell.median_throughput >= top * (1 - share) and 2 * cell.generator_bound >= cell.samples
        )
        if len(tied) < 2:
            continue
        text = (
            f"{test_type} {level.label}: {', '.join(tied)} are within {share:.0%} of each other at "
            f"{top:,.0f} requests/s with the generator saturated: this may be its ceiling, not theirs"
        )
        found.append(Ceiling(test_type=test_type, level=level, implementations=tuple(tied), throughput=top, text=text))
    return tuple(found)
