"""The table of docs/method.md on several sets of machines: ``python -m harness.benchmarks.sets [runs]``.

Sets differ in speed by up to a factor of four and, in some cases, favour implementations at random; each implementation
measured in a few blocks on a few sets, always beside the reference. Printed: the share of 95 % intervals that hold
the true ratio, to the reference and between any two; the share of runs with a false difference (Holm at 5 %).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.benchmarks.command import command
from harness.benchmarks.simulation import LEVEL, MACHINE, TEST_TYPE, run_info
from harness.cli.arguments import Parser
from harness.errors import Exit
from harness.plan.profile import Replication
from harness.records.models import MachineSet, RunInfo
from harness.stats import estimates, pairs, sets
from harness.stats.values import CellValues

LEVEL_OF_ERROR = 0.05
REFERENCE = "s0"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A lab and its plan; standard deviations of logarithms."""

    sets: int
    implementations: int  # beside the reference
    blocks: int  # that each implementation is in, on sets drawn at random
    together: int  # implementations in a block, beside the reference
    favour: float = 0.0  # how a set favours an implementation
    noise: float = 0.03  # of a fresh process, the same for all
    speed: float = 0.7  # of a set as a whole


CASES = (
    Case(sets=2, implementations=8, blocks=4, together=4),
    Case(sets=5, implementations=3, blocks=5, together=3),
    Case(sets=5, implementations=8, blocks=5, together=4),
    Case(sets=5, implementations=8, blocks=5, together=4, favour=0.03),
    Case(sets=5, implementations=24, blocks=10, together=4, favour=0.03),
    Case(sets=10, implementations=24, blocks=5, together=4, favour=0.03),
    Case(sets=50, implementations=100, blocks=10, together=20, favour=0.02),
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """Shares of a case."""

    held: float  # intervals of ratios to the reference
    held_pairs: float  # of ratios of two others
    by_block: float  # to the reference, if blocks counted as replicates, whatever set they came from
    false: float
    half_width: float


def simulate(case: Case, runs: int, seed: int) -> Result:
    """Play the case so many times."""
    generator = np.random.default_rng(seed)
    counts = np.zeros(9)
    for _ in range(runs):
        counts += _one(case, generator)
    held, total, of_pairs, all_pairs, by_block, false, width, widths, all_by_block = counts
    return Result(
        held=held / total, held_pairs=of_pairs / all_pairs, by_block=by_block / all_by_block, false=false / runs,
        half_width=width / widths,
    )  # fmt: skip


def _one(case: Case, generator: np.random.Generator) -> np.ndarray:
    cells, run = measured(case, generator)
    values = {name: levels[LEVEL].throughput for (name, _), levels in sets.pooled(cells, run).items()}
    table = sets.alone(values, REFERENCE)
    names = list(values)
    index = names.index(REFERENCE)
    counts = np.zeros(9)
    for other in range(len(names)):
        found = table.against(other)
        half = found.half_width(0.95)
        known = np.isfinite(half)
        known[other] = False
        inside = (np.abs(found.difference) <= half) & known
        if other == index:
            counts[0], counts[1] = inside.sum(), known.sum()
            counts[6], counts[7] = half[known].sum(), known.sum()
            counts[4], counts[8] = _by_block(cells)
        else:
            known[index] = inside[index] = False
            counts[2] += inside.sum()
            counts[3] += known.sum()
    counts[5] = float(pairs.significant(table, LEVEL_OF_ERROR).rejected.any())
    return counts


def _by_block(cells: sets.Cells) -> tuple[float, float]:
    """Intervals of ratios to the reference that hold the truth, and all, if blocks counted as replicates (Student)."""
    anchor = cells[REFERENCE, TEST_TYPE][LEVEL].throughput
    held = total = 0
    for (name, _), levels in cells.items():
        logs = np.array([np.log(value / anchor[block]) for block, value in levels[LEVEL].throughput.items()])
        if name == REFERENCE or len(logs) < 2:
            continue
        half = float(estimates.t_quantile(0.95, len(logs) - 1)) * logs.std(ddof=1) / np.sqrt(len(logs))
        held += bool(abs(logs.mean()) <= half)
        total += 1
    return held, total


def measured(case: Case, generator: np.random.Generator) -> tuple[sets.Cells, RunInfo]:
    """What a lab of equal implementations would have recorded."""
    names = [f"s{i}" for i in range(1, case.implementations + 1)]
    speed = generator.uniform(-case.speed, case.speed, size=case.sets)
    favour = generator.normal(size=(case.implementations + 1, case.sets)) * case.favour
    throughput: dict[str, dict[int, float]] = {name: {} for name in (REFERENCE, *names)}
    blocks: list[list[int]] = [[] for _ in range(case.sets)]
    block = 0
    for turn in range(case.blocks):
        order = generator.permutation(case.implementations)
        for start in range(0, len(order), case.together):
            where = (block + turn) % case.sets if case.sets < 4 else int(generator.integers(case.sets))
            drift = generator.normal() * 0.02
            for i in (-1, *order[start : start + case.together].tolist()):
                log = speed[where] + drift + favour[i + 1, where] + generator.normal() * case.noise
                throughput[names[i] if i >= 0 else REFERENCE][block] = 1000 * float(np.exp(log))
            blocks[where].append(block)
            block += 1
    machines = tuple(MachineSet(name=str(n), machine=MACHINE, blocks=tuple(found)) for n, found in enumerate(blocks))
    rule = Replication(minimum=case.blocks, maximum=case.blocks)
    run = run_info([REFERENCE, *names], rule, reference=REFERENCE).model_copy(update={"sets": machines})
    return {(name, TEST_TYPE): {LEVEL: _cell(values)} for name, values in throughput.items()}, run


def _cell(values: dict[int, float]) -> CellValues:
    return CellValues(
        throughput=values, cpu_per_request={}, rss_peak=None, errors=0, words=(), failed_words=(),
        samples=len(values), dropped=0, blocks=tuple(values), generator_bound=0,
    )  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    p = Parser(prog="python -m harness.benchmarks.sets", description="Coverage of merged runs, by simulation.")
    p.add_argument("runs", nargs="?", type=int, default=300)
    options = p.parse_args(list(argv))
    print("| sets | implementations | blocks of each | a set favours by | hold: to reference | any two "
          "| to reference, if blocks were the unit | false differences | half-width |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        runs = options.runs if case.implementations < 100 else max(options.runs // 10, 1)
        found = simulate(case, runs, seed=7)
        print(
            f"| {case.sets} | {case.implementations} | {case.blocks} | {case.favour:.0%} | {found.held:.1%} "
            f"| {found.held_pairs:.1%} | {found.by_block:.1%} | {found.false:.1%} "
            f"| ±{np.expm1(found.half_width):.1%} |",
            flush=True,
        )
    return Exit.OK


if __name__ == "__main__":
    command(main)
