"""``python -m harness.benchmarks.containers``: what a container costs: both runtimes in turns, same implementations.

Each round is a run of one replicate on either runtime, in random order, so that what the machine does meanwhile falls
on both. A ratio is docker over local, paired by round.
"""

import argparse
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean

from harness.benchmarks import trials
from harness.benchmarks.command import command
from harness.benchmarks.trials import METRICS, Metric
from harness.cli.arguments import parser
from harness.cli.settings import settings
from harness.errors import Exit
from harness.plan.config import RuntimeName
from harness.records.models import Sample
from harness.run import progress, workflow

RUNTIMES: tuple[RuntimeName, ...] = ("local", "docker")
Cell = tuple[str, str]  # implementation, test type


@dataclass
class Figures:
    """Values of one cell: runtime -> metric -> round -> value."""

    values: dict[RuntimeName, dict[Metric, dict[int, float]]] = field(
        default_factory=lambda: {runtime: {metric: {} for metric in METRICS} for runtime in RUNTIMES}
    )

    def add(self, runtime: RuntimeName, number: int, sample: Sample) -> None:
        """Keep both metrics of a sample."""
        for metric in METRICS:
            value = getattr(sample, metric)
            if value:
                self.values[runtime][metric][number] = value


def main(argv: Sequence[str]) -> int:
    """Run the rounds, print a Markdown table."""
    p = argparse.ArgumentParser(prog="python -m harness.benchmarks.containers", description=__doc__)
    p.add_argument("--rounds", type=int, default=5, help="runs on each runtime (default 5)")
    p.add_argument("--profile", default="quick")
    p.add_argument("--test", nargs="+", default=["run"])
    p.add_argument("--type", nargs="+", default=["json", "db"])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--results", help="another results folder")
    options = p.parse_args(list(argv))
    began = time.monotonic()
    cells: dict[Cell, Figures] = defaultdict(Figures)
    failures = 0
    for number, runtime in turns(options.rounds, options.seed):
        words = _words(options, runtime)
        chosen = settings(parser().parse_args(words), ("bench-docker", *words))
        outcome = workflow.benchmark(chosen, progress.Progress(progress.display(quiet=False)))
        failures += len(outcome.failures)
        for sample in outcome.records.samples:
            if sample.rankable:
                cells[sample.implementation, sample.test_type].add(runtime, number, sample)
    print(report(options.rounds, options.profile, cells, time.monotonic() - began))
    return Exit.FAILED if failures else Exit.OK


def turns(rounds: int, seed: int) -> Iterator[tuple[int, RuntimeName]]:
    """Round by round, both runtimes in random order."""
    shuffle = random.Random(seed)
    for number in range(rounds):
        for runtime in shuffle.sample(RUNTIMES, len(RUNTIMES)):
            yield number, runtime


def _words(options: argparse.Namespace, runtime: str) -> list[str]:
    return [
        *("--test", *options.test, "--type", *options.type, "--profile", options.profile, "--replicates", "1"),
        *("--runtime", runtime, "--seed", str(options.seed), "--results-name", f"bench-docker {runtime}"),
        *(("--results", options.results) if options.results else ()),
    ]


def report(rounds: int, profile: str, cells: dict[Cell, Figures], seconds: float) -> str:
    """The ratios as Markdown."""
    lines = [
        f"{rounds} rounds, profile {profile}, {os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f} at the end, "
        f"{seconds / 60:.0f} min. Docker over local, 95 % intervals, paired by round.",
        "",
        "| implementation | test | req/s local | docker | ratio | µs CPU/req local | docker | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, test_type), figures in sorted(cells.items()):
        throughput = _cells(figures, "throughput", 1.0)
        cpu = _cells(figures, "cpu_per_request", 1e6)
        lines.append(f"| {name} | {test_type} | {throughput} | {cpu} |")
    return "\n".join(lines)


def _cells(figures: Figures, metric: Metric, unit: float) -> str:
    local, docker = (figures.values[runtime][metric] for runtime in RUNTIMES)
    shown = [f"{geometric_mean(values.values()) * unit:,.4g}" if values else "–" for values in (local, docker)]
    if not local.keys() & docker.keys():
        return " | ".join([*shown, "–"])
    ratio = trials.paired_ratio(local, docker)
    interval = f" [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio.low is not None and ratio.high is not None else ""
    return " | ".join([*shown, f"{ratio.value:.2f}×{interval}"])


if __name__ == "__main__":
    command(main)
