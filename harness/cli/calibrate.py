"""``./tfb calibrate``: one implementation against itself, for the noise floor of this machine and profile."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean

from rich.console import Console

from harness.cli.arguments import parser, settings
from harness.errors import UsageError
from harness.rank.noise import noise_floor
from harness.rank.values import collect
from harness.request.config import Settings, Twins
from harness.results import calibration
from harness.results.records import NoiseFloor
from harness.run import progress, workflow
from harness.run.preparation import choose_work

SUFFIX = "~twin"


def main(argv: Sequence[str]) -> int:
    """Measure the pairs, keep the floor, print it."""
    p = parser()
    p.prog = "./tfb calibrate"
    p.description = "Measure one implementation against itself; later runs on this machine quote the noise floor."
    p.set_defaults(type=["json", "db"])
    options = p.parse_args(list(argv))
    chosen = settings(options, ("calibrate", *argv))
    # Fresh processes, one after another: the floor is between processes, which rounds of one pair do not show.
    chosen = replace(chosen, profile=chosen.profile.model_copy(update={"rounds": None}))
    chosen = replace(chosen, twins=Twins(suffix=SUFFIX, frameworks=chosen.frameworks))
    selected = choose_work(replace(chosen, twins=None)).implementations
    if len(selected) != 1:
        raise UsageError("calibrate takes one implementation: name it with --test")
    name = selected[0].name
    outcome = workflow.benchmark(chosen, progress.Progress(progress.display(quiet=chosen.quiet)))
    floor = measured_floor(outcome, name, chosen)
    file = calibration.keep(chosen.results, outcome.records.info.machine, floor)
    Console().print(
        f"Noise floor of this machine with profile {floor.profile} ({floor.pairs} pairs of {name} against itself): "
        f"throughput {floor.throughput:.1%}, CPU per request {floor.cpu_per_request:.1%}\nkept in {file.name}; runs "
        "with this profile quote it, and no smaller difference is called one"
    )
    return outcome.exit_code


def measured_floor(outcome: workflow.RunOutcome, name: str, chosen: Settings) -> NoiseFloor:
    """The floor from the blocks: of each the geometric means of both copies over the cells that both have.

    Cells of one block share its luck, so that the block is the unit and not the cell.
    """
    cells = collect(outcome.records.samples)
    throughput: dict[int, list[tuple[float, float]]] = defaultdict(list)
    cpu: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for test_type in {kind for _, kind in cells}:
        own, twin = cells.get((name, test_type), {}), cells.get((name + SUFFIX, test_type), {})
        for level in own.keys() & twin.keys():
            for blocks, a, b in (
                (throughput, own[level].throughput, twin[level].throughput),
                (cpu, own[level].cpu_per_request, twin[level].cpu_per_request),
            ):
                for block in a.keys() & b.keys():
                    blocks[block].append((a[block], b[block]))
    if len(throughput) < 2:
        raise UsageError(f"only {len(throughput)} block(s) hold a pair: give --replicates 5 or more")
    return noise_floor(
        implementation=name,
        profile=chosen.profile.name,
        measured_at=time.time(),
        throughput=_means(throughput),
        cpu_per_request=_means(cpu),
    )


def _means(blocks: Mapping[int, Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Geometric means of both copies, block by block."""
    pairs = (zip(*blocks[block], strict=True) for block in sorted(blocks))
    return [(geometric_mean(own), geometric_mean(twin)) for own, twin in pairs]
