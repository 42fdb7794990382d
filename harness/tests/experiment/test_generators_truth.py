"""Measured latencies match the server's own record, at fixed rates and in scenarios, even if the server stalls.

At a fixed rate, the rate determines the intended send times, and the server records when it responds. The differences
are the true latencies, independent of the generator. In a scenario, the generator reports when use cases arrive.
Arrivals must not depend on the server. With coordinated omission, fewer would arrive during a stall.

A busy machine adds latency that the server cannot record. The kernel reports it as run-queue wait and steal. One load
with correct latencies is enough, because a wrong generator is always wrong. If no load has correct latencies, the test
fails if the machine was quiet during a load. Otherwise, the test is skipped.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.cli.scans import NOT_JUDGED
from harness.experiment.generators import RESPONSES_FILE, LoadRun
from harness.experiment.generators.loadgen import PLAN_FILE, Loadgen
from harness.experiment.generators.loadgen_output import Times, Total, parse_totals
from harness.extras.orders.test_type import USE_CASES
from harness.plan.scenarios import plan
from harness.provisioning import crates
from harness.records.loads import Scenario
from harness.records.measurements import Arrivals
from harness.tests.experiment.generator_servers import OK, ScriptedServer, tool

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")]

MS = 1_000_000
FLOOR_MS = 0.3  # maximum time from the server's write to the generator's read
RATE = 500
# Largest share of a load that the generator may spend waiting for a CPU. Above 1 %, late responses would change p99.
QUIET_SHARE = 0.01
ATTEMPTS = 4


def percentile(times: Sequence[float], point: float) -> float:
    """Return a percentile of the sorted ``times``."""
    return times[min(len(times) - 1, int(len(times) * point / 100))]


def assert_true(measured: Times | None, times: Sequence[float], *points: str) -> None:
    """Assert that the mean (within 10 %) and percentiles (within 3 %) match the sorted ``times``, in ms.

    Deviations up to FLOOR_MS are accepted.
    """
    assert measured is not None
    assert measured.count == len(times)
    assert measured.mean_ns / MS == pytest.approx(statistics.fmean(times), rel=0.10, abs=FLOOR_MS), "mean"
    for point in points:
        true = percentile(times, float(point))
        assert measured.percentiles_ns[point] / MS == pytest.approx(true, rel=0.03, abs=FLOOR_MS), f"p{point}"


class DelayCase(NamedTuple):
    """A server's delay options, the load's duration, and the expected mean latency."""

    server: tuple[str, ...]
    seconds: int
    mean_ms: float


CASES = {
    "stall": DelayCase(("--stall-every-ms", "5000", "--stall-ms", "1000"), 20, mean_ms=100),
    "fixed": DelayCase(("--delay-us", "10000"), 10, mean_ms=10),
    "bimodal": DelayCase(("--delay-us", "1000", "--slow-every", "50", "--slow-us", "100000"), 10, mean_ms=2.98),
}


def take(case: DelayCase, log: Path) -> tuple[Total, int, Sequence[float]]:
    """Run a load. Return its totals, the peak number of waiting requests, and the sorted true latencies in ms."""
    with tool(crates.reference_server_program(), *case.server, "--log", str(log)) as (port, _):
        words = ["--start-at-once", "--connections", "64", "--rate", str(RATE), "--arrivals", "uniform"]
        url = f"http://127.0.0.1:{port}/"
        command = [str(crates.loadgen_program()), *words, "--duration", str(case.seconds), url]
        output = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout
    (total,) = parse_totals(output, url)
    last = json.loads(output.splitlines()[-1])
    record = json.loads(log.read_text())
    intended = [last["start_ns"] + i * 1_000_000_000 / RATE for i in range(RATE * case.seconds)]
    assert len(record["answered_ns"]) == len(intended) == total.sent == total.received
    if "--slow-every" in case.server:  # responses overtake each other, but requests do not
        delays = [(100 if (i + 1) % 50 == 0 else 1) * MS for i in range(len(intended))]
        finished = [came + delay for came, delay in zip(record["came_ns"], delays, strict=True)]
    else:
        finished = sorted(record["answered_ns"])
    times = sorted((end - begin) / MS for begin, end in zip(intended, finished, strict=True))
    return total, last["backlog_peak"], times


def stolen_seconds() -> float:
    """Return the CPU seconds that the hypervisor has stolen since boot (proc(5), /proc/stat)."""
    return int(Path("/proc/stat").read_text().split(None, 9)[8]) / os.sysconf("SC_CLK_TCK")


def judge(name: str, total: Total, backlog_peak: int, truth: Sequence[float]) -> None:
    """Assert that a load's results match the true latencies."""
    assert total.lag is not None
    assert total.unfinished == total.unsent == 0
    assert_true(total.latency, truth, "90", "99")
    # The server delayed its responses as planned.
    assert statistics.fmean(truth) == pytest.approx(CASES[name].mean_ms, rel=0.25, abs=FLOOR_MS)
    # The generator reports little lag.
    assert total.lag.percentiles_ns["99"] / MS < max(percentile(truth, 99) / 10, FLOOR_MS)
    if name == "stall":  # the service time excludes the wait for a free connection
        assert backlog_peak > RATE / 2
        with pytest.raises(AssertionError, match="mean"):
            assert_true(total.service, truth)
    else:
        assert backlog_peak < RATE / 2


@pytest.mark.parametrize("name", CASES)
def test_latency_matches_the_record_of_the_server(name: str, tmp_path: Path) -> None:
    """One correct load is enough. If there is none, the quietest load decides, unless it was disturbed."""
    crates.loadgen_program()
    crates.reference_server_program()
    failed: dict[float, AssertionError] = {}  # share of the time taken by other programs -> failure
    for attempt in range(ATTEMPTS):
        stolen = stolen_seconds()
        total, backlog_peak, truth = take(CASES[name], tmp_path / str(attempt))
        waited = (total.run_queue_wait_seconds or 0.0) + stolen_seconds() - stolen
        try:
            judge(name, total, backlog_peak, truth)
        except AssertionError as error:
            failed[waited / total.seconds] = error
        else:
            return
    if (busy := min(failed)) > QUIET_SHARE:
        pytest.skip(f"{NOT_JUDGED}in {busy:.1%} of the time the CPUs were busy with something else")
    raise failed[busy]


def shopping(rate: float) -> dict[str, Any]:
    return {**plan(USE_CASES, 1)["use_cases"][0], "rate": rate}  # type: ignore[index]


class Shop(ScriptedServer):
    """An order server that handles one request at a time and can stall or fail."""

    def __init__(
        self, *, stall_at: float = 0, stall_seconds: float = 0, refuses: int = 0, closes: int = 0, silent: int = 0
    ) -> None:
        """Configure the server's faults.

        It stalls once after ``stall_at`` seconds. Of every n orders, it refuses one, closes the connection of one, or
        does not respond to one.
        """
        self.told = (stall_at, stall_seconds)
        self.refuses, self.closes, self.silent = refuses, closes, silent
        self.orders = self.first = 0
        self.created: dict[int, int] = {}  # order id -> time of the response (CLOCK_MONOTONIC, ns)
        self.stall: tuple[int, int] | None = None
        self.alone = threading.Lock()
        super().__init__()

    def respond(self, number: int, head: bytes) -> bytes | None:
        with self.alone:
            now = time.monotonic_ns()
            self.first = self.first or now
            at, seconds = self.told
            if seconds and self.stall is None and now - self.first >= at * 1e9:
                time.sleep(seconds)
                self.stall = (now, time.monotonic_ns())
            if read := re.search(rb"GET /orders/(\d+)", head):
                return None if is_nth(self.silent, int(read[1])) else OK
            self.orders += 1
            if is_nth(self.refuses, self.orders):
                return b"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\n{}"
            if is_nth(self.closes, self.orders):
                return b""
            body = b'{"id":%d}' % self.orders
            self.created[self.orders] = time.monotonic_ns()
            return b"HTTP/1.1 201 X\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def is_nth(often: int, number: int) -> bool:
    return often > 0 and number % often == 0


class Played(NamedTuple):
    """The result of a scenario."""

    total: Total
    whole: Arrivals  # tfb's record of the arrivals
    arrivals: Sequence[Mapping[str, Any]]


def play(folder: Path, use_case: Mapping[str, Any], server: ScriptedServer, *words: str) -> Played:
    """Run one use case against ``server``."""
    (folder / PLAN_FILE).write_text(json.dumps({"use_cases": [use_case]}))
    with server:
        url = server.endpoint.url("")
        command = [str(crates.loadgen_program()), "--scenario", PLAN_FILE, "--responses", RESPONSES_FILE]
        command += ["--start-at-once", "--connections", "16", *words, url]
        output = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
    load = Scenario(factor=1, connections=16)
    load_run = LoadRun(url=url, host="h", accept="*/*", load=load, seconds=1, threads=1, seed=1)
    recorded_arrivals = Loadgen().result(load_run, output).arrivals
    assert recorded_arrivals is not None  # None means that the counts are inconsistent
    arrivals = [json.loads(line) for line in (folder / RESPONSES_FILE).read_text().splitlines()]
    return Played(parse_totals(output, url)[0], recorded_arrivals, arrivals)


def test_a_stall_delays_every_arrival_due_during_it(tmp_path: Path) -> None:
    rate, seconds = 200, 8
    for attempt in range(1, ATTEMPTS + 1):
        shop = Shop(stall_at=3, stall_seconds=1)
        played = play(tmp_path, shopping(rate), shop, "--duration", str(seconds), "--seed", str(attempt))
        assert shop.stall is not None
        begin, end = shop.stall
        within = [one for one in played.arrivals if begin < one["came_ns"] < end]
        # Arrivals continue during the stall. Their number is Poisson distributed, hence the tolerance.
        assert len(within) == pytest.approx(rate, abs=5 * rate**0.5)
        create, read_order = played.total.operations
        times = sorted((shop.created[one["order"]] - one["came_ns"]) / MS for one in played.arrivals)
        late = sum(one > 500 for one in times)
        assert late >= rate / 2 - 5 * (rate / 2) ** 0.5 > 16  # more late arrivals than connections
        # Measured from the actual send time, only one request per connection would be late (coordinated omission).
        assert create.service is not None
        assert create.service.later_than(0.5) <= 16
        assert read_order.latency is not None
        assert read_order.latency.later_than(0.5) <= 16  # a read becomes due only after the previous response
        try:
            assert_true(create.latency, times, "95", "99")
        except AssertionError:
            if attempt == ATTEMPTS:
                raise
            continue
        with pytest.raises(AssertionError):
            assert_true(create.service, times, "95", "99")
        use_case_latency = played.total.use_cases[0].latency
        assert use_case_latency is not None
        assert use_case_latency.later_than(0.5) >= late
        return


def test_a_failed_step_ends_the_arrival(tmp_path: Path) -> None:
    words = ("--duration", "2", "--timeout", "0.5", "--drain-seconds", "1.5")
    shop = Shop(refuses=10, closes=7, silent=13)
    played = play(tmp_path, shopping(150), shop, *words)
    create, read_order = played.total.operations
    orders = create.due
    refused = orders // 10
    closed = sum(n % 7 == 0 and n % 10 != 0 for n in range(1, orders + 1))
    silent = sum(order % 13 == 0 for order in shop.created)
    assert (create.errors.status, create.errors.closed, create.unfinished) == (refused, closed, 0)
    assert read_order.due == create.answered == len(shop.created)
    assert read_order.errors.timeout + read_order.unfinished == silent
    assert read_order.errors.timeout == played.total.connections_hung > 0
    recorded_arrivals = played.whole
    assert recorded_arrivals.due == orders == len(played.arrivals)
    assert recorded_arrivals.failed == refused + closed + read_order.errors.timeout
    assert recorded_arrivals.unfinished == read_order.unfinished
    ended = Counter(step.get("error", step["status"]) for one in played.arrivals for step in one["steps"][-1:])
    assert ended == +Counter(
        {
            200: recorded_arrivals.done,
            503: refused,
            "closed": closed,
            "timeout": read_order.errors.timeout,
            "unfinished": read_order.unfinished,
        }
    )
    assert not any(one["order"] for one in played.arrivals if len(one["steps"]) == 1)


def test_requests_beyond_the_drain_are_unfinished(tmp_path: Path) -> None:
    played = play(tmp_path, shopping(40), Shop(silent=1), "--duration", "1", "--drain-seconds", "0.2")
    create, read_order = played.total.operations
    assert create.due > create.answered == 16  # each connection waits for one response
    assert read_order.unfinished == 16
    assert create.unfinished == create.due - 16
    assert played.whole.unfinished == create.due == len(played.arrivals)
    assert Counter(len(one["steps"]) for one in played.arrivals) == {2: 16, 0: create.due - 16}


def test_a_drain_of_the_timeout_leaves_nothing_unfinished(tmp_path: Path) -> None:
    """The server stops responding shortly before the load ends, so the last requests time out as the drain ends."""
    first: list[float] = []

    def answer(_: int) -> bytes | None:
        first.append(time.monotonic())
        time.sleep(0.005)
        return OK if time.monotonic() < first[0] + 0.97 else None

    words = ["--start-at-once", "--connections", "8", "--duration", "1", "--timeout", "0.4", "--drain-seconds", "0.4"]
    with ScriptedServer(answer) as server:
        url = server.endpoint.url("/")
        command = [str(crates.loadgen_program()), *words, url]
        output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    (total,) = parse_totals(output, url)
    assert total.connections_hung == total.sent - total.received > 0
    assert total.unfinished == 0


def test_arrivals_continue_when_responses_close_connections(tmp_path: Path) -> None:
    once = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    steps = [{"name": name, "method": "GET", "path": f"/{name}", "status": 200} for name in "abc"]
    use_case = {"name": "u", "rate": 60.0, "steps": steps}
    total = play(tmp_path, use_case, ScriptedServer(lambda _: once), "--duration", "1").total
    assert total.use_cases[0].due == total.use_cases[0].done > 30
    assert total.connections_closed_by_peer == total.received == total.due == 3 * total.use_cases[0].due
    assert total.connections_hung == total.unfinished == total.errors.errors(total.unsent).total == 0
