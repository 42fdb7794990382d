"""``python -m harness.studies.large [implementations] [processes]``: how long the ranking of a large run takes."""

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

from harness.plan.profile import Processes
from harness.records.models import Closed, Load
from harness.stats.ranking import rank
from harness.studies.runs import run_info, trials
from harness.studies.worlds import World, draw

LOADS: dict[str, tuple[Load, ...]] = {
    "json": tuple(Closed(connections=c) for c in (64, 256, 512)),
    "plaintext": tuple(Closed(connections=c, depth=16) for c in (256, 1024)),
    "db": tuple(Closed(connections=c) for c in (64, 256, 512)),
    "query": tuple(Closed(connections=512, queries=q) for q in (1, 10, 20)),
    "cached-query": tuple(Closed(connections=512, queries=q) for q in (1, 20, 100)),
    "fortune": tuple(Closed(connections=c) for c in (64, 256, 512)),
    "update": tuple(Closed(connections=512, queries=q) for q in (1, 10, 20)),
}


def measure(implementations: int, processes: int) -> float:
    """CPU seconds that ranking takes, records to tables; speeds spread evenly over a factor of e to the fourth."""
    spots = [(kind, load) for kind, loads in LOADS.items() for load in loads]
    truth = tuple(np.linspace(0, 4, implementations))
    world = World(truth=truth, processes=processes, tables=len(spots), window=0.02)
    names = [f"s{server}" for server in range(implementations)]
    made = trials(dict(zip(spots, draw(world, np.random.default_rng(1)), strict=True)), names)
    info = run_info(names, Processes(minimum=processes, maximum=processes), reference="s0", loads=LOADS)
    began = time.process_time()
    rank(info, made, [], [])
    return time.process_time() - began


def main(argv: Sequence[str]) -> int:
    """Print the seconds of one ranking."""
    parser = argparse.ArgumentParser(prog="python -m harness.studies.large", description=__doc__)
    parser.add_argument("implementations", nargs="?", type=int, default=500)
    parser.add_argument("processes", nargs="?", type=int, default=3)
    options = parser.parse_args(list(argv))
    seconds = measure(options.implementations, options.processes)
    cells = sum(map(len, LOADS.values()))
    print(f"{options.implementations} implementations x {options.processes} processes x {cells} cells: {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
