"""``python -m harness.benchmarks.method``: how often this method and TechEmpower's put servers in their true order.

The servers differ by a spin that is calibrated to 0, 5, 10 and 20 % of the CPU of a request. Each block starts all of
them afresh in random order; the two methods are then replayed over the same blocks.
"""

import argparse
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from harness.benchmarks import simulation, spinning, trials
from harness.benchmarks.command import command
from harness.benchmarks.trials import FASTER, METRICS, SLOWER, Block, Metric, Point
from harness.errors import Exit, UsageError
from harness.plan.profile import Replication
from harness.records.models import Sample
from harness.stats.duet import DuetPair

BEGIN, END = "<!-- bench-method: figures begin -->", "<!-- bench-method: figures end -->"
DIFFERENCES = (0.0, 0.05, 0.10, 0.20)
NAMES = {"throughput": "throughput", "cpu_per_request": "CPU per request"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """How long and how often."""

    blocks: int
    seconds: float  # this method's measurement in each replicate
    single_seconds: float  # TechEmpower's
    warm_up: float
    duets: int
    duet_seconds: float
    tries: int
    connections: int
    seed: int
    write: Path | None


@dataclass(frozen=True, kw_only=True)
class Pools:
    """Everything measured, by difference."""

    blocks: dict[float, list[Block]]
    duets: dict[float, list[DuetPair]]
    rounds: float  # of spinning that cost as much as a request
    wall_seconds: float


def main(argv: Sequence[str]) -> int:
    """Measure, replay, print a Markdown report; with --write also put it between the marks of a page."""
    options = parse(argv)
    rule = Replication(minimum=5, maximum=15, looks=(5, 7, 10, 15), half_width=0.025)
    if options.blocks < rule.minimum:
        raise UsageError(f"--blocks {options.blocks}: the method needs at least {rule.minimum}")
    pools = collect(options, Console(stderr=True))
    text = report(options, rule, pools)
    Console(soft_wrap=True, markup=False, highlight=False).print(text)
    if options.write:
        write(options.write, text)
    return Exit.OK


def parse(argv: Sequence[str]) -> Options:
    """The flags."""
    p = argparse.ArgumentParser(prog="python -m harness.benchmarks.method", description=__doc__)
    p.add_argument("--blocks", type=int, default=20, help="blocks of fresh servers (default 20)")
    p.add_argument("--seconds", type=float, default=5.0, help="measured a replicate by this method (default 5)")
    p.add_argument("--single", type=float, default=15.0, help="TechEmpower's window (default 15)")
    p.add_argument("--warm-up", type=float, default=5.0, help="before each replicate (default 5)")
    p.add_argument("--duets", type=int, default=12, help="pairs a difference, two a start (default 12)")
    p.add_argument("--duet-seconds", type=float, default=2.0, help="of one pair (default 2)")
    p.add_argument("--tries", type=int, default=300, help="replays of this method a difference (default 300)")
    p.add_argument("--connections", type=int, default=64)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--write", type=Path, metavar="FILE", help="put the report between the marks of this page")
    values = p.parse_args(list(argv))
    return Options(
        blocks=values.blocks,
        seconds=values.seconds,
        single_seconds=values.single,
        warm_up=values.warm_up,
        duets=values.duets,
        duet_seconds=values.duet_seconds,
        tries=values.tries,
        connections=values.connections,
        seed=values.seed,
        write=values.write,
    )


def collect(options: Options, console: Console) -> Pools:
    """Measure all blocks and duets. The first usable CPU serves, the others load."""
    began = time.monotonic()
    site = spinning.Site.on(options.connections, pinned=True)
    rounds = spinning.calibrate(site, min(options.seconds, 2.0), options.warm_up)
    console.print(f"calibrated: {rounds:,.0f} rounds of spinning cost as much CPU as a request")
    blocks: dict[float, list[Block]] = {difference: [] for difference in DIFFERENCES}
    shuffle = random.Random(options.seed)
    servers = [None, *DIFFERENCES]  # None: the plain server that the others are compared with
    for number in range(options.blocks):
        measured: dict[float | None, tuple[Point, Point]] = {}
        for server in shuffle.sample(servers, len(servers)):
            measured[server] = _replicate(site, options, round(rounds * (server or 0.0)))
        plain, plain_single = measured[None]
        for difference in DIFFERENCES:
            other, single = measured[difference]
            blocks[difference].append(
                Block(faster=plain, slower=other, faster_single=plain_single, slower_single=single)
            )
        console.print(f"block {number + 1} of {options.blocks} after {time.monotonic() - began:.0f} s")
    duets = {difference: _duets(site, options, round(rounds * difference)) for difference in DIFFERENCES}
    return Pools(blocks=blocks, duets=duets, rounds=rounds, wall_seconds=time.monotonic() - began)


def _replicate(site: spinning.Site, options: Options, rounds: int) -> tuple[Point, Point]:
    """A fresh server, warmed, then measured for this method and for TechEmpower's."""
    with spinning.spinner(site, rounds) as server:
        spinning.measure(site, [server], options.warm_up)
        short = spinning.measure(site, [server], options.seconds)[0]
        single = spinning.measure(site, [server], options.single_seconds)[0]
    return _point(short), _point(single)


def _point(figures: spinning.Figures) -> Point:
    return Point(throughput=figures.throughput, cpu_per_request=figures.cpu_per_request)


def _duets(site: spinning.Site, options: Options, rounds: int) -> list[DuetPair]:
    """Fresh servers for every two pairs, which swap slots."""
    pairs = []
    for start in range(options.duets // 2):
        with spinning.spinner(site, 0) as plain, spinning.spinner(site, rounds) as other:
            spinning.measure(site, [plain, other], options.warm_up)
            for names in ((FASTER, SLOWER), (SLOWER, FASTER)):
                servers = [plain if name == FASTER else other for name in names]
                figures = spinning.measure(site, servers, options.duet_seconds)
                first, second = (_duettist(n, start, each) for n, each in zip(names, figures, strict=True))
                pairs.append(DuetPair(first=first, second=second))
    return pairs


def _duettist(name: str, start: int, figures: spinning.Figures) -> Sample:
    return simulation.sample(name, start, figures.throughput).model_copy(
        update={"cpu_per_request": figures.cpu_per_request, "started_at": figures.started_at}
    )


def report(options: Options, rule: Replication, pools: Pools) -> str:
    """The figures as Markdown. ``right`` of the difference 0 means nothing: there, every order is wrong."""
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())}, {os.cpu_count()} CPUs, load average "
        f"{os.getloadavg()[0]:.1f} at the end, {pools.wall_seconds / 60:.0f} min in all: {options.blocks} blocks "
        f"of five fresh Node servers, {options.connections} connections, warm-up {options.warm_up:g} s.",
        f"One window: {options.single_seconds:g} s each"
        + ("" if options.single_seconds == 15 else " (TechEmpower's is 15 s; shortened here)")
        + f", all {options.blocks}² pairs of windows. This method: {options.seconds:g} s a replicate, looks at "
        f"{', '.join(map(str, rule.looks))} replicates, {options.tries} replays over the blocks in random order. "
        f"Duets: {options.duets} pairs of {options.duet_seconds:g} s, two a fresh start of both. "
        "Seconds are of load on both servers, without warm-up.",
        "",
        "| difference set | seen in CPU per request | method | right | wrong | tie | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    generator = np.random.default_rng(options.seed)
    for difference in DIFFERENCES:
        pool = pools.blocks[difference]
        seen = trials.true_ratio(pool, "cpu_per_request")
        title = f"{difference:.0%} | {_ratio(seen.value, seen.low, seen.high)}"
        for metric in METRICS:
            found = trials.single_windows(pool, metric)
            seconds = 2 * options.single_seconds
            lines.append(_line(title, f"one window, {NAMES[metric]}", found, seconds, difference))
        for metric, found in trials.sequential(pool, rule, options.tries, generator).items():
            seconds = 2 * options.seconds * found.replicates
            lines.append(_line(title, f"this method, {NAMES[metric]}", found, seconds, difference))
        lines += [_duet_line(title, pools.duets[difference], metric, options, rule) for metric in METRICS]
    return "\n".join(lines)


def _line(title: str, method: str, found: trials.Outcome, seconds: float, difference: float) -> str:
    right, wrong = (found.right, found.wrong) if difference else (0.0, found.right + found.wrong)
    shown = f"{right:.0%}" if difference else "–"
    return f"| {title} | {method} | {shown} | {wrong:.0%} | {found.tied:.0%} | {seconds:.0f} |"


def _duet_line(title: str, pairs: Sequence[DuetPair], metric: Metric, options: Options, rule: Replication) -> str:
    """Duets were played once, so there is a verdict and no share."""
    found = trials.duet_order(pairs, metric)
    seconds = options.duet_seconds * len(pairs)
    if found is None:
        verdict = "too few starts"
    elif found.p_value > 1 - rule.confidence:
        verdict = "tie"
    else:
        verdict = "plain one first" if found.effect > 0 else "spinning one first"
    size = (
        ""
        if found is None
        else f", {np.expm1(found.effect):+.1%} ± {found.bound(rule.confidence) - abs(found.effect):.1%}"
    )
    return f"| {title} | duets, {NAMES[metric]}: {verdict}{size} | | | | {seconds:.0f} |"


def _ratio(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.3f}×" + (f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None else "")


def write(page: Path, text: str) -> None:
    """Replace what stands between the marks of the page; raises UsageError when it has none."""
    old = page.read_text(encoding="utf-8")
    if BEGIN not in old or END not in old:
        raise UsageError(f"{page} has no lines {BEGIN} and {END} to write between")
    head, rest = old.split(BEGIN, 1)
    page.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


if __name__ == "__main__":
    command(main)
