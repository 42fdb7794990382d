"""``python -m harness.studies.decisions RUN… [--same A=B]``: what real runs decided.

A pair is decided where its ranks are disjoint. Over several runs an order is wrong where one run decided it and all
together, by the median of their ratios, say the other: what is true is not known, what is repeatable is. With ``--same
A=B``, two names of one program, a run that decides between them is wrong.
"""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from harness.records import store
from harness.stats.model import Ranking
from harness.stats.ranking import rank

CLEAR = 1.5  # a ratio from which a pair ought to be decided
METRICS = {"cpu_per_request": "CPU per request", "throughput": "throughput"}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two implementations in one table of one run, in alphabetical order."""

    run: str
    metric: str
    test_type: str
    names: tuple[str, str]
    ratio: float
    decided: bool

    @property
    def clear(self) -> bool:
        """Whether it ought to be decided."""
        return max(self.ratio, 1 / self.ratio) >= CLEAR

    @property
    def cell(self) -> tuple[str, str, tuple[str, str]]:
        """What it is a pair of, in whatever run."""
        return self.metric, self.test_type, self.names


def pairs(run: str, ranking: Ranking) -> Iterator[Pair]:
    """Of all that has a rank in a headline table."""
    for test_type, tables in ranking.test_types.items():
        rows = sorted((row for row in tables.headline.rows if row.ranked), key=lambda row: row.implementation)
        for metric in METRICS:
            for one, other in combinations(rows, 2):
                first, second = getattr(one, metric), getattr(other, metric)
                if first is not None and second is not None:
                    yield Pair(
                        run=run,
                        metric=metric,
                        test_type=test_type,
                        names=(one.implementation, other.implementation),
                        ratio=first.estimate.median / second.estimate.median,
                        decided=first.rank.high < second.rank.low or second.rank.high < first.rank.low,
                    )


def wrong(found: Sequence[Pair], same: frozenset[frozenset[str]] = frozenset()) -> tuple[Pair, ...]:
    """The pairs that a run decided although they are the same program, or against what all runs say together."""
    ratios: defaultdict[tuple[str, str, tuple[str, str]], list[float]] = defaultdict(list)
    for pair in found:
        ratios[pair.cell].append(pair.ratio)
    together = {cell: statistics.median(each) for cell, each in ratios.items()}
    return tuple(
        pair
        for pair in found
        if pair.decided and (frozenset(pair.names) in same or (pair.ratio - 1) * (together[pair.cell] - 1) < 0)
    )


def _shares(found: Iterable[Pair]) -> str:
    """Of the pairs that are clearly apart those decided, by metric."""
    said = []
    for metric in METRICS:
        large = [pair for pair in found if pair.metric == metric and pair.clear]
        said.append(f"{sum(pair.decided for pair in large)} of {len(large)}")
    return " | ".join(said)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row a run, and what was decided wrongly; status 1 where anything was."""
    parser = argparse.ArgumentParser(prog="python -m harness.studies.decisions", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("--same", action="append", default=[], metavar="A=B", help="two names of one program")
    options = parser.parse_args(argv)
    found: list[Pair] = []
    print(f"| run | trials, s | share of the run | {' | '.join(METRICS.values())} |\n|---|---|---|---|---|")
    for folder in options.runs:
        records = store.read(folder)
        own = list(pairs(folder.name, rank(records.info, records.trials, records.processes, records.verdicts)))
        found += own
        seconds = sum(trial.duration for trial in records.trials)
        whole = (records.info.completed_at or records.info.started_at) - records.info.started_at
        whole -= sum(one.build.duration or 0.0 for one in records.info.implementations if one.build)
        share = f"{seconds / whole:.0%}" if whole > 0 else "–"
        print(f"| {folder.name} | {seconds:.0f} | {share} | {_shares(own)} |")
    errors = wrong(found, frozenset(frozenset(each.split("=", 1)) for each in options.same))
    for pair in errors:
        print(f"wrong: {pair.run}, {pair.test_type}, {METRICS[pair.metric]}: {' and '.join(pair.names)}")
    print(f"{len(errors)} wrong of {sum(pair.decided for pair in found)} decided, of {len(found)} pairs")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
