"""Latency at a fixed rate is what the server's own record says, also where the server stands still.

The truth of a load: every request has an intended send time, known from the rate, and the server writes down when it
answered; with both in order, their differences are the latencies from the intended send time. The generator's word is
not used for it. A machine that is too busy is told by the kernel (run-queue wait), not by the generator either.
"""

import json
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.measure.loadgen import build
from harness.measure.loadgen.own import Distribution, Total, read
from harness.tests.measure.loadgen.servers import tool

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing"),
]

RATE = 500
MS = 1_000_000
FLOOR_MS = 0.3  # delivery on loopback and waking up: what is between the server's write and the generator's read
# Shares of the load's time in which the generator was ready, but not running, by the kernel's count. The server's
# record holds what a late send costs, so that most of it does no harm; the delays as planned need a quieter machine.
BUSY_SHARE = 0.30
QUIET_SHARE = 0.05
ATTEMPTS = 3


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
    p90_ms: float
    p99_ms: float


CASES = {
    "stall": Case(
        server=("--stall-every-ms", "5000", "--stall-ms", "1000"), seconds=20, mean_ms=100, p90_ms=500, p99_ms=950
    ),
    "fixed": Case(server=("--delay-us", "10000"), seconds=20, mean_ms=10, p90_ms=10, p99_ms=10),
    "bimodal": Case(
        server=("--delay-us", "1000", "--slow-every", "50", "--slow-us", "100000"),
        seconds=20,
        mean_ms=2.98,
        p90_ms=1,
        p99_ms=100,
    ),
}


def take(case: Case, log: Path) -> tuple[Total, Truth]:
    """One load against one server, and the truth of it."""
    with tool(build.reference_server(), *case.server, "--log", str(log)) as (port, _):
        words = ["--start-at-once", "--connections", "64", "--rate", str(RATE), "--arrivals", "uniform"]
        url = f"http://127.0.0.1:{port}/"
        command = [str(build.loadgen()), *words, "--duration", str(case.seconds), url]
        output = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout
    total = read(output, url).total
    record = json.loads(log.read_text())
    intended = [total.start_ns + i * 1_000_000_000 / RATE for i in range(RATE * case.seconds)]
    assert len(record["answered_ns"]) == len(intended) == total.sent == total.received
    if "--slow-every" in case.server:  # answers overtake each other: each by its own request, which come in order
        delays = [(100 if (i + 1) % 50 == 0 else 1) * MS for i in range(len(intended))]
        finished = [came + delay for came, delay in zip(record["came_ns"], delays, strict=True)]
    else:
        finished = sorted(record["answered_ns"])
    times = sorted((end - begin) / MS for begin, end in zip(intended, finished, strict=True))
    return total, Truth(times=times)


def assert_true(measured: Distribution, truth: Truth) -> None:
    """Mean within 10 %, p90 and p99 within 3 %, each with the machine's own floor."""
    for name, value, true, share in (
        ("mean", measured.mean_ns / MS, truth.mean, 0.10),
        ("p90", measured.percentiles_ns["90"] / MS, truth.percentile(90), 0.03),
        ("p99", measured.percentiles_ns["99"] / MS, truth.percentile(99), 0.03),
    ):
        assert abs(value - true) <= max(share * true, FLOOR_MS), f"{name}: {value:.3f} ms measured, {true:.3f} ms true"


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Total, Truth]]:
    """All cases at the same time, anew while the machine was too busy, at most three times."""
    folder = tmp_path_factory.mktemp("truth")
    build.loadgen()
    build.reference_server()
    results: dict[str, tuple[Total, Truth]] = {}
    for attempt in range(ATTEMPTS):
        left = [name for name in CASES if name not in results]
        with ThreadPoolExecutor(len(CASES)) as pool:
            runs = {name: pool.submit(take, CASES[name], folder / f"{name}-{attempt}") for name in left}
        for name, run in runs.items():
            total, truth = run.result()
            waited = total.run_queue_wait_seconds
            if waited is None or waited / total.seconds <= BUSY_SHARE or attempt == ATTEMPTS - 1:
                results[name] = (total, truth)
        if len(results) == len(CASES):
            break
    return results


def result(taken: dict[str, tuple[Total, Truth]], name: str, share: float = BUSY_SHARE) -> tuple[Total, Truth]:
    total, truth = taken[name]
    if (total.run_queue_wait_seconds or 0) / total.seconds > share:
        pytest.skip(f"the kernel let the generator wait {total.run_queue_wait_seconds:.2f} s for a CPU")
    return total, truth


@pytest.mark.parametrize("name", CASES)
def test_latency_is_what_the_server_s_record_says(taken: dict[str, tuple[Total, Truth]], name: str) -> None:
    total, truth = result(taken, name)
    assert total.latency is not None
    assert total.unfinished == total.unsent == 0
    assert_true(total.latency, truth)


@pytest.mark.parametrize("name", CASES)
def test_the_server_did_what_the_case_says(taken: dict[str, tuple[Total, Truth]], name: str) -> None:
    _, truth = result(taken, name, QUIET_SHARE)
    case = CASES[name]
    assert truth.mean == pytest.approx(case.mean_ms, rel=0.10, abs=FLOOR_MS)
    assert truth.percentile(90) == pytest.approx(case.p90_ms, rel=0.03, abs=FLOOR_MS)
    assert truth.percentile(99) == pytest.approx(case.p99_ms, rel=0.03, abs=FLOOR_MS)


def test_service_time_of_the_same_load_is_not_the_truth(taken: dict[str, tuple[Total, Truth]]) -> None:
    total, truth = result(taken, "stall")
    assert total.service is not None
    with pytest.raises(AssertionError, match="mean"):
        assert_true(total.service, truth)


def test_the_generator_says_that_it_was_not_late_itself(taken: dict[str, tuple[Total, Truth]]) -> None:
    total, truth = result(taken, "stall", QUIET_SHARE)
    assert total.lag is not None
    assert total.lag.percentiles_ns["99"] / MS < truth.percentile(99) / 10
    assert total.backlog_peak > RATE / 2  # requests waited for connections, which is the server's doing
