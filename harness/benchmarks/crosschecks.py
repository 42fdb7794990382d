"""``python -m harness.benchmarks.crosschecks``: our generator, h2load and Hyperfoil against a server's own record.

500 requests/s against the servers of the generator's truth test: one stands still 1 s in every 5, one answers after
10 ms, one needs 100 ms for each fiftieth request and 1 ms for the others. The truth is the server's record of when it
answered, against the times at which requests were due: evenly spaced at the rate that the tool kept by the same record
(it is printed), from the latest start that no request's coming contradicts. No tool's word is used for it. What a busy
machine adds to a request's way there is in it, to its way back it is not; ``--realtime`` keeps others from both.

Hyperfoil 0.25.2 runs embedded (``harness/benchmarks/hyperfoil``, by Maven); h2load comes with ``nghttp2-client``.
What is missing is named and left out.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.command import command
from harness.benchmarks.generators import GENERATOR_PRIORITY, SERVER_PRIORITY, Place, Places, reference
from harness.errors import BuildError, LoadError, TfbError
from harness.host import crates, process
from harness.measure.loadgen.own import read

RATE = 500
SECONDS = 19  # three standstills, and not the fourth's beginning, which h2load would cut off
CONNECTIONS = 64
HYPERFOIL = Path(__file__).parent / "hyperfoil"
BUILD_SECONDS = 300.0
SERVERS = {
    "stall": ("--stall-every-ms", "5000", "--stall-ms", "1000"),
    "fixed": ("--delay-us", "10000"),
    "bimodal": ("--delay-us", "1000", "--slow-every", "50", "--slow-us", "100000"),
}
POINTS = ("mean", "p50", "p90", "p99")


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a tool says of its load; times in ms."""

    requests: int
    figures: dict[str, float]


def summary(times: Sequence[float]) -> dict[str, float]:
    """Mean and percentiles of ascending times."""
    at = {f"p{point}": times[min(len(times) - 1, int(len(times) * point / 100))] for point in (50, 90, 99)}
    return {"mean": statistics.fmean(times), **at}


def kept_rate(came_ns: Sequence[int]) -> float:
    """Requests per second from the first to the last, neither of which came in a standstill."""
    return (len(came_ns) - 1) * 1e9 / (max(came_ns) - min(came_ns))


def start(came_ns: Sequence[int], rate: float) -> float:
    """When the load began, in the server's nanoseconds: no request comes before it is due."""
    return min(came - index * 1e9 / rate for index, came in enumerate(sorted(came_ns)))


def truth(answered_ns: Sequence[int], came_ns: Sequence[int], rate: float, requests: int) -> dict[str, float]:
    """By the server's record: the i-th answer against the i-th due time, of as many as the tool counted; ms."""
    first = start(came_ns, rate)
    ordered = sorted(answered_ns)[:requests]
    return summary(sorted((end - first) / 1e6 - index * 1e3 / rate for index, end in enumerate(ordered)))


def overtaking_truth(came_ns: Sequence[int], delays_ms: Sequence[float], rate: float) -> dict[str, float]:
    """Where answers overtake each other: each by its own request and the delay planned for it; ms."""
    first = start(came_ns, rate)
    pairs = zip(sorted(came_ns), delays_ms, strict=True)
    return summary(sorted((came - first) / 1e6 + delay - i * 1e3 / rate for i, (came, delay) in enumerate(pairs)))


def ours(port: int, place: Place) -> Said:
    """The project's generator, open loop, evenly spaced."""
    words = ["--start-at-once", "--connections", str(CONNECTIONS), "--rate", str(RATE), "--arrivals", "uniform"]
    url = f"http://127.0.0.1:{port}/"
    run = process.run(
        [*place.words(), str(crates.loadgen()), *words, "--duration", str(SECONDS), url], seconds=SECONDS + 30
    )
    total = read(run.stdout, url).total
    assert total.latency  # noqa: S101 - an open loop always has it
    points = {f"p{point}": total.latency.percentiles_ns[point] / 1e6 for point in ("50", "90", "99")}
    return Said(requests=total.received, figures={"mean": total.latency.mean_ns / 1e6, **points})


def h2load(port: int, place: Place) -> Said:
    """One client that never waits: what is due goes out behind what is unanswered, on one connection."""
    with tempfile.TemporaryDirectory(prefix="tfb-h2load-") as folder:
        log = Path(folder) / "requests.tsv"
        words = [*place.words(), "h2load", "--h1", "-c", "1", "-m", "1000", "--rps", str(RATE), "-D", str(SECONDS)]
        process.run([*words, "--log-file", str(log), f"http://127.0.0.1:{port}/"], seconds=SECONDS + 30)
        times = sorted(int(re.split(r"\s+", line)[2]) / 1e3 for line in log.read_text().splitlines())
    return Said(requests=len(times), figures=summary(times))


def hyperfoil(port: int, place: Place) -> Said:
    """Embedded, at a constant rate without variance; warmed on a server of its own. Raises LoadError."""
    with reference(place) as warm_up:
        words = [str(port), str(RATE), str(SECONDS), str(CONNECTIONS), str(warm_up)]
        run = process.run(
            [*place.words(), "java", "-cp", _class_path(), "tfb.Crosscheck", *words], seconds=SECONDS + 120
        )
    lines = [line for line in run.stdout.splitlines() if line.startswith('{"requests"')]
    if not lines:
        raise LoadError(f"Hyperfoil printed no result: {run.stdout.strip()[-500:]}")
    said = json.loads(lines[-1])
    return Said(requests=said["responses"], figures={point: said[point] for point in POINTS})


def _class_path() -> str:
    """Built once, below the state folder."""
    built = crates.state_folder() / "hyperfoil"
    if not (built / "complete").is_file():
        shutil.copytree(HYPERFOIL, built, dirs_exist_ok=True)
        goals = ["compile", "dependency:copy-dependencies", "-DoutputDirectory=target/lib"]
        built_by = process.run(["mvn", "-q", "-B", *goals], seconds=BUILD_SECONDS, cwd=built)
        if built_by.status != 0:
            raise BuildError(f"{HYPERFOIL}: mvn failed: {built_by.stdout.strip()[-800:]}")
        (built / "complete").touch()
    return f"{built}/target/classes:{built}/target/lib/*"


TOOLS = {"ours": ours, "h2load": h2load, "hyperfoil": hyperfoil}
NEEDS = {"ours": "cargo", "h2load": "h2load", "hyperfoil": "mvn"}


def check(tool: str, case: str, places: Places) -> dict[str, object]:
    """One tool against one server: what it says, and what is true."""
    if tool == "hyperfoil":
        _class_path()
    with tempfile.TemporaryDirectory(prefix="tfb-crosscheck-") as folder:
        log = Path(folder) / "record.json"
        with reference(places.server, *SERVERS[case], "--log", str(log)) as port:
            said = TOOLS[tool](port, places.generator)
        record = json.loads(log.read_text(encoding="utf-8"))
    came, answered = record["came_ns"], record["answered_ns"]
    rate = kept_rate(came)
    if case == "bimodal" and tool != "h2load":  # whose single connection keeps the order
        delays = [100.0 if (index + 1) % 50 == 0 else 1.0 for index in range(len(came))]
        true = overtaking_truth(came, delays, rate)
    else:
        true = truth(answered, came, rate, said.requests)
    return {
        "server": case,
        "tool": tool,
        "rate": round(rate, 2),
        "counted": {"tool": said.requests, "server": len(answered)},
        "says": {name: round(said.figures[name], 2) for name in POINTS},
        "true": {name: round(true[name], 2) for name in POINTS},
    }


def main(arguments: Sequence[str]) -> int:
    """A JSON line for each tool and server."""
    parser = argparse.ArgumentParser(prog="python -m harness.benchmarks.crosschecks", description=__doc__)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS))
    parser.add_argument("--realtime", action="store_true", help="real-time priority for server and tool (as root)")
    options = parser.parse_args(arguments)
    cpus = sorted(os.sched_getaffinity(0))
    server, tools = (SERVER_PRIORITY, GENERATOR_PRIORITY) if options.realtime else (None, None)
    several = len(cpus) > 1
    places = Places(
        server=Place(cpu=cpus[0] if several else None, priority=server),
        generator=Place(cpu=cpus[-1] if several else None, priority=tools),
    )
    for tool in options.tools:
        if shutil.which(NEEDS[tool]) is None:
            sys.stderr.write(f"{tool} is left out: {NEEDS[tool]} is not on PATH\n")
            continue
        for case in options.servers:
            try:
                print(
                    json.dumps({**check(tool, case, places), "load_average": round(os.getloadavg()[0], 1)}), flush=True
                )
            except TfbError as error:
                sys.stderr.write(f"{tool} on {case}: {error}\n")
    return 0


if __name__ == "__main__":
    command(main)
