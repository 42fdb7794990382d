"""Tests for the metrics of trials, and for detecting servers that are still warming up."""

import math

import numpy as np
import pytest

from harness.records.measurements import Latency
from harness.stats.cell_values import METRICS, CellTrials, fall_is_significant
from harness.tests.doubles.runs import trial

# CPU time per request in consecutive trials, in microseconds.
SETTLED, FALLING = (10.0, 10.5, 9.5, 10.0), (20.0, 14.0, 11.0, 10.0)


@pytest.mark.parametrize(
    ("processes", "steady", "warm"),
    [
        ([FALLING], False, False),
        ([SETTLED, FALLING], False, False),
        ([SETTLED], False, True),  # if the warm-up did not settle, the trials decide
        ([SETTLED[::-1], FALLING[::-1]], False, True),  # a rising cost is no sign of warming up
        ([FALLING], True, False),  # a falling cost counts even if the warm-up settled
        ([FALLING], None, False),
        ([(10.0,)], True, True),
        ([(10.0,)], None, True),
        ([(10.0,)], False, False),  # a single trial proves nothing after an unsettled warm-up
        ([(13.0, 10.0, 10.0, 10.0)], False, True),  # the mean is 7 % above that of the second half
        ([(16.0, 10.0, 10.0, 10.0)], False, False),
    ],
)
def test_falling_cost_means_not_warmed_up(processes: list[tuple[float, ...]], steady: bool | None, warm: bool) -> None:
    cell = CellTrials(
        [
            trial("jit", 1000.0, number, round_, cpu_per_request=cost * 1e-6).model_copy(
                update={"steady": steady, "started_at": 100.0 * number + round_}
            )
            for number, costs in enumerate(processes)
            for round_, cost in enumerate(costs)
        ]
    )
    assert cell.warm == warm
    assert ("not warmed up" in cell.flags) != warm


@pytest.mark.parametrize(
    ("shares", "warm"),
    [
        ([0.5, 0.3, 0.1, 0.0, 0.0, 0.01], True),  # the compiler has become idle
        ([0.0, 0.0, 0.0, 0.0, 0.05, 0.2], False),
        ([0.2], False),
        ([0.0, 0.0, None], True),
        ([0.2, 0.2, None], True),  # unknown in the last third
    ],
)
def test_a_busy_compiler_means_not_warmed_up(shares: list[float | None], warm: bool) -> None:
    trials = []
    for number, share in enumerate(shares):
        measured = trial("jit", 1000.0, 0, number, cpu_per_request=1e-5)
        seconds = None if share is None else share * measured.server.cpu_seconds
        usage = measured.server.model_copy(update={"compiler_cpu_seconds": seconds})
        trials.append(measured.model_copy(update={"server": usage}))
    assert CellTrials(trials).warm == warm
    assert ("not warmed up" in CellTrials(trials).flags) != warm


@pytest.mark.parametrize(
    ("processes", "falls"),
    [
        ([(1.10, 1.09, 1.05, 1.03, 1.01, 1.00)] * 2, True),
        ([(1.08, 1.03, 1.00), (1.09, 1.04, 1.00), (1.07, 1.03, 1.00)], True),
        ([(1.00, 1.03, 1.08), (1.00, 1.04, 1.09), (1.00, 1.03, 1.07)], False),
        ([(1.02, 1.01, 1.00), (1.02, 1.01, 1.00), (1.02, 1.01, 1.00)], False),  # significant, but small
        ([(1.30, 1.00, 1.00), (0.90, 1.00, 1.10), (1.00, 0.90, 1.00)], False),
        ([(1.50, 1.00)], False),  # no degrees of freedom
        ([(1.50,), (1.00,)], False),
    ],
)
def test_a_significant_fall_is_found(processes: list[tuple[float, ...]], falls: bool) -> None:
    assert fall_is_significant([[math.log(cost) for cost in costs] for costs in processes]) == falls


@pytest.mark.parametrize(("processes", "trials"), [(3, 3), (3, 5), (1, 9), (5, 2), (2, 12)])
def test_steady_costs_are_rarely_flagged(processes: int, trials: int) -> None:
    """With 20 % noise, costs often fall by more than ``MIN_FALL``. Only the significance test prevents false alarms."""
    dice = np.random.default_rng(5)
    alarms = [fall_is_significant(dice.normal(0, 0.2, (processes, trials)).tolist()) for _ in range(1000)]
    assert sum(alarms) / len(alarms) == pytest.approx(0.01, abs=0.0095)  # three standard errors


def test_unknown_cpu_time_hides_no_warm_up() -> None:
    falling = [trial("jit", 1000.0, 0, round_, cpu_per_request=cost * 1e-6) for round_, cost in enumerate(FALLING)]
    assert not CellTrials(
        [*falling, *(trial("jit", 1000.0, 1, round_, cpu_per_request=0.0) for round_ in range(2))]
    ).warm


def test_what_is_read_of_a_trial() -> None:
    times = Latency(
        basis="closed-loop, service time", mean=0.002, stdev=0.0, min=0.0, max=0.9,
        percentiles={"50": 0.001, "99": 0.01}, histogram=((0.001, 9),),
    )  # fmt: skip
    measured = [
        trial("a", 1000.0, 0, cpu_per_request=2e-3).model_copy(update={"latency": times, "requests": n})
        for n in (500, 499)
    ]
    assert measured[0].without_histograms().latency == times.model_copy(update={"histogram": ()})
    long, short = map(CellTrials, ([measured[0]], [measured[1]]))
    known = {"throughput": 1000.0, "cpu-per-request": 2e-3, "memory": 5e7, "throughput-per-memory": 20.0}
    known |= {"response-time": 0.002, "response-time-p50": 0.001, "response-time-p99": 0.01}
    medians = {name: (long.median(metric), short.median(metric)) for name, metric in METRICS.items()}
    assert {name for name, (value, _) in medians.items() if value is None} == {"threads", "startup-time"}
    assert {name: value for name, (value, _) in medians.items() if value} == pytest.approx(known)
    del known["response-time-p99"]  # 499 requests are too few for a p99
    assert {name: value for name, (_, value) in medians.items() if value} == pytest.approx(known)
