"""``python -m harness.benchmarks.windows URL=PID… [--seconds 0.3,0.6,1.2,2.4] [--laps 14]``: what windows vary by.

Closed loops of wrk on servers that run already, of several lengths, all in seeded random order: by how much CPU per
request varies between windows of one length, and how alike windows are that lie so many seconds apart, whatever
server they are of. The answer says how long a window should be, and what should stand beside what in a round.
"""

import argparse
import math
import random
import signal
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import psutil

from harness.benchmarks.command import command
from harness.errors import Exit, UsageError

APART = (0.0, 1.5, 3.0, 6.0, 12.0, 24.0, 48.0)  # edges, seconds
WARM_UP_SECONDS = 8.0
SEED = 7
CONNECTIONS = 64
LONGEST_SECONDS = 60  # that wrk is asked for; it is interrupted at the end of its window


class Window(NamedTuple):
    """One load: when it began (seconds), of what, how long it was asked to be, and log CPU seconds per request."""

    at: float
    server: str
    seconds: float
    log: float


@dataclass(frozen=True, kw_only=True)
class Alike:
    """Pairs of windows that began so many seconds apart, and the correlation of their residuals."""

    low: float
    high: float
    pairs: int
    correlation: float


def residuals(windows: Sequence[Window]) -> list[tuple[Window, float]]:
    """Each window beside its log less the mean of its server's at that length; in order of time."""
    cells: defaultdict[tuple[str, float], list[float]] = defaultdict(list)
    for one in windows:
        cells[one.server, one.seconds].append(one.log)
    means = {cell: statistics.fmean(logs) for cell, logs in cells.items()}
    return [(one, one.log - means[one.server, one.seconds]) for one in sorted(windows)]


def spreads(windows: Sequence[Window]) -> Mapping[float, float]:
    """Seconds of a window -> standard deviation of its log, pooled over servers.

    Raises UsageError where there is only one window of each.
    """
    squares: defaultdict[float, float] = defaultdict(float)
    counts: defaultdict[float, int] = defaultdict(int)
    cells = {(one.server, one.seconds) for one in windows}
    for one, rest in residuals(windows):
        squares[one.seconds] += rest**2
        counts[one.seconds] += 1
    freedom = {seconds: counts[seconds] - sum(length == seconds for _, length in cells) for seconds in counts}
    if min(freedom.values(), default=0) < 1:
        raise UsageError("a single lap does not show what windows vary by: give --laps 2 or more")
    return {seconds: (squares[seconds] / freedom[seconds]) ** 0.5 for seconds in sorted(squares)}


def alike(windows: Sequence[Window]) -> Iterator[Alike]:
    """By how far apart windows began."""
    rests = residuals(windows)
    for low, high in pairwise(APART):
        pairs = [(a, b) for (one, a), (other, b) in combinations(rests, 2) if low <= other.at - one.at < high]
        if len(pairs) > 2 and len({a for a, _ in pairs}) > 1 and len({b for _, b in pairs}) > 1:
            correlation = statistics.correlation(*zip(*pairs, strict=True))
            yield Alike(low=low, high=high, pairs=len(pairs), correlation=correlation)


def _cpu_seconds(pid: int) -> float:
    """Of a process and its children, from the scheduler, in nanoseconds' resolution."""
    process = psutil.Process(pid)
    total = 0
    for each in (process, *process.children(recursive=True)):
        for thread in Path(f"/proc/{each.pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def _load(url: str, pid: int, seconds: float) -> float:
    """CPU seconds per request of a closed loop; raises UsageError where nothing was answered."""
    before = _cpu_seconds(pid)
    wrk = subprocess.Popen(
        ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{LONGEST_SECONDS}", url],
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(seconds)
    wrk.send_signal(signal.SIGINT)
    said, _ = wrk.communicate(timeout=30)
    answered = next((int(line.split()[0]) for line in said.splitlines() if "requests in" in line), 0)
    if not answered:
        raise UsageError(f"{url} answered nothing: is process {pid} up, and does the URL belong to it?")
    return (_cpu_seconds(pid) - before) / answered


def measure(servers: Mapping[str, int], lengths: Sequence[float], laps: int) -> Iterator[Window]:
    """Every server at every length once a lap, after some seconds of warm-up each."""
    for url, pid in servers.items():
        _load(url, pid, WARM_UP_SECONDS)
    dice, began = random.Random(SEED), time.monotonic()
    for _ in range(laps):
        cells = [(url, seconds) for url in servers for seconds in lengths]
        for url, seconds in dice.sample(cells, len(cells)):
            at = time.monotonic() - began
            yield Window(at, url, seconds, math.log(_load(url, servers[url], seconds)))


def report(windows: Sequence[Window]) -> Iterator[str]:
    """Two tables in Markdown."""
    yield "| seconds of a window | standard deviation of log CPU per request |"
    yield "|---|---|"
    yield from (f"| {seconds:g} | {spread:.1%} |" for seconds, spread in spreads(windows).items())
    yield ""
    yield "| began so many seconds apart | pairs | correlation |"
    yield "|---|---|---|"
    yield from (f"| {one.low:g} to {one.high:g} | {one.pairs} | {one.correlation:.2f} |" for one in alike(windows))


def _server(text: str) -> tuple[str, int]:
    url, _, pid = text.rpartition("=")
    if not url or not pid.isdigit():
        raise UsageError(f"{text}: expected URL=PID, as in http://127.0.0.1:8080/json=1234")
    return url, int(pid)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    p = argparse.ArgumentParser(description="What windows of a closed loop vary by, by their length and distance.")
    p.add_argument("servers", nargs="+", metavar="URL=PID", help="a route and the process that answers it")
    p.add_argument("--seconds", default="0.3,0.6,1.2,2.4", help="lengths of windows")
    p.add_argument("--laps", type=int, default=14)
    options = p.parse_args(argv)
    lengths = [float(word) for word in options.seconds.split(",")]
    print("\n".join(report(list(measure(dict(map(_server, options.servers)), lengths, options.laps)))))
    return Exit.OK


if __name__ == "__main__":
    command(main)
