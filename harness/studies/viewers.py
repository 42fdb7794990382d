"""``python -m harness.studies.viewers [VIEWERS]``: shows how quickly the dashboard answers many viewers of a live run.

The real server, in a process of its own, over an invented run that another process appends to: a trial a second,
progress four times as often, a ranking every ten seconds. Each viewer does as the page does: opens it, follows the
events, and asks for run and tables anew six seconds after a change; some look at latencies.
"""

import argparse
import asyncio
import contextlib
import re
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil

from harness.errors import StartError
from harness.host import process
from harness.plan.profile import Processes
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Latency, Load, ProcessRecord, Progress, Trial, Window
from harness.records.store import RunStore
from harness.stats.ranking import rank
from harness.studies import runs

RUN = "20260101-000000"
TYPES = tuple(name for name, kind in TEST_TYPES.items() if kind.techempower)
LOADS: dict[str, tuple[Load, ...]] = {kind: tuple(Closed(connections=c) for c in (16, 64, 256)) for kind in TYPES}
IMPLEMENTATIONS = 40
REFRESH_SECONDS = 6.0  # of the page: REFRESH_SECONDS of use-live.ts
BAR_SECONDS = 0.2


@dataclass
class Figures:
    """Seconds of every request by kind, and what came of the events."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: int = 0
    events: int = 0
    bytes: int = 0


# ---- the run ---------------------------------------------------------------------------------------------------------


def invent(folder: Path, count: int) -> None:
    """A run of so many trials, unfinished, with its ranking."""
    names = [f"s{i}" for i in range(IMPLEMENTATIONS)]
    store = RunStore(folder, started_at=0.0)
    info = runs.run_info(names, Processes(minimum=1, maximum=99), reference="s0", loads=LOADS)
    store.write_info(info.model_copy(update={"run_id": RUN, "status": "running", "started_at": time.time()}))
    made = [trial(number) for number in range(count)]
    processes = [
        ProcessRecord(implementation=name, process=number, started_at=0.0, startup_time=0.5, status="ok")
        for number in range(max(each.process for each in made) + 1)
        for name in names
    ]
    store.write_text("trials.jsonl", "".join(each.recorded() + "\n" for each in made).rstrip("\n"))
    store.write_text("processes.jsonl", "".join(each.recorded() + "\n" for each in processes).rstrip("\n"))
    (folder / "verdicts.jsonl").touch()
    store.write_text("ranking.json", rank(info, made, processes, ()).recorded())


def trial(number: int) -> Trial:
    """The trial of this number, in a run's order: processes, implementations, test types, loads."""
    rest, load = divmod(number, 3)
    rest, kind = divmod(rest, len(TYPES))
    of, which = divmod(rest, IMPLEMENTATIONS)
    throughput = 10_000 * (1 + which / 20) * (1 + 0.02 * Random(number).gauss(0, 1))
    window = Window(
        start=0.0, duration=1.0, responses=throughput, server_cpu=1.0, wait_share=0.01, rss=5e7, connections=64
    )
    latency = Latency(
        basis="closed-loop, service time", mean=0.0012, stdev=0.0004, min=0.0001, max=0.02,
        percentiles={"50": 0.001, "90": 0.002, "99": 0.004, "99.9": 0.01},
        histogram=tuple((i / 1e4, 9) for i in range(200)),
    )  # fmt: skip
    made = runs.trial(f"s{which}", throughput, of, test_type=TYPES[kind], load=LOADS[TYPES[kind]][load])
    return made.model_copy(update={"windows": (window,) * 15, "latency": latency})


def append(folder: Path, number: int, seconds: float) -> None:
    """Go on writing: a trial a second, progress every quarter of one, the ranking anew every ten."""
    store = RunStore(folder, started_at=0.0)
    ranking = (folder / "ranking.json").read_text(encoding="utf-8")
    began, tick = time.monotonic(), 0
    while time.monotonic() < began + seconds:
        if tick % 4 == 0:
            store.add_trial(trial(number + tick // 4))
        if tick % 40 == 0:
            store.write_text("ranking.json", ranking + " " * (tick // 40))
        store.write_text("progress.json", Progress(status="running", stage="measure", round=tick // 40).recorded())
        tick += 1
        time.sleep(max(0.0, began + tick / 4 - time.monotonic()))


# ---- viewers ---------------------------------------------------------------------------------------------------------


class Viewer:
    """One page in a browser: a connection for documents, one for events."""

    def __init__(self, port: int, figures: Figures, number: int) -> None:
        self._port, self._figures, self._random = port, figures, Random(number)
        self._kind = TYPES[number % len(TYPES)]
        self._latencies = number % 4 == 0
        self._changed = asyncio.Event()
        self._tags: dict[str, bytes] = {}
        self._documents_on: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def look(self, until: float) -> None:
        """Open the page, then follow it until the end."""
        loop = asyncio.get_running_loop()
        # Within so many seconds all viewers open the page.
        await asyncio.sleep(self._random.uniform(0, 10))
        await self._get("page", "/")
        await self._get("list of runs", "/api/runs")
        await self._documents()
        events = asyncio.create_task(self._events())
        while loop.time() < until:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), max(0.1, until - loop.time()))
            if loop.time() + REFRESH_SECONDS > until:
                break
            await asyncio.sleep(REFRESH_SECONDS)
            self._changed.clear()
            await self._documents()
            if self._random.random() < 0.1:
                which = self._random.randrange(IMPLEMENTATIONS)
                await self._get("one cell", f"/api/runs/{RUN}/cell?implementation=s{which}&test_type={self._kind}")
        events.cancel()
        if self._documents_on is not None:
            self._documents_on[1].close()

    async def _documents(self) -> None:
        if self._documents_on is not None:  # idle for seconds: the server may close it at any moment
            self._documents_on[1].close()
            self._documents_on = None
        await self._get("run", f"/api/runs/{RUN}")
        await self._get("tables of a test", f"/api/runs/{RUN}/tests/{self._kind}")
        if self._latencies:
            await self._get("latencies of a test", f"/api/runs/{RUN}/latency/{self._kind}")

    async def _get(self, kind: str, path: str) -> None:
        began = time.perf_counter()
        if self._documents_on is None or self._documents_on[0].at_eof():  # the server keeps an idle one for seconds
            self._documents_on = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        reader, writer = self._documents_on
        tag = b"If-None-Match: " + self._tags[path] + b"\r\n" if path in self._tags else b""
        writer.write(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n%s\r\n" % (path.encode(), tag))
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        self._figures.seconds[kind].append(time.perf_counter() - began)
        self._figures.bytes += len(head) + (int(length[1]) if length else 0)
        if found := re.search(rb"(?i)etag: (\S+)", head):
            self._tags[path] = found[1]
        self._figures.refused += head[9:12] not in (b"200", b"304")

    async def _events(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        began = time.perf_counter()
        writer.write(b"GET /api/runs/%s/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % RUN.encode())
        first = True
        try:
            while line := await reader.readline():
                if line.startswith(b"data:"):
                    self._figures.events += 1
                    if first:
                        self._figures.seconds["events, until the first"].append(time.perf_counter() - began)
                        first = False
                    if b'"ranking_changed":true' in line:
                        self._changed.set()
        finally:
            writer.close()


async def view(port: int, viewers: int, seconds: float) -> Figures:
    """All viewers at once."""
    figures = Figures()
    until = asyncio.get_running_loop().time() + seconds
    await asyncio.gather(*(Viewer(port, figures, number).look(until) for number in range(viewers)))
    return figures


# ---- the command -----------------------------------------------------------------------------------------------------


def report(figures: Figures) -> bool:
    """A line a kind of request; whether every 99th percentile is below the bar."""
    good = figures.refused == 0
    print(f"{'request':<26}{'number':>8}{'p50':>10}{'p99':>10}{'most':>10}")
    for kind, found in figures.seconds.items():
        ordered = sorted(found)
        p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
        good = good and p99 < BAR_SECONDS
        print(f"{kind:<26}{len(found):>8}" + "".join(f"{1000 * s:>7.1f} ms" for s in (p50, p99, ordered[-1])))
    print(f"{figures.events} events, {figures.bytes / 2**20:.0f} MiB of documents, {figures.refused} refused")
    return good


def await_address(log: Path) -> int:
    """The port that the server says."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text(encoding="utf-8", errors="replace")):
            return int(found[1])
        time.sleep(0.05)
    raise StartError(f"the dashboard did not start: {process.tail(log)}")


def main() -> int:
    """Invent, serve, append, view, report."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("viewers", nargs="?", type=int, default=200)
    p.add_argument("--trials", type=int, default=10_000, help="that the run has at first")
    p.add_argument("--seconds", type=float, default=60.0)
    p.add_argument("--append", type=Path, metavar="DIR", help="only write to this run")
    options = p.parse_args()
    if options.append:
        append(options.append, options.trials, options.seconds)
        return 0
    with tempfile.TemporaryDirectory(prefix="tfb-viewers-") as results:
        folder, log = Path(results) / RUN, Path(results) / "server.log"
        invent(folder, options.trials)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
        print(f"{options.viewers} viewers of a run of {options.trials} trials ({size:.0f} MiB)", flush=True)
        python = (sys.executable, "-m")
        with log.open("wb") as output:
            server = process.Child(
                [*python, "harness", "dashboard", "--port", "0", "--results", results], stdout=output
            )
        words = ["--append", folder, "--trials", options.trials, "--seconds", options.seconds + 20]
        with process.running(server):
            port = await_address(log)
            with process.running(process.Child([*python, "harness.studies.viewers", *map(str, words)])):
                time.sleep(5)
                good = report(asyncio.run(view(port, options.viewers, options.seconds)))
            family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            memory = sum(each.memory_info().rss for each in family) / 2**20
            cpu = sum(sum(each.cpu_times()[:2]) for each in family)
        print(f"the server with its children: {memory:.0f} MiB, {cpu:.1f} s of CPU")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
