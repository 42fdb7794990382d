"""``python -m harness.benchmarks.decisions RUN…``: what runs decided, how much of their time they measured.

A pair is decided where its ranks are disjoint. Over several runs an order is wrong where one run decided it and all
runs together, by the median of their ratios, say the other: what is true is not known, what is repeatable is. With
``--same A=B``, two names of one program, a run that decides between them is wrong.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from harness.benchmarks import audit_share
from harness.benchmarks.command import command
from harness.records import store
from harness.records.models import RunRecords
from harness.stats.model import Ranking
from harness.stats.ranking import rank

CLEAR = 1.5  # a ratio from which a pair ought to be decided
METRICS = {"throughput": "throughput", "cpu_per_request": "CPU per request"}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two implementations in one table of one run, in alphabetical order."""

    run: str
    metric: str
    test_type: str
    names: tuple[str, str]
    medians: tuple[float, float]
    decided: bool

    @property
    def factor(self) -> float:
        """How many times the smaller one the larger is."""
        return max(self.medians) / min(self.medians)

    @property
    def cell(self) -> tuple[str, str, tuple[str, str]]:
        """What it is a pair of, in whatever run."""
        return self.metric, self.test_type, self.names


def pairs(run: str, ranking: Ranking) -> Iterable[Pair]:
    """Of all that has a rank at the headline level."""
    for test_type, tables in ranking.test_types.items():
        rows = sorted((row for row in tables.headline.rows if row.ranked), key=lambda row: row.implementation)
        for metric in METRICS:
            for one, other in combinations(rows, 2):
                first, second = getattr(one, metric), getattr(other, metric)
                if first is None or second is None or first.rank is None or second.rank is None:
                    continue
                yield Pair(
                    run=run,
                    metric=metric,
                    test_type=test_type,
                    names=(one.implementation, other.implementation),
                    medians=(first.estimate.median, second.estimate.median),
                    decided=first.rank.high < second.rank.low or second.rank.high < first.rank.low,
                )


def wrong(found: Sequence[Pair], same: frozenset[frozenset[str]] = frozenset()) -> tuple[Pair, ...]:
    """The pairs that a run decided although they are the same program, or against what all runs say together."""
    ratios: defaultdict[tuple[str, str, tuple[str, str]], list[float]] = defaultdict(list)
    for pair in found:
        ratios[pair.cell].append(pair.medians[0] / pair.medians[1])
    together: Mapping[tuple[str, str, tuple[str, str]], float] = {
        cell: statistics.median(each) for cell, each in ratios.items()
    }
    return tuple(
        pair
        for pair in found
        if pair.decided
        and (frozenset(pair.names) in same or (pair.medians[0] - pair.medians[1]) * (together[pair.cell] - 1) < 0)
    )


def clear(found: Iterable[Pair], metric: str) -> tuple[int, int]:
    """(decided, all) of the pairs that differ by ``CLEAR`` and more."""
    large = [pair for pair in found if pair.metric == metric and pair.factor >= CLEAR]
    return sum(pair.decided for pair in large), len(large)


def measured_seconds(records: RunRecords) -> float:
    """Of samples, all levels; audits are apart."""
    return sum(sample.duration for sample in records.samples)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row a run, and what was decided wrongly; status 1 where anything was."""
    p = argparse.ArgumentParser(description="What runs decided, and how much of their time they measured.")
    p.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    p.add_argument("--same", action="append", default=[], metavar="A=B", help="two names of one program")
    options = p.parse_args(argv)
    found: list[Pair] = []
    print("| run | seed | s | builds | samples | audits | share after builds | CPU per request | throughput |")
    print("|---|---|---|---|---|---|---|---|---|")
    for folder in options.runs:
        records = store.read(folder)
        own = tuple(pairs(folder.name, rank(records.info, records.samples, records.replicates, records.verdicts)))
        found += own
        audits = audit_share.share((folder / audit_share.LOG).read_text(encoding="utf-8"))
        builds = sum(one.build.duration or 0.0 for one in records.info.implementations if one.build)
        samples = measured_seconds(records)
        share = (samples + audits.audit_seconds) / (audits.run_seconds - builds)
        said = ["{} of {}".format(*clear(own, metric)) for metric in ("cpu_per_request", "throughput")]
        print(
            f"| {folder.name} | {records.info.seed} | {audits.run_seconds:.0f} | {builds:.0f} | {samples:.0f} | "
            f"{audits.audit_seconds:.0f} | {share:.0%} | {said[0]} | {said[1]} |"
        )
    errors = wrong(found, frozenset(frozenset(each.split("=", 1)) for each in options.same))
    for pair in errors:
        print(f"wrong: {pair.run}, {pair.test_type}, {METRICS[pair.metric]}: {' and '.join(pair.names)}")
    print(f"{len(errors)} wrong of {sum(pair.decided for pair in found)} decided, of {len(found)} pairs")
    return 1 if errors else 0


if __name__ == "__main__":
    command(main)
