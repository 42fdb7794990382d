"""``python -m harness.benchmarks.networks``: what a bridge costs: one image on both networks, in turns.

The generator stays on the host's network and asks the bridge's container at its own address, as a run does. A ratio is
bridge over host, paired by round; CPU is the server's own and that of the whole machine, since the bridge's work is
done on whichever CPU a packet is handled.
"""

import argparse
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import psutil
from scipy import special

from harness.benchmarks.command import command
from harness.errors import Exit, StartError
from harness.host import process
from harness.runtime import Endpoint
from harness.runtime.compose import RUN_LABEL, client, docker, ids, inspect
from harness.runtime.database.embedded import free_port
from harness.runtime.metering.cgroup import CgroupMeter
from harness.runtime.readiness import startup_time

MODES = ("host", "bridge")
FIGURES = ("requests_per_second", "server_cpu_per_request", "machine_cpu_per_request")


@dataclass(frozen=True, kw_only=True)
class Up:
    """A container that answers."""

    endpoint: Endpoint
    meter: CgroupMeter


@contextmanager
def up(image: str, mode: str, network: str, run: str) -> Iterator[Up]:
    """The image on one of the networks."""
    port = free_port()
    where = ["--network", "host"] if mode == "host" else ["--network", network]
    host = "127.0.0.1" if mode == "host" else "0.0.0.0"  # noqa: S104 - in a network of its own
    words = ["run", "--detach", "--init", "--pull", "never", "--label", f"{RUN_LABEL}={run}", *where]
    done = docker(*words, "--env", f"PORT={port}", "--env", f"HOST={host}", image)
    if done.status != 0:
        raise StartError(f"{image}: {done.stdout.strip()[-300:]}")
    name = done.stdout.strip().splitlines()[-1]
    try:
        found = inspect("container", name) or {}
        address = "127.0.0.1" if mode == "host" else found["NetworkSettings"]["Networks"][network]["IPAddress"]
        endpoint = Endpoint(host=address, port=port)
        startup_time(endpoint, "/json", time.monotonic(), lambda: None)
        yield Up(endpoint=endpoint, meter=CgroupMeter(int(found["State"]["Pid"])))
    finally:
        docker("container", "rm", "--force", name)


def load(server: Up, path: str, run: str, seconds: float, connections: int) -> dict[str, float]:
    """One closed loop; the figures of it."""
    words = ["run", "--rm", "--network", "host", "--label", f"{RUN_LABEL}={run}", "tfb/wrk", "-t2", f"-c{connections}"]
    url = server.endpoint.url(path)
    words += [f"-d{seconds:.0f}", "-s", "report.lua", url, url]
    before, busy = server.meter.read(), _busy()
    done = process.run([client() or "docker", *words], seconds=seconds + 30)
    after, later = server.meter.read(), _busy()
    result = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    requests, took = float(result["requests"]), float(result["duration_us"]) / 1e6
    return {
        "requests_per_second": requests / took,
        "server_cpu_per_request": (after.cpu_seconds - before.cpu_seconds) / requests,
        "machine_cpu_per_request": (later - busy) / requests,
    }


def _busy() -> float:
    """CPU seconds that the machine has spent on anything."""
    times = psutil.cpu_times()
    return float(
        sum(times) - times.idle - times.iowait - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    )


def main(argv: Sequence[str]) -> int:
    """Both servers up together, loaded in turns; a Markdown table of the ratios."""
    p = argparse.ArgumentParser(prog="python -m harness.benchmarks.networks", description=__doc__)
    p.add_argument("--image", default="tfb/net-http")
    p.add_argument("--path", nargs="+", default=["/json"])
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--connections", type=int, default=64)
    options = p.parse_args(list(argv))
    run = f"networks-{secrets.token_hex(4)}"
    network = f"tfb-{run}"
    docker("network", "create", "--label", f"{RUN_LABEL}={run}", network)
    try:
        with up(options.image, "host", network, run) as host, up(options.image, "bridge", network, run) as bridge:
            servers = dict(zip(MODES, (host, bridge), strict=True))
            print(f"{options.image}, {options.rounds} rounds of {options.seconds:.0f} s, c{options.connections}\n")
            print("| path | figure | host | bridge | bridge ÷ host |\n|---|---|---|---|---|")
            for path in options.path:
                for mode in MODES:
                    load(servers[mode], path, run, options.seconds, options.connections)  # warm
                rounds = []
                for number in range(options.rounds):
                    order = MODES if number % 2 else MODES[::-1]
                    rounds.append({m: load(servers[m], path, run, options.seconds, options.connections) for m in order})
                for figure in FIGURES:
                    print(_row(path, figure, rounds))
    finally:
        for name in ids("ps", "--all", "--filter", f"label={RUN_LABEL}={run}") or ():
            docker("container", "rm", "--force", name)
        docker("network", "rm", network)
    return Exit.OK


def _row(path: str, figure: str, rounds: Sequence[dict[str, dict[str, float]]]) -> str:
    """Medians, and the geometric mean of the paired ratios with its 95 % interval from t."""
    host, bridge = (np.array([each[mode][figure] for each in rounds]) for mode in MODES)
    logs = np.log(bridge / host)
    half = special.stdtrit(len(logs) - 1, 0.975) * logs.std(ddof=1) / np.sqrt(len(logs))
    low, middle, high = np.exp([logs.mean() - half, logs.mean(), logs.mean() + half])
    scale, unit = (1.0, "req/s") if figure.endswith("second") else (1e6, "µs")
    return (
        f"| {path} | {figure.replace('_', ' ')} | {np.median(host) * scale:,.4g} {unit} | "
        f"{np.median(bridge) * scale:,.4g} {unit} | {middle:.2f} [{low:.2f}, {high:.2f}] |"
    )


if __name__ == "__main__":
    command(main)
