"""Compares the CPU per request of short runs with a long run's, cell by cell.

Usage: ``python -m harness.studies.agreement LONG RUN…``. A cell agrees if its CPU per request differs from the long
run's by at most 10 %. Cells are compared at their headline loads. On a shared machine, the speed of the CPUs differs
between runs, which changes all cells alike. A second count therefore divides each ratio by the run's median ratio.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.records import store
from harness.records.run_records import RunRecords
from harness.stats.ranking import rank

TOLERANCE = 0.10  # largest relative difference between two runs that agree


@dataclass(frozen=True, kw_only=True)
class CellAgreement:
    """A cell's CPU per request in a short run, divided by the long run's."""

    implementation: str
    test_type: str
    ratio: float
    flags: tuple[str, ...]  # the cell's flags in the short run

    def agrees(self, common: float = 1.0) -> bool:
        """Return whether the ratio differs from the ratio ``common`` to all cells by at most the tolerance."""
        return abs(self.ratio / common - 1) <= TOLERANCE


def compare_cells(long: RunRecords, short: RunRecords) -> list[CellAgreement]:
    """Return the agreement of each cell that both runs measured."""
    expected = {key: cost for key, (cost, _) in _costs(long).items()}
    return [
        CellAgreement(implementation=name, test_type=kind, ratio=cost / expected[name, kind], flags=flags)
        for (name, kind), (cost, flags) in _costs(short).items()
        if (name, kind) in expected
    ]


def _costs(records: RunRecords) -> dict[tuple[str, str], tuple[float, tuple[str, ...]]]:
    """Return the CPU seconds per request and the flags, by implementation and test type."""
    ranking = rank(records.info, records.trials, records.processes, records.verdicts)
    return {
        (row.implementation, kind): (row.cpu_per_request.estimate.median, row.flags)
        for kind, each in ranking.test_types.items()
        for row in each.headline.rows
        if row.cpu_per_request
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the number of agreeing cells of each run, and a line for each cell that does not agree."""
    parser = argparse.ArgumentParser(prog="python -m harness.studies.agreement", description=__doc__)
    parser.add_argument("long", type=Path, metavar="LONG", help="folder of the long run")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of the short runs")
    options = parser.parse_args(argv)
    long = store.read_run(options.long)
    for folder in options.runs:
        cells = compare_cells(long, store.read_run(folder))
        if not cells:
            parser.error(f"{folder} and {options.long} have no cell in common. Choose runs of the same implementations")
        common = statistics.median(cell.ratio for cell in cells)
        same, relative = (sum(cell.agrees(factor) for cell in cells) for factor in (1.0, common))
        print(
            f"{folder.name}: {same} of {len(cells)} cells within {TOLERANCE:.0%}, "
            f"{relative} relative to the median ratio {common:.2f}"
        )
        for cell in sorted(cells, key=lambda each: each.ratio):
            if not cell.agrees():
                print(f"  {cell.implementation} {cell.test_type}: {cell.ratio:.2f}, flags: {', '.join(cell.flags)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
