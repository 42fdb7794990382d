"""Prints ratios of CPU time per request between this project's implementations and TechEmpower's.

Usage: ``python -m harness.studies.cpu_ratios RUN OURS=THEIRS…``. TechEmpower splits some frameworks into several
implementations, each with a few URLs. Join the names of these implementations with ``+``, for example
``vertx-web=vertx-web@TREE+vertx-web-postgres``. The ratio for a test type uses the load of its headline table.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.records import store
from harness.records.run_records import RunRecords
from harness.report.tables import format_ratio
from harness.stats import pairs
from harness.stats.cell_values import CPU_PER_REQUEST, collect_cells, group_by_test_type, headline_table_load
from harness.stats.moderation import CONFIDENCE, pool_tables
from harness.stats.ranking_model import Ratio
from harness.stats.value_tables import ValueTables

TYPES = ("json", "plaintext", "db", "query", "fortune", "update")


def cpu_ratios(records: RunRecords, ours: str, theirs: Sequence[str]) -> Mapping[str, Ratio]:
    """Return the ratio for each test type in which both sides were measured, and the geometric mean of these ratios.

    Flagged cells are included. The result is empty if the sides have no test type in common.
    """
    renamed = [
        trial.model_copy(update={"implementation": "+".join(theirs)}) if trial.implementation in theirs else trial
        for trial in records.trials
    ]
    cells = collect_cells(renamed)
    tables = ValueTables.of(cells, CPU_PER_REQUEST)
    names = ours, "+".join(theirs)
    ratios, fits, measured = {}, [], group_by_test_type(cells)
    for kind in TYPES:
        spot = kind, headline_table_load(measured.get(kind, {}))
        if ratio := tables.ratio(*names, CONFIDENCE, spot):
            ratios[kind] = ratio
            fits.append(tables.fits[spot])
    if fits:
        joint = pool_tables(fits, names, tables.prior)
        first, second = (np.asarray([index]) for index in (0, 1))
        ratios["geometric mean"] = pairs.differences(joint, joint, first, second).ratios()[0]
    return ratios


def main(argv: Sequence[str] | None = None) -> int:
    """Print a Markdown table with a row per pair."""
    parser = argparse.ArgumentParser(prog="python -m harness.studies.cpu_ratios", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "pairs", nargs="+", metavar="OURS=THEIRS", help="implementations to compare (join several with +)"
    )
    options = parser.parse_args(argv)
    records = store.read_run(options.run)
    columns = (*TYPES, "geometric mean")
    print(f"| | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for pair in options.pairs:
        ours, _, theirs = pair.partition("=")
        known = {trial.implementation for trial in records.trials}
        if unknown := {ours, *theirs.split("+")} - known:
            parser.error(
                f"{pair}: {options.run} does not contain {min(unknown)!r}. Choose from: {', '.join(sorted(known))}"
            )
        ratios = cpu_ratios(records, ours, theirs.split("+"))
        print(f"| {ours} ÷ {theirs} | {' | '.join(format_ratio(ratios.get(column)) for column in columns)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
