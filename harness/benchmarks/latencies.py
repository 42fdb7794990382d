"""``python -m harness.benchmarks.latencies [RUN]``: what wrk says of latency beside what is true, in Markdown.

Of any run with audited loads: wrk's figures, which its correction alters, beside the service times of the same closed
loop by the project's own generator. Of ``--profile latency`` also: at which share of its closed-loop throughput each
implementation's percentile passes the goal, and whether the order at a common rate is the order by throughput.
"""

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from harness.benchmarks.command import command
from harness.paths import RESULTS
from harness.records import store
from harness.records.models import Latency, Load, Sample
from harness.stats.closed_loop import SERVICE, WRK, latency_of
from harness.stats.model import Estimate, GoalRow, LatencyTable, Ranking, RatePoint
from harness.stats.whole import rank_whole

LOST = {"errors", "rate not achieved", "unfinished requests"}  # words of a rate that the server did not hold
FIGURES: dict[str, Callable[[Latency], float | None]] = {
    "mean": lambda latency: latency.mean,
    **{f"p{key}": lambda latency, key=key: latency.percentiles.get(key) for key in ("50", "90", "99")},  # type: ignore[misc]
}


def side_by_side(samples: Sequence[Sample]) -> Iterator[str]:
    """Lines of a table: the same closed loop by both generators; medians over samples that have both."""
    cells: dict[tuple[str, Load, str], list[tuple[Latency, Latency]]] = defaultdict(list)
    for sample in samples:
        wrk, service = latency_of(sample, WRK), latency_of(sample, SERVICE)
        if wrk and service and sample.duet_partner is None:
            cells[sample.test_type, sample.level, sample.implementation].append((wrk, service))
    if not cells:
        yield "No sample has both: audited loads need cargo."
        return
    names = [f"{name}: {who}" for name in FIGURES for who in ("wrk", "true", "×")]
    yield _line(["cell", "samples", *names])
    yield _line(["---"] * (2 + len(names)))
    for (kind, level, implementation), pairs in sorted(cells.items(), key=lambda item: (item[0][0], item[0][2])):
        figures: list[str] = []
        for read in FIGURES.values():
            known = [(a, b) for wrk, own in pairs if (a := read(wrk)) and (b := read(own))]
            if not known:
                figures += ["–"] * 3
                continue
            ratio = median(a / b for a, b in known)
            figures += [_ms(median(a for a, _ in known)), _ms(median(b for _, b in known)), f"{ratio:.2f}"]
        yield _line([f"{implementation} {kind} {level.label}", str(len(pairs)), *figures])


def passing(table: LatencyTable) -> Iterator[str]:
    """A line an implementation: between which shares of its closed-loop throughput its percentile passes the goal."""
    key = f"{table.goal.percentile:g}"
    for row in table.rows:
        shares = sorted((point for point in row.points if point.share is not None), key=lambda point: point.share or 0)
        held = 0.0
        beyond: RatePoint | None = None
        for point in shares:
            figure = point.percentiles.get(key)
            if figure is None and not LOST.intersection(point.words):
                continue  # the generator was late, or the load too short: it says nothing of the server
            if figure is None or figure.median > table.goal.seconds:
                beyond = point
                break
            held = point.share or 0.0
        yield f"- {row.implementation}: {_passes(held, beyond, key)}{_of_capacity(row)}"


def _passes(held: float, beyond: RatePoint | None, key: str) -> str:
    if beyond is None:
        return f"p{key} is within the goal up to {held:.0%} of the closed loop, the highest share tried"
    figure = beyond.percentiles.get(key)
    how = f"{figure.median * 1e3:,.1f} ms" if figure else f"not held in every process ({', '.join(beyond.words)})"
    return f"within the goal at {held:.0%}, at {beyond.share:.0%} {how}" if held else f"at {beyond.share:.0%} {how}"


def _of_capacity(row: GoalRow) -> str:
    if not row.capacity or not row.closed_loop:
        return f"; no capacity at the goal: {row.reason}"
    share = row.capacity.estimate.median / row.closed_loop
    return (
        f"; its capacity at the goal is {row.capacity.estimate.median:,.0f} requests/s, {share:.0%} of its closed loop"
    )


def orders(table: LatencyTable) -> Iterator[str]:
    """A line a common rate: whether who is sooner there is who has more throughput, pair by pair."""
    key = f"{table.goal.percentile:g}"
    rates = sorted({point.rate for row in table.rows for point in row.points if point.purpose == "common"})
    if not rates:
        yield "- no load at a common rate"
    for rate in rates:
        known: list[tuple[str, Estimate, float]] = []
        for row in table.rows:
            for point in row.points:
                figure = point.percentiles.get(key)
                if point.purpose == "common" and point.rate == rate and figure and row.closed_loop:
                    known.append((row.implementation, figure, row.closed_loop))
        soonest = [name for name, _, _ in sorted(known, key=lambda one: one[1].median)]
        most = [name for name, _, _ in sorted(known, key=lambda one: -one[2])]
        pairs = list(itertools.combinations(known, 2))
        alike = sum((a[1].median < b[1].median) == (a[2] > b[2]) for a, b in pairs)
        decided = [(a, b) for a, b in pairs if _apart(a[1], b[1])]
        sure = sum((a[1].median < b[1].median) == (a[2] > b[2]) for a, b in decided)
        figures = ", ".join(
            f"{name} {_ms(figure.median)}" for name, figure, _ in sorted(known, key=lambda o: o[1].median)
        )
        yield (
            f"- {rate:,.0f} requests/s: p{key} in ms: {figures or 'shown of none'}. "
            f"{'The same order as' if soonest == most else 'Not the order'} by throughput ({', '.join(most)}): "
            f"{alike} of {len(pairs)} pairs are alike; of the {len(decided)} whose intervals are apart, {sure}"
        )


def _apart(one: Estimate, other: Estimate) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low


def findings(samples: Sequence[Sample], ranking: Ranking) -> Iterator[str]:
    """The whole document, a line at a time."""
    yield "## The same closed loop: wrk, altered by its correction, beside the true service time (ms)\n"
    yield from side_by_side(samples)
    for kind, table in ranking.latency.items():
        yield f"\n## {kind}: at which load p{table.goal.percentile:g} passes {table.goal.seconds * 1e3:g} ms\n"
        yield from passing(table)
        yield f"\n## {kind}: the order at a common rate, and the order by throughput\n"
        yield from orders(table)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f}"


def main(arguments: Sequence[str]) -> int:
    """Print them."""
    parser = argparse.ArgumentParser(prog="python -m harness.benchmarks.latencies", description=__doc__)
    parser.add_argument("run", nargs="?", default="latest", help="name or folder of a run; default: the latest")
    parser.add_argument("--results", default=str(RESULTS), help="folder of runs")
    options = parser.parse_args(arguments)
    folder = store.find(Path(options.results), options.run)
    records = store.read(folder)
    ranking, _ = rank_whole(folder, records.info, records.samples, records.replicates, records.verdicts)
    for line in findings(records.samples, ranking):
        sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    command(main)
