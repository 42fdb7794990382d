"""Latency at a fixed rate is what the server's own record says, also where the server stands still.

The truth of a load: every request has an intended send time, known from the rate, and the server writes down when it
answered; with both in order, their differences are the latencies from the intended send time. The generator's word is
not used for it. A machine that is too busy is told by the kernel (run-queue wait, steal), not by the generator either:
it adds what no server's record holds. A load that agrees is the proof, since a generator that is wrong is wrong each
time. One that does not on a quiet machine is a failure; where no load had a quiet machine, nothing can be said.
"""

import json
import os
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli.check import NOT_JUDGED
from harness.experiment.generators.own import Times, Total, totals
from harness.host import crates
from harness.tests.experiment.generator_servers import tool

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing"),
]

RATE = 500
MS = 1_000_000
FLOOR_MS = 0.3  # delivery on loopback and waking up: what is between the server's write and the generator's read
# Of the load's time in which the generator was ready, but not running, or a CPU was another guest's: where that is more
# than the share of answers beyond p99, it can move p99.
QUIET_SHARE = 0.01
ATTEMPTS = 4


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Latencies in ms, ascending, by the server's record."""

    times: Sequence[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    def percentile(self, point: float) -> float:
        return self.times[min(len(self.times) - 1, int(len(self.times) * point / 100))]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A server's delays, and for how long it is tried."""

    server: tuple[str, ...]
    seconds: int
    mean_ms: float
    median_ms: float


CASES = {
    "stall": Case(server=("--stall-every-ms", "5000", "--stall-ms", "1000"), seconds=20, mean_ms=100, median_ms=0.2),
    "fixed": Case(server=("--delay-us", "10000"), seconds=10, mean_ms=10, median_ms=10),
    "bimodal": Case(
        server=("--delay-us", "1000", "--slow-every", "50", "--slow-us", "100000"),
        seconds=10,
        mean_ms=2.98,
        median_ms=1,
    ),
}


def take(case: Case, log: Path) -> tuple[Total, int, Truth]:
    """One load against one server, the most requests that waited for a connection, and the truth of it."""
    with tool(crates.reference_server(), *case.server, "--log", str(log)) as (port, _):
        words = ["--start-at-once", "--connections", "64", "--rate", str(RATE), "--arrivals", "uniform"]
        url = f"http://127.0.0.1:{port}/"
        command = [str(crates.loadgen()), *words, "--duration", str(case.seconds), url]
        output = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout
    (total,) = totals(output, url)
    last = json.loads(output.splitlines()[-1])
    record = json.loads(log.read_text())
    intended = [last["start_ns"] + i * 1_000_000_000 / RATE for i in range(RATE * case.seconds)]
    assert len(record["answered_ns"]) == len(intended) == total.sent == total.received
    if "--slow-every" in case.server:  # answers overtake each other: each by its own request, which come in order
        delays = [(100 if (i + 1) % 50 == 0 else 1) * MS for i in range(len(intended))]
        finished = [came + delay for came, delay in zip(record["came_ns"], delays, strict=True)]
    else:
        finished = sorted(record["answered_ns"])
    times = sorted((end - begin) / MS for begin, end in zip(intended, finished, strict=True))
    return total, last["backlog_peak"], Truth(times=times)


def assert_true(measured: Times, truth: Truth) -> None:
    """Mean within 10 %, p90 and p99 within 3 %, each with the machine's own floor."""
    for name, value, true, share in (
        ("mean", measured.mean_ns / MS, truth.mean, 0.10),
        ("p90", measured.percentiles_ns["90"] / MS, truth.percentile(90), 0.03),
        ("p99", measured.percentiles_ns["99"] / MS, truth.percentile(99), 0.03),
    ):
        assert abs(value - true) <= max(share * true, FLOOR_MS), f"{name}: {value:.3f} ms measured, {true:.3f} ms true"


def assert_as_planned(truth: Truth, case: Case) -> None:
    """The server did what the case says; its upper percentiles are also those of a machine with other guests."""
    assert truth.mean == pytest.approx(case.mean_ms, rel=0.25, abs=FLOOR_MS)
    assert truth.percentile(50) == pytest.approx(case.median_ms, rel=0.03, abs=2 * FLOOR_MS)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """One load, its truth, and how much of its time the machine was busy with something else."""

    total: Total
    backlog_peak: int
    truth: Truth
    busy_share: float

    def agrees(self, case: Case) -> bool:
        """Whether it holds all that is asked of it."""
        assert self.total.latency is not None
        try:
            assert_true(self.total.latency, self.truth)
            assert_as_planned(self.truth, case)
            assert_on_time(self.total, self.truth)
        except AssertionError:
            return False
        return True


def stolen_seconds() -> float:
    """CPU seconds that other guests of this machine's host have had since it started (proc(5), /proc/stat)."""
    return int(Path("/proc/stat").read_text().split(None, 9)[8]) / os.sysconf("SC_CLK_TCK")


def assert_on_time(total: Total, truth: Truth) -> None:
    """The generator says of itself that it was not late."""
    assert total.lag is not None
    assert total.lag.percentiles_ns["99"] / MS < max(truth.percentile(99) / 10, FLOOR_MS)


@pytest.fixture(scope="module", params=CASES)
def taken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Taken]:
    """Each case with the first of some loads that agrees, or else the quietest of them, if it was quiet."""
    folder = tmp_path_factory.mktemp("truth")
    crates.loadgen()
    crates.reference_server()
    name: str = request.param
    case = CASES[name]
    loads: list[Taken] = []
    for attempt in range(ATTEMPTS):
        stolen = stolen_seconds()
        total, backlog_peak, truth = take(case, folder / f"{name}-{attempt}")
        waited = (total.run_queue_wait_seconds or 0.0) + stolen_seconds() - stolen
        load = Taken(total=total, backlog_peak=backlog_peak, truth=truth, busy_share=waited / total.seconds)
        if load.agrees(case):
            return name, load
        loads.append(load)
    quietest = min(loads, key=lambda taken: taken.busy_share)
    if quietest.busy_share > QUIET_SHARE:
        pytest.skip(f"{NOT_JUDGED}in {quietest.busy_share:.1%} of the time the CPUs were busy with something else")
    return name, quietest


def test_latency_is_what_the_server_s_record_says(taken: tuple[str, Taken]) -> None:
    _, load = taken
    assert load.total.latency is not None
    assert load.total.unfinished == load.total.unsent == 0
    assert_true(load.total.latency, load.truth)


def test_the_server_did_what_the_case_says(taken: tuple[str, Taken]) -> None:
    name, load = taken
    assert_as_planned(load.truth, CASES[name])


def test_the_generator_says_that_it_was_not_late_itself(taken: tuple[str, Taken]) -> None:
    _, load = taken
    assert_on_time(load.total, load.truth)


def test_service_time_is_not_the_truth_where_the_server_stands_still(taken: tuple[str, Taken]) -> None:
    name, load = taken
    assert load.total.service is not None
    if name != "stall":
        assert load.backlog_peak < RATE / 2
        return
    assert load.backlog_peak > RATE / 2  # requests waited for connections, which is the server's doing
    with pytest.raises(AssertionError, match="mean"):
        assert_true(load.total.service, load.truth)
