"""Compares tfb's load generator with wrk by CPU time per request.

Usage: ``python -m harness.studies.generators``. In each turn, the generators load the same server one after the other,
over 64 connections. Their order alternates between turns. The first series does not use pipelining; the second series
pipelines 16 requests. If possible, server and generator run on separate CPUs. The results are medians over turns. On a
shared machine, ratios are more stable than absolute values.
"""

import argparse
import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.experiment.generators import LoadGenerator, LoadRun
from harness.experiment.generators.registry import GENERATORS
from harness.provisioning import crates
from harness.records.loads import ClosedLoop
from harness.runtime.local import LocalRuntime

DEPTHS = (1, 16)


@contextmanager
def start_reference_server(cpu: int) -> Iterator[int]:
    """Start a minimal HTTP server on the given CPU and yield its port."""
    command = ["taskset", "-c", str(cpu), str(crates.reference_server_program())]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdout  # noqa: S101 - stdout is a pipe
        yield int(json.loads(server.stdout.readline())["port"])
    finally:
        server.communicate()


def measure(runtime: LocalRuntime, generator: LoadGenerator, load: LoadRun) -> tuple[float, float]:
    """Run a load generator. Return the CPU seconds per request, and the requests per second."""
    words = generator.arguments(load, runtime.work)
    with runtime.generator(generator.program, words, waits_for_go=generator.waits_for_go) as running:
        running.begin()
        running.wait(load.seconds + 30)
        result = generator.result(load, running.output())
    return result.cpu_seconds / result.requests, result.requests / result.duration


def run_turns(count: int, seconds: float, depth: int, cpus: Sequence[int]) -> dict[str, float]:
    """Run both generators alternately for ``count`` turns.

    Return each generator's median CPU time per request, and the median ratios between the generators.
    """
    runtime = LocalRuntime(work=Path(), other_cpus=cpus[-1:])  # a closed loop writes no files to ``work``
    generators = {name: GENERATORS[name](runtime) for name in ("wrk", "loadgen")}
    measurements: dict[str, list[tuple[float, float]]] = {name: [] for name in generators}
    with start_reference_server(cpus[0]) as port:
        for turn in range(count):
            for name in sorted(generators, reverse=turn % 2 == 0):
                load = LoadRun(
                    url=f"http://127.0.0.1:{port}/plaintext",
                    host="tfb-server",
                    accept="text/plain",
                    load=ClosedLoop(connections=64, depth=depth),
                    seconds=seconds,
                    threads=1,
                    seed=turn,
                )
                measurements[name].append(measure(runtime, generators[name], load))
    pairs = list(zip(measurements["wrk"], measurements["loadgen"], strict=True))
    return {
        "depth": depth,
        "turns": count,
        **{f"{name}_cpu_us": statistics.median(cpu for cpu, _ in each) * 1e6 for name, each in measurements.items()},
        "requests_per_cpu_second_ratio": statistics.median(wrk[0] / loadgen[0] for wrk, loadgen in pairs),
        "throughput_ratio": statistics.median(loadgen[1] / wrk[1] for wrk, loadgen in pairs),
    }


def main() -> None:
    """Print a JSON line for each pipelining depth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="runs per generator and pipelining depth")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each run in seconds")
    options = parser.parse_args()
    for depth in DEPTHS:
        cpus = sorted(os.sched_getaffinity(0))
        print(json.dumps(run_turns(options.turns, options.seconds, depth, cpus)), flush=True)


if __name__ == "__main__":
    main()
