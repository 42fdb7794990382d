"""``python -m harness.benchmarks.generators``: our generator against wrk, in turns on one server, and how it paces.

Each turn runs both, in alternating order, closed loop on 64 connections and pipelined by 16. The generator has a CPU
of its own where there are two. Medians over turns; CPU per request is the steadier figure on a shared machine, and
``--realtime`` (as root) keeps what else runs there from both: short bursts only, since everything else stands still.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.host import process
from harness.measure.loadgen import Load, build
from harness.measure.loadgen.own import Own, Total, read
from harness.measure.loadgen.wrk import Wrk
from harness.paths import TOOLSET

CONNECTIONS = 64
ACCEPT = "text/plain,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"
STALL = ("--stall-every-ms", "5000", "--stall-ms", "1000")
STALL_RATE = 500
SERVER_PRIORITY = 20
GENERATOR_PRIORITY = 10


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a program runs: its CPU, and its real-time priority where that was asked."""

    cpu: int | None
    priority: int | None

    def words(self) -> list[str]:
        """What comes before its command."""
        pin = [] if self.cpu is None else ["taskset", "-c", str(self.cpu)]
        return pin if self.priority is None else [*pin, "chrt", "-r", str(self.priority)]


@dataclass(frozen=True, kw_only=True)
class Places:
    """Of both."""

    server: Place
    generator: Place


@contextmanager
def reference(place: Place, *options: str) -> Iterator[int]:
    """A reference server; its port."""
    server = subprocess.Popen(
        [*place.words(), str(build.reference_server()), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert server.stdout  # noqa: S101 - a pipe was asked for
        yield int(json.loads(server.stdout.readline())["port"])
    finally:
        server.communicate()


def run(command: Sequence[str], place: Place, seconds: float, cwd: Path | None = None) -> str:
    """Output of a generator on its CPU."""
    return process.run([*place.words(), *command], seconds=seconds + 30, cwd=cwd).stdout


def turns(count: int, seconds: float, depth: int, places: Places) -> dict[str, float]:
    """Medians of both generators' CPU per request (µs) and throughput (requests/s)."""
    figures: dict[str, list[tuple[float, float]]] = {"wrk": [], "loadgen": []}
    with reference(places.server) as port:
        url = f"http://127.0.0.1:{port}/plaintext"
        load = Load(
            url=url,
            host="tfb-server",
            accept=ACCEPT,
            seconds=seconds,
            connections=CONNECTIONS,
            threads=1,
            pipeline=depth,
        )
        for turn in range(count):
            for name in ("wrk", "loadgen") if turn % 2 else ("loadgen", "wrk"):
                if name == "wrk":
                    output = run(["wrk", *Wrk().arguments(load)], places.generator, seconds, TOOLSET / "wrk")
                    result = Wrk().result(load, output)
                else:
                    own = Own(seed=turn)
                    output = run([str(build.loadgen()), *own.arguments(load)], places.generator, seconds)
                    result = own.result(load, output)
                cpu = result.cpu_seconds / result.requests * 1e6
                figures[name].append((cpu, result.requests / result.duration))
                print(
                    f"  depth {depth:2} turn {turn} {name:8} {cpu:6.3f} µs CPU/request {figures[name][-1][1]:10.0f}/s"
                )
    pairs = list(zip(figures["wrk"], figures["loadgen"], strict=True))
    return {
        "depth": depth,
        "turns": count,
        "wrk_cpu_us": statistics.median(cpu for cpu, _ in figures["wrk"]),
        "loadgen_cpu_us": statistics.median(cpu for cpu, _ in figures["loadgen"]),
        "requests_per_cpu_second_ratio": statistics.median(wrk[0] / own[0] for wrk, own in pairs),
        "throughput_ratio": statistics.median(own[1] / wrk[1] for wrk, own in pairs),
    }


def pacing(rate: float, spin: int, seconds: float, places: Places) -> dict[str, float]:
    """How far from their intended time requests are sent at a rate, and what that costs."""
    with reference(places.server) as port:
        total = _open(port, rate, seconds, places.generator, "uniform", "--spin", str(spin))
    assert total.lag  # noqa: S101 - an open loop always has it
    lag = {f"lag_p{point}_us": total.lag.percentiles_ns[point] / 1e3 for point in ("50", "99", "99.9")}
    waited = total.run_queue_wait_seconds or 0.0
    return {"rate": rate, "spin_us": spin, **lag, "cpu_share": total.cpu_seconds / total.seconds, "waited": waited}


def _open(port: int, rate: float, seconds: float, place: Place, arrivals: str, *extra: str) -> Total:
    load = Load(
        url=f"http://127.0.0.1:{port}/plaintext",
        host="tfb-server",
        accept=ACCEPT,
        seconds=seconds,
        connections=CONNECTIONS,
        threads=1,
    )
    own = Own(rate=rate, arrivals="uniform" if arrivals == "uniform" else "poisson", extra=extra)
    return read(run([str(build.loadgen()), *own.arguments(load)], place, seconds), load.url).total


def stall(seconds: float, places: Places) -> dict[str, dict[str, float]]:
    """Mean, p50, p90, p99 in ms at 500 requests/s against a server that stands still 1 s in 5; h2load beside ours."""
    figures = {}
    with reference(places.server, *STALL) as port:
        total = _open(port, STALL_RATE, seconds, places.generator, "uniform")
        assert total.latency  # noqa: S101 - an open loop always has it
        points = {f"p{point}": total.latency.percentiles_ns[point] / 1e6 for point in ("50", "90", "99")}
        figures["loadgen"] = {"mean": total.latency.mean_ns / 1e6, **points}
    with reference(places.server, *STALL) as port:
        log = build.state_folder() / f"h2load-{os.getpid()}.tsv"
        command = ["h2load", "--h1", "-c", "4", "-m", "1000", "--rps", str(STALL_RATE // 4), "-D", str(int(seconds))]
        run([*command, "--log-file", str(log), f"http://127.0.0.1:{port}/plaintext"], places.generator, seconds)
        if log.exists():
            times = sorted(int(re.split(r"\s+", line)[2]) / 1e3 for line in log.read_text().splitlines())
            log.unlink()
            at = {f"p{point}": times[int(len(times) * point / 100)] for point in (50, 90, 99)}
            figures["h2load -c 4 -m 1000"] = {"mean": statistics.fmean(times), **at}
    return figures


def main() -> None:
    """Run what is asked and print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="runs of each generator and depth")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--parts", default="capacity,pacing,stall", help="which of them")
    parser.add_argument("--realtime", action="store_true", help="real-time priority for server and generator")
    options = parser.parse_args()
    available = sorted(os.sched_getaffinity(0))
    cpus = (available[0], available[-1]) if len(available) > 1 else (None, None)
    priorities = (SERVER_PRIORITY, GENERATOR_PRIORITY) if options.realtime else (None, None)
    places = Places(
        server=Place(cpu=cpus[0], priority=priorities[0]), generator=Place(cpu=cpus[1], priority=priorities[1])
    )
    build.loadgen()
    build.reference_server()
    began = time.monotonic()
    if "capacity" in options.parts:
        for depth in (1, 16):
            print(json.dumps({"capacity": turns(options.turns, options.seconds, depth, places)}), flush=True)
    if "pacing" in options.parts:
        for spin in (0, 50, 1000):
            print(json.dumps({"pacing": pacing(10_000, spin, 5.0, places)}), flush=True)
    if "stall" in options.parts:
        print(json.dumps({"stall_ms": stall(20.0, places)}), flush=True)
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
