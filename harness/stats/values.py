"""From trials to the figures of a cell: which trials count, what each quantity reads of one, and what to flag."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median

from harness.plan.orders import CREATE
from harness.records.models import Gate, Load, Outcome, ProcessRecord, RunInfo, Scenario, Trial
from harness.stats.fit import Place

PROVISIONAL_BELOW = 5  # processes: with fewer, intervals cover their nominal share but are wide
WARM = 1.10  # of CPU per request: a process's figure against that of the later half of its trials
PERCENTILES = ("50", "90", "99")  # of a row; all that there are stand with the trials
BEYOND = 5  # requests that must be slower than a percentile for it to be shown

Key = tuple[str, str, Load]  # implementation, test type, load


@dataclass(frozen=True)
class Metric:
    """One quantity that can be ranked, of a trial or (``of_process``) of a process as a whole; None where unknown."""

    higher: bool  # is better
    read: Callable[[Trial], float | None] = lambda _: None
    of_process: Callable[[ProcessRecord], float | None] | None = None


def create_times(trial: Trial) -> Mapping[float, int]:
    """Of a scenario: how many "create order" took how many seconds from their due time; empty where unknown."""
    counts: Counter[float] = Counter()
    for one in trial.arrivals.operations if trial.arrivals else ():
        if one.operation == CREATE and one.latency:
            counts.update(dict(one.latency.histogram))
    return counts


def percentile(trial: Trial, point: str) -> float | None:
    """Seconds of the trial's latency; of a scenario those of "create order". None where too few were slower."""
    if isinstance(trial.load, Scenario):
        counts = create_times(trial)
        total, passed = sum(counts.values()), 0
        for seconds, count in sorted(counts.items()) if shown(point, total) else ():
            passed += count
            if passed >= total * float(point) / 100:
                return seconds
        return None
    found = trial.latency.percentiles.get(point) if trial.latency else None
    return found if found and shown(point, trial.requests) else None


def shown(point: str, requests: int) -> bool:
    """Whether enough requests are slower than a percentile ("99.9") for it to be one."""
    return round(requests * (1 - float(point) / 100), 6) >= BEYOND


def _mean(trial: Trial) -> float | None:
    if isinstance(trial.load, Scenario):
        counts = create_times(trial)
        return sum(seconds * count for seconds, count in counts.items()) / sum(counts.values()) if counts else None
    return trial.latency.mean if trial.latency else None


def _per_memory(trial: Trial) -> float | None:
    return trial.throughput / (trial.server.rss_peak / 1e6) if trial.server.rss_peak else None


METRICS: Mapping[str, Metric] = {
    "throughput": Metric(True, lambda trial: trial.throughput),
    "cpu-per-request": Metric(False, lambda trial: trial.cpu_per_request),  # seconds, as all times
    "response-time": Metric(False, _mean),
    "response-time-p50": Metric(False, lambda trial: percentile(trial, "50")),
    "response-time-p99": Metric(False, lambda trial: percentile(trial, "99")),
    "memory": Metric(False, lambda trial: trial.server.rss_peak),  # bytes
    "throughput-per-memory": Metric(True, _per_memory),  # of a megabyte
    "threads": Metric(False, lambda trial: trial.server.threads_peak),
    "startup-time": Metric(False, of_process=lambda process: process.startup_time),
}
THROUGHPUT, CPU = METRICS["throughput"], METRICS["cpu-per-request"]


@dataclass(frozen=True)
class Cell:
    """The trials of one implementation x test type x load that stand for it."""

    trials: Sequence[Trial]

    @cached_property
    def kept(self) -> Sequence[Trial]:
        """Those that passed their gates and had a good answer: without one there is no logarithm."""
        return [trial for trial in self.trials if trial.throughput > 0 and trial.rankable]

    @cached_property
    def processes(self) -> tuple[int, ...]:
        """Numbers of those that gave a figure."""
        return tuple(sorted({trial.process for trial in self.kept}))

    @cached_property
    def objections(self) -> Sequence[Gate]:
        """The gates that any of its trials did not pass."""
        return [gate for trial in self.trials for gate in trial.gates if gate.outcome is not Outcome.PASS]

    @cached_property
    def warm(self) -> bool:
        """Whether what its processes had of warming up left is too little to see in their figures.

        The figure of all trials is near that of their later half, on average over the processes. One with a single
        trial is believed to be warm unless its warm-up saw CPU per request still fall.
        """
        costs: defaultdict[int, list[float]] = defaultdict(list)
        for trial in sorted(self.kept, key=lambda trial: trial.round):
            if trial.cpu_per_request:
                costs[trial.process].append(math.log(trial.cpu_per_request))
        if any(trial.steady is False and len(costs[trial.process]) < 2 for trial in self.kept):
            return False
        excess = [fmean(own) - fmean(own[len(own) // 2 :]) for own in costs.values() if len(own) > 1]
        return not excess or not fmean(excess) > math.log(WARM)

    @property
    def flags(self) -> tuple[str, ...]:
        """What to know of the figures: warm-up first, then the gates in the order seen."""
        words = [] if self.warm else ["not warmed up"]
        words += [gate.word for trial in self.kept for gate in trial.gates if gate.word]
        words += ["provisional"] if 0 < len(self.processes) < PROVISIONAL_BELOW else []
        return tuple(dict.fromkeys(words))

    @property
    def why_empty(self) -> str:
        """Why no trial counts: the failed gates, the most frequent first."""
        failed = Counter(gate.word or gate.name for gate in self.objections if gate.outcome is Outcome.FAIL)
        return ", ".join(sorted(failed, key=lambda word: (-failed[word], word))) or "no valid response"

    def values(self, metric: Metric) -> dict[Place, float]:
        """By process and round."""
        read = ((trial.process, trial.round, metric.read(trial)) for trial in self.kept)
        return {(process, number): value for process, number, value in read if value}

    def by_process(self, metric: Metric) -> dict[int, float]:
        """Geometric means over the rounds of each process."""
        logs: defaultdict[int, list[float]] = defaultdict(list)
        for (process, _), value in sorted(self.values(metric).items()):
            logs[process].append(math.log(value))
        return {process: math.exp(math.fsum(each) / len(each)) for process, each in logs.items()}

    def median(self, metric: Metric) -> float | None:
        """Over processes."""
        found = self.by_process(metric)
        return median(found.values()) if found else None


def collect(trials: Iterable[Trial]) -> dict[Key, Cell]:
    """All cells; what a witness saw and loads at other rates stand for none."""
    groups: defaultdict[Key, list[Trial]] = defaultdict(list)
    loads: dict[tuple[object, ...], Load] = {}  # a record's own hash and comparison would be a third of the time
    for trial in trials:
        if trial.purpose == "measure":
            plain = tuple(trial.load.__dict__.values())
            groups[trial.implementation, trial.test_type, loads.setdefault(plain, trial.load)].append(trial)
    return {key: Cell(members) for key, members in groups.items()}


def by_start(processes: Iterable[ProcessRecord], metric: Metric) -> dict[str, dict[Place, float]]:
    """What each process of an implementation shows as a whole; of those that were not interrupted."""
    found: defaultdict[str, dict[Place, float]] = defaultdict(dict)
    for record in processes:
        value = metric.of_process(record) if metric.of_process and record.status != "interrupted" else None
        if value:
            found[record.implementation][record.process, 0] = value
    return found


def by_type(cells: Mapping[Key, Cell]) -> dict[str, dict[str, dict[Load, Cell]]]:
    """Test type -> implementation -> load."""
    found: dict[str, dict[str, dict[Load, Cell]]] = defaultdict(lambda: defaultdict(dict))
    for (name, kind, load), cell in cells.items():
        found[kind][name][load] = cell
    return found


def deployments_of(info: RunInfo) -> dict[int, int]:
    """Which deployment each process of a merged run was measured on; empty for a run of one."""
    if len(info.sets) < 2:
        return {}
    return {process: index for index, one in enumerate(info.sets) for process in one.processes}


def best_load(cells: Mapping[Load, Cell]) -> Load | None:
    """The load with the highest median throughput, decided once over all processes: else it would be a best of N."""
    known = {load: cell.median(THROUGHPUT) for load, cell in cells.items() if cell.kept}
    return max(known, key=lambda load: (known[load] or 0.0, -load.connections)) if known else None


def headline_load(cells: Mapping[str, Mapping[Load, Cell]]) -> Load | None:
    """The load of a test type that a reader sees first, of cells by implementation; None: each one's best.

    Where a test sweeps the query count, the highest count; else the load that was visited most often, where that
    is one; of factors of arrivals that were, the highest at which most have figures.
    """
    loads: dict[Load, list[Cell]] = defaultdict(list)
    for own in cells.values():
        for load, cell in own.items():
            loads[load].append(cell)
    if not loads:
        return None
    counts = {load: sum(len(cell.trials) for cell in own) for load, own in loads.items()}
    often = [load for load, count in counts.items() if 2 * count >= max(counts.values())]
    if factors := {load: load.factor for load in often if isinstance(load, Scenario)}:
        return max(factors, key=lambda load: (sum(bool(cell.kept) for cell in loads[load]), factors[load]))
    if any(load.queries is not None for load in loads):
        return max(loads, key=lambda load: load.queries or 0)
    return often[0] if len(often) == 1 else None
