"""Any metric ranks a run: values of each process, the better end first, errors by their share."""

import pytest

from harness.benchmarks.simulation import run_info, sample
from harness.plan.profile import Replication
from harness.records.models import Closed, Errors, Latency, ReplicateRecord, RunRecords, Sample, ServerUse
from harness.stats import by_metric, further
from harness.stats.further import METRICS

LEVEL = Closed(connections=1)
NAMES = ("quick", "slow")


def one(name: str, block: int, *, attempt: int = 0, errors: int = 0) -> Sample:
    """``slow`` takes twice the time, twice the memory and ten times the threads."""
    times = 1.0 if name == "quick" else 2.0
    wobble = 1 + block / 1000
    use = ServerUse(
        cpu_seconds=1.0,
        rss_peak=50e6 * times * wobble,
        rss_mean=None,
        wait_share=None,
        throttled_seconds=None,
        threads_peak=20 if name == "quick" else 200,
    )
    latency = Latency(
        basis="closed-loop, wrk-corrected",
        mean=1e-4 * times * wobble,
        stdev=0.0,
        min=0.0,
        max=1.0,
        percentiles={"50": 1e-4 * times * wobble, "99": 3e-4 * times * wobble},
    )
    made = sample(name, block, 1000 / times * wobble, test_type="hello", level=LEVEL)
    changed = {"server": use, "latency": latency, "attempt": attempt, "errors": Errors(read=errors)}
    return made.model_copy(update=changed)


def run(*, errors: int = 0) -> RunRecords:
    rules = Replication(minimum=5, maximum=5)
    starts = [
        ReplicateRecord(implementation=n, block=b, started_at=0.0, first_answer=1.0 + (n == "slow"), status="ok")
        for n in NAMES
        for b in range(5)
    ]
    return RunRecords(
        info=run_info(NAMES, rules, reference="quick", levels={"hello": (LEVEL,)}),
        samples=[one(n, b, errors=errors if n == "slow" else 0) for n in NAMES for b in range(5)],
        replicates=starts,
    )


@pytest.mark.parametrize(
    ("name", "best", "ratio"),
    [
        ("throughput", "quick", 0.5),
        ("response-time", "quick", 2.0),
        ("response-time-p50", "quick", 2.0),
        ("response-time-p99", "quick", 2.0),
        ("memory", "quick", 2.0),
        ("throughput-per-memory", "quick", 0.25),
        ("threads", "quick", 10.0),
        ("first-answer", "quick", 2.0),
    ],
)
def test_each_metric_has_its_own_order_and_ratio(name: str, best: str, ratio: float) -> None:
    (table,) = by_metric.rank_by(run(), name).tables
    assert [row.implementation for row in table.rows] == [best, "slow"]
    last = table.rows[1].standing
    assert last is not None
    assert last.to_best is not None
    assert last.to_best.value == pytest.approx(ratio)
    assert last.rank.label == "2"
    assert last.estimate.replicates == 5


def test_a_repeated_sample_counts_once_a_process() -> None:
    twice = [one("quick", 0), one("quick", 0, attempt=1), one("quick", 1)]
    assert list(further.of_cell(METRICS["memory"], twice, ()).processes) == [0, 1]


def test_a_process_measured_in_turns_is_the_geometric_mean_of_its_windows() -> None:
    turns = [one("quick", 0).model_copy(update={"round": n, "throughput": t}) for n, t in ((0, 100.0), (1, 400.0))]
    found = further.of_cell(METRICS["throughput"], turns, ())
    assert found.processes[0] == pytest.approx(200.0)
    assert found.windows == {(0, 0): 100.0, (0, 1): 400.0}


def test_what_was_not_recorded_has_no_row_in_the_order_and_a_reason() -> None:
    samples = [s.model_copy(update={"latency": None}) if s.implementation == "slow" else s for s in run().samples]
    found = RunRecords(info=run().info, samples=samples)
    (table,) = by_metric.rank_by(found, "response-time").tables
    assert table.rows[1].reason == "no response time, mean of a valid sample"


def test_errors_are_ranked_by_share_and_tied_where_their_intervals_meet() -> None:
    (table,) = by_metric.rank_by(run(errors=50), "errors").tables
    assert [(row.implementation, row.errors, row.rank.label) for row in table.errors] == [
        ("quick", 0, "1"),
        ("slow", 250, "2"),
    ]
    (tied,) = by_metric.rank_by(run(), "errors").tables
    assert {row.rank.label for row in tied.errors} == {"1–2"}
    assert tied.errors[0].interval.low == 0.0
    assert 0 < tied.errors[0].interval.high < 1e-3
