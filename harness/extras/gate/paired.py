"""Estimates cost ratios between base, head and base's control copy, which are measured side by side.

Each round compares head with the mean of base and the control copy. Base and the copy run the same code, so the
measured difference between them is noise, which includes the variation between processes.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.records.trial_record import Trial
from harness.stats.cell_values import MAX_WARM_UP_RATIO, METRICS
from harness.stats.moderation import shrink_towards_others
from harness.stats.pairs import Differences
from harness.stats.ranking_model import Ratio
from harness.stats.variances import FloatArray

BASE, HEAD, COPY = "base", "head", "base-copy"  # names of the sides
SIDES = (BASE, HEAD, COPY)
PairedMetric = Literal["CPU per request", "response time", "median response time", "time per answer of a closed loop"]
KEYS: Mapping[PairedMetric, str] = {  # metric -> key in METRICS
    "CPU per request": "cpu-per-request",
    "response time": "response-time",
    "median response time": "response-time-p50",
}


@dataclass(frozen=True, kw_only=True)
class PairedCosts:
    """Logarithms of a request's costs, by side and process.

    Each value is a mean over the rounds in which every side has a value.
    """

    processes: tuple[int, ...]  # process numbers
    logs: FloatArray  # array of sides x processes
    rounds: FloatArray  # number of rounds per process
    round_variance: float  # variance of a process mean due to variation between rounds

    @property
    def head_over_base(self) -> FloatArray:
        """Return each process's log ratio of head to the mean of base and the control copy."""
        base, head, copy = self.logs
        return np.asarray(head - (base + copy) / 2)

    @property
    def base_over_copy(self) -> FloatArray:
        """Return each process's log ratio of base to the control copy. The true mean is zero."""
        return np.asarray(self.logs[0] - self.logs[2])

    def mean(self, values: FloatArray) -> float:
        """Return the mean over processes, weighted by the number of rounds."""
        return float((self.rounds * values).sum() / self.rounds.sum())

    def sum_of_squares(self, residuals: FloatArray) -> float:
        """Return the weighted sum of squares that, divided by n (n - 1), estimates the variance of the weighted mean.

        The mean of n values with variance v and weights w (mean 1) has the variance v (sum of w²) / n². The expected
        sum of squares about that mean is v (n - (sum of w²) / n). Unequal weights therefore increase the result.
        """
        weights, count = self.rounds / self.rounds.mean(), len(self.rounds)
        mean_square_weight = float((weights**2).mean())
        return float((weights * residuals**2).sum()) * mean_square_weight * (count - 1) / (count - mean_square_weight)


def pair_trials(trials: Sequence[Trial], metric: PairedMetric) -> PairedCosts:
    """Return the paired costs of trials. Omit warm-up rounds and rounds in which a side has no value."""
    read = METRICS[KEYS[metric]].read
    by_round: defaultdict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for trial in trials:
        if value := read(trial):
            by_round[trial.process, trial.round][trial.implementation] = math.log(value)
    by_process: defaultdict[int, list[list[float]]] = defaultdict(list)
    for (process, _), values in sorted(by_round.items()):
        if len(values) == len(SIDES):
            by_process[process].append([values[side] for side in SIDES])
    warm = [_without_cold_rounds(np.array(rounds)) for rounds in by_process.values()]
    counts = np.array([float(len(rounds)) for rounds in warm])
    return PairedCosts(
        processes=tuple(by_process),
        logs=np.array([rounds.mean(axis=0) for rounds in warm]).T if warm else np.empty((len(SIDES), 0)),
        rounds=counts,
        round_variance=_residual_variance(warm) / float(counts.mean()) if warm else 0.0,
    )


def _residual_variance(processes: Sequence[FloatArray]) -> float:
    """Return the residual variance after removing the effects of round and side, or 0 if no process has two rounds."""
    squares = 0.0
    for logs in processes:
        residuals = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
        squares += float((residuals**2).sum())
    df = (len(SIDES) - 1) * sum(len(logs) - 1 for logs in processes)
    return squares / df if df else 0.0


def _without_cold_rounds(logs: FloatArray) -> FloatArray:
    """Remove early rounds that cost more than ``MAX_WARM_UP_RATIO`` times the median of the later rounds.

    A just-in-time compiler was still active in these rounds. The rule uses means over all sides, so it favours no side.
    ``logs`` is an array of rounds x sides.
    """
    cost, half = logs.mean(axis=1), len(logs) // 2
    is_warm = cost <= np.median(cost[half:]) + math.log(MAX_WARM_UP_RATIO)
    return np.asarray(logs[is_warm | (np.arange(len(cost)) >= half)])


def weighted_total(tables: Mapping[str, PairedCosts], weights: Mapping[str, float]) -> PairedCosts:
    """Return the weighted total cost of all requests, for the processes that have a value for every request."""
    common = sorted(set[int].intersection(*(set(table.processes) for table in tables.values())))
    columns = {name: [table.processes.index(process) for process in common] for name, table in tables.items()}
    costs = {name: weights[name] * np.exp(table.logs[:, columns[name]]) for name, table in tables.items()}
    total = np.sum(list(costs.values()), axis=0)
    rounds = np.min([table.rounds[columns[name]] for name, table in tables.items()], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = {name: float(np.mean(cost / total)) for name, cost in costs.items()}
        round_variance = sum(shares[name] ** 2 * table.round_variance for name, table in tables.items())
        return PairedCosts(processes=tuple(common), logs=np.log(total), rounds=rounds, round_variance=round_variance)


def estimate_ratios(
    tables: Mapping[str, PairedCosts], confidence: float, noise_confidence: float, *, added_variance: float
) -> Mapping[str, tuple[Ratio, Ratio]]:
    """Return two ratios with intervals for each request: head to base, and base to the control copy.

    Estimate the variance from the variation of both log ratios between processes. The true ratio of base to the
    copy is 1, so a measured deviation from 1 also counts as variation. If a side's log cost has the variance v, the
    difference of two sides has the variance 2 v. The difference between a side and the mean of two sides has the
    variance 3/2 v. The estimate is at least ``round_variance``, because a few processes may agree by chance.

    Args:
        tables: Paired costs by request.
        confidence: Confidence level (0 to 1) for the ratio of head to base.
        noise_confidence: Confidence level (0 to 1) for the ratio of base to the control copy.
        added_variance: Variance that the data cannot reveal, added to the squared error of head's log ratio.
    """
    tables = {name: table for name, table in tables.items() if len(table.rounds) > 1 and np.isfinite(table.logs).all()}
    if not tables:
        return {}
    heads, noises, squares, squares_about_zero, df, counts, least_variance = np.array(
        [_sums(each) for each in tables.values()]
    ).T
    head_variance = shrink_towards_others(squares_about_zero / (df + 1), df + 1)
    noise_variance = shrink_towards_others(squares / df, df)
    scale = np.ones(len(heads))
    ratios = Differences(
        value=heads,
        squared_error=np.maximum(head_variance.variance, least_variance) / counts + added_variance,
        df=head_variance.df,
        scale=scale,
    ).ratios(confidence)
    noise_ratios = Differences(
        value=noises,
        squared_error=np.maximum(noise_variance.variance, least_variance) / 0.75 / counts,
        df=noise_variance.df,
        scale=scale,
    ).ratios(noise_confidence)
    return dict(zip(tables, zip(ratios, noise_ratios, strict=True), strict=True))


def _sums(table: PairedCosts) -> tuple[float, ...]:
    """Return a request's statistics for ``estimate_ratios``.

    The tuple starts with two mean log ratios: head to base, and base to the control copy. Two sums of squares follow:
    about the mean, and about zero. The last elements are degrees of freedom, number of processes and minimum variance.
    """
    head, noise, count = table.mean(table.head_over_base), table.mean(table.base_over_copy), len(table.rounds)
    squares = table.sum_of_squares(table.head_over_base - head) + 0.75 * table.sum_of_squares(
        table.base_over_copy - noise
    )
    about_zero = squares + 0.75 * count * noise**2
    return head, noise, squares, about_zero, 2.0 * count - 2, float(count), 1.5 * table.round_variance
