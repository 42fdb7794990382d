"""``python -m harness.benchmarks.ranking``: how long ranking takes, of 1,000 x 10 replicates x 20 cells by default."""

import time
from collections.abc import Sequence
from typing import get_args

import numpy as np

from harness.benchmarks import simulation
from harness.benchmarks.command import command
from harness.cli.arguments import Parser
from harness.errors import Exit
from harness.plan.profile import GateName, Replication
from harness.records.models import Closed, Gate, Load, Outcome, Sample
from harness.stats.ranking import rank

# As many as a measured sample carries: each of them is looked at.
GATES = tuple(Gate(name=name, outcome=Outcome.PASS, value=0.0, threshold=1.0) for name in get_args(GateName))
LEVELS: dict[str, tuple[Load, ...]] = {
    "json": tuple(Closed(connections=c) for c in (64, 256, 512)),
    "plaintext": tuple(Closed(connections=c, depth=16) for c in (256, 1024)),
    "db": tuple(Closed(connections=c) for c in (64, 256, 512)),
    "query": tuple(Closed(connections=512, queries=q) for q in (1, 10, 20)),
    "cached-query": tuple(Closed(connections=512, queries=q) for q in (1, 20, 100)),
    "fortune": tuple(Closed(connections=c) for c in (64, 256, 512)),
    "update": tuple(Closed(connections=512, queries=q) for q in (1, 10, 20)),
}


def samples(implementations: int, replicates: int, spread: float = 4.0, seed: int = 1) -> list[Sample]:
    """Samples of every cell: true speeds spread evenly on a log scale over a factor of e to the ``spread``."""
    generator = np.random.default_rng(seed)
    truth = np.exp(np.linspace(0, spread, implementations))
    made: list[Sample] = []
    for test_type, levels in LEVELS.items():
        for level in levels:
            drawn = simulation.logs(simulation.DRIFTING, list(truth), replicates, 1, generator)[0]
            made.extend(
                simulation.sample(
                    f"s{i}", block, 1000 * float(np.exp(drawn[i, block])), test_type=test_type, level=level
                ).model_copy(update={"gates": GATES})
                for block in range(replicates)
                for i in range(implementations)
            )
    return made


def measure(implementations: int, replicates: int) -> tuple[float, float]:
    """Wall and CPU seconds that ranking takes, records to tables; a busy machine stretches only the first."""
    names = [f"s{i}" for i in range(implementations)]
    rule = Replication(minimum=replicates, maximum=replicates)
    run = simulation.run_info(names, rule, reference="s0", levels=LEVELS)
    records = samples(implementations, replicates)
    wall, cpu = time.perf_counter(), time.process_time()
    rank(run, records, [], [])
    return time.perf_counter() - wall, time.process_time() - cpu


def main(argv: Sequence[str]) -> int:
    """Print the seconds of one ranking."""
    p = Parser(prog="python -m harness.benchmarks.ranking", description="How long the ranking of a large run takes.")
    p.add_argument("implementations", nargs="?", type=int, default=1000)
    p.add_argument("replicates", nargs="?", type=int, default=10)
    options = p.parse_args(list(argv))
    implementations, replicates = options.implementations, options.replicates
    cells = sum(len(levels) for levels in LEVELS.values())
    wall, cpu = measure(implementations, replicates)
    print(
        f"{implementations} implementations x {replicates} replicates x {cells} cells ranked in {wall:.2f} s "
        f"({cpu:.2f} s of CPU)"
    )
    return Exit.OK


if __name__ == "__main__":
    command(main)
