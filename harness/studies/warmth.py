"""``python -m harness.studies.warmth RUN WARM``: shows whether a run's CPU per request is that of warm servers.

WARM is a run of the same servers in which each cell had a minute of load before it was measured. Each cell of the
headline tables is one ratio. Between two runs the machine itself may have changed speed: ``--steady NAME`` names a
server that has nothing to warm, and divides each ratio by its own in the same test.
"""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.records import store
from harness.records.models import RunRecords
from harness.stats.ranking import rank

NEAR = 0.10  # what counts as warm: within a tenth
Cells = Mapping[tuple[str, str], float]


def figures(run: RunRecords) -> Cells:
    """Medians over the trials at the headline loads by (implementation, test type), CPU seconds per request.

    From trials, since the tables have no row for what is not ranked, such as the floor.
    """
    ranking = rank(run.info, run.trials, run.processes, run.verdicts)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for trial in run.trials:
        test = ranking.test_types.get(trial.test_type)
        if test is None or trial.load != test.headline.load or trial.purpose != "measure" or not trial.rankable:
            continue
        if trial.cpu_per_request is not None:
            found[trial.implementation, trial.test_type].append(trial.cpu_per_request)
    return {cell: statistics.median(seconds) for cell, seconds in found.items()}


def ratios(run: Cells, warm: Cells, steady: str | None = None) -> Cells:
    """Of the cells that both have, run ÷ warm, without the server that has nothing to warm.

    Raises UsageError where that one lacks a test of another.
    """
    found = {cell: run[cell] / warm[cell] for cell in run if cell in warm}
    if steady is None:
        return found
    own = {kind: ratio for (name, kind), ratio in found.items() if name == steady}
    rest = {cell: ratio for cell, ratio in found.items() if cell[0] != steady}
    if missing := sorted({kind for _, kind in rest} - set(own)):
        raise UsageError(f"{steady} has no {', '.join(missing)} in both runs: name a server that has every test")
    return {cell: ratio / own[cell[1]] for cell, ratio in rest.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row an implementation, and how many cells are near."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("run", type=Path, help="the folder of a run")
    p.add_argument("warm", type=Path, help="of one with a minute of load before each cell")
    p.add_argument("--steady", metavar="NAME", help="a server in both that has nothing to warm")
    options = p.parse_args(argv)
    found = ratios(figures(store.read(options.run)), figures(store.read(options.warm)), options.steady)
    if not found:
        sys.exit(f"{options.run} and {options.warm} have no cell in common")
    kinds = list(dict.fromkeys(kind for _, kind in found))
    print(f"| | {' | '.join(kinds)} |\n|---{'|---' * len(kinds)}|")
    for name in dict.fromkeys(name for name, _ in found):
        words = [f"{found[name, kind]:.2f}" if (name, kind) in found else "–" for kind in kinds]
        print(f"| {name} | {' | '.join(words)} |")
    near = sum(abs(ratio - 1) <= NEAR for ratio in found.values())
    print(f"\n{near} of {len(found)} cells within {NEAR:.0%}, {sum(r > 1 + NEAR for r in found.values())} above")


if __name__ == "__main__":
    main()
