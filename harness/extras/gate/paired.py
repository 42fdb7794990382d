"""How sure a difference of costs is of base, head and a second copy of base that stood side by side.

Head is held against base and its copy together, within rounds and process by process; what base and its copy differ by,
which is nothing, says with the scatter of processes how sure that is.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from harness.records.trial_record import Trial
from harness.stats.cell_values import MAX_WARM_UP_RATIO, METRICS
from harness.stats.ranking_model import Ratio
from harness.stats.variances import FloatArray

BASE, HEAD, COPY = "base", "head", "base-copy"  # names of the sides
SIDES = (BASE, HEAD, COPY)
ALIKE = 4.0  # degrees of freedom that the requests' common variance is worth beside a request's own (Smyth 2004)
PairedMetric = Literal["CPU per request", "response time", "median response time", "time per answer of a closed loop"]
KEYS: Mapping[PairedMetric, str] = {  # of METRICS
    "CPU per request": "cpu-per-request",
    "response time": "response-time",
    "median response time": "response-time-p50",
}


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Of each process: logs of what a request costs on each side, means of the rounds in which all sides have one."""

    logs: FloatArray  # sides x processes
    rounds: FloatArray  # of each process
    scatter: float  # variance of such a mean that the scatter of a process's rounds alone explains

    @property
    def head(self) -> FloatArray:
        """Head over base, of which there are two."""
        base, head, copy = self.logs
        return np.asarray(head - (base + copy) / 2)

    @property
    def noise(self) -> FloatArray:
        """Base over its copy: what is nothing."""
        return np.asarray(self.logs[0] - self.logs[2])

    def mean(self, values: FloatArray) -> float:
        """By the rounds that each process had."""
        return float((self.rounds * values).sum() / self.rounds.sum())

    def squares(self, values: FloatArray) -> float:
        """Their squares, by rounds, as the variance of a mean by rounds needs them: more where these are unequal.

        Of n equal variances v and weights w that are 1 in the mean, the mean's is v (sum of w squared) / n squared, and
        the squares about it are v (n - (sum of w squared) / n) in expectation.
        """
        weights, count = self.rounds / self.rounds.mean(), len(self.rounds)
        unequal = float((weights**2).mean())
        return float((weights * values**2).sum()) * unequal * (count - 1) / (count - unequal)


def paired(trials: Sequence[Trial], metric: PairedMetric) -> Paired:
    """Rounds that lack a side or were cold are left out, as are processes without a round."""
    read = METRICS[KEYS[metric]].read
    seen: defaultdict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for trial in trials:
        if value := read(trial):
            seen[trial.process, trial.round][trial.implementation] = math.log(value)
    by_process: defaultdict[int, list[list[float]]] = defaultdict(list)
    for (process, _), values in sorted(seen.items()):
        if len(values) == len(SIDES):
            by_process[process].append([values[side] for side in SIDES])
    warm = [_warm(np.array(own)) for own in by_process.values()]
    rounds = np.array([float(len(own)) for own in warm])
    return Paired(
        logs=np.array([own.mean(axis=0) for own in warm]).T if warm else np.empty((len(SIDES), 0)),
        rounds=rounds,
        scatter=_scatter(warm) / float(rounds.mean()) if warm else 0.0,
    )


def _scatter(processes: Sequence[FloatArray]) -> float:
    """Variance of a side's cost in a round, beside what the round and the side have in common; 0 with single rounds."""
    squares = 0.0
    for own in processes:
        squares += float(((own - own.mean(axis=0) - own.mean(axis=1, keepdims=True) + own.mean()) ** 2).sum())
    free = (len(SIDES) - 1) * sum(len(own) - 1 for own in processes)
    return squares / free if free else 0.0


def _warm(rounds: FloatArray) -> FloatArray:
    """Rounds x sides without those of the first half in which a request cost a tenth more than in the later half.

    A just-in-time compiler was at work. The mean over all sides decides, which favours none of them.
    """
    cost, half = rounds.mean(axis=1), len(rounds) // 2
    return np.asarray(
        rounds[(cost <= np.median(cost[half:]) + math.log(MAX_WARM_UP_RATIO)) | (np.arange(len(cost)) >= half)]
    )


def together(tables: Mapping[str, Paired], weights: Mapping[str, float]) -> Paired:
    """The cost of all requests by their weights, of as many processes as all have."""
    count = min(len(table.rounds) for table in tables.values())
    costs = {name: weights[name] * np.exp(table.logs[:, :count]) for name, table in tables.items()}
    cost = np.sum(list(costs.values()), axis=0)
    rounds = np.min([table.rounds[:count] for table in tables.values()], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = {name: float(np.mean(own / cost)) for name, own in costs.items()}
        scatter = sum(shares[name] ** 2 * table.scatter for name, table in tables.items())
        return Paired(logs=np.log(cost), rounds=rounds, scatter=scatter)


def intervals(
    tables: Mapping[str, Paired], confidence: float, floor: float, *, luck: float
) -> Mapping[str, tuple[Ratio, Ratio]]:
    """Of each request head over base, and base over its copy, which is nothing; ``luck`` is a variance of the former.

    Variances of two sources: head's scatter over processes, and base's copy, of which also the mean is known. A
    difference of two sides has the variance 2 v, one to the mean of two 3/2 v. Processes scatter at least as much as
    their rounds explain: of two or three they may be alike by chance.
    """
    tables = {name: table for name, table in tables.items() if len(table.rounds) > 1 and np.isfinite(table.logs).all()}
    apart, about_zero = {}, {}
    for name, table in tables.items():
        noise, free = table.mean(table.noise), 2.0 * len(table.rounds) - 2
        squares = table.squares(table.head - table.mean(table.head)) + 0.75 * table.squares(table.noise - noise)
        apart[name] = squares, free
        about_zero[name] = squares + 0.75 * len(table.rounds) * noise**2, free + 1
    variances, of_noise = _moderated(about_zero), _moderated(apart)

    def interval(log: float, variance: float, free: float, confidence: float) -> Ratio:
        half = float(special.stdtrit(free, 0.5 + confidence / 2)) * math.sqrt(variance)
        return Ratio(value=math.exp(log), low=math.exp(log - half), high=math.exp(log + half))

    found = {}
    for name, table in tables.items():
        (variance, free), (noise_variance, noise_free), count = variances[name], of_noise[name], len(table.rounds)
        least = 1.5 * table.scatter
        found[name] = (
            interval(table.mean(table.head), max(variance, least) / count + luck, free, confidence),
            interval(table.mean(table.noise), max(noise_variance, least) / 0.75 / count, noise_free, floor),
        )
    return found


def _moderated(squares: Mapping[str, tuple[float, float]]) -> Mapping[str, tuple[float, float]]:
    """Variances with their degrees of freedom, from sums of squares with theirs: each drawn towards that of the others.

    Processes have half of their luck in all requests, so that the others' degrees of freedom count half.
    """
    found = {}
    for name, (square, free) in squares.items():
        others = [values for other, values in squares.items() if other != name]
        known = sum(other_free for _, other_free in others)
        weight = min(ALIKE, known / 2)
        common = sum(other for other, _ in others) / known if known else 0.0
        found[name] = (weight * common + square) / (weight + free), weight + free
    return found
