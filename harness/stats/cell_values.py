"""Computes the figures of a cell from the trials: valid trials, metrics and flags."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median

from harness.plan.testtypes.registry import ranked_operation
from harness.records.loads import Load, Scenario
from harness.records.outcome import Outcome
from harness.records.process_record import ProcessRecord
from harness.records.run_info import RunInfo
from harness.records.trial_record import Trial, ValidityCheck
from harness.stats.table_fit import Position

PROVISIONAL_BELOW = 5  # number of processes; with fewer, intervals are wide, although their coverage is nominal
MAX_WARM_UP_RATIO = (
    # A process counts as not warmed up if CPU per request of all trials exceeds that of their later half by this ratio.
    1.10
)
# Values outside this range (in seconds, bytes or requests per second) are invalid, and their ratios would overflow.
MIN_VALUE, MAX_VALUE = 1e-15, 1e15
PERCENTILES = ("50", "90", "99")  # percentiles of a row; trials record more percentiles
MIN_REQUESTS_BEYOND = 5  # number of requests that must be slower than a percentile to display it

CellKey = tuple[str, str, Load]  # implementation, test type, load


@dataclass(frozen=True)
class Metric:
    """A quantity that can be ranked. It is read from a trial, or from a process if ``of_process`` is set.

    Unknown values are None.
    """

    higher_is_better: bool  # whether a higher value is better
    read: Callable[[Trial], float | None] = lambda _: None
    of_process: Callable[[ProcessRecord], float | None] | None = None


def ranked_operation_times(trial: Trial) -> Mapping[float, int]:
    """Return the response times of a scenario's ranked operation: seconds since the due time -> count."""
    ranked = ranked_operation(trial.test_type)
    counts: Counter[float] = Counter()
    for one in trial.arrivals.operations if trial.arrivals else ():
        if one.operation == ranked and one.latency:
            counts.update(dict(one.latency.histogram))
    return counts


def latency_percentile(trial: Trial, point: str) -> float | None:
    """Return a latency percentile in seconds, or None if too few requests were slower.

    In a scenario, it is the percentile of the ranked operation. ``point`` is a name such as "99".
    """
    if isinstance(trial.load, Scenario):
        counts = ranked_operation_times(trial)
        total, passed = sum(counts.values()), 0
        for seconds, count in sorted(counts.items()) if has_enough_requests(point, total) else ():
            passed += count
            if passed >= total * float(point) / 100:
                return seconds
        return None
    found = trial.latency.percentiles.get(point) if trial.latency else None
    return found if found and has_enough_requests(point, trial.requests) else None


def has_enough_requests(point: str, requests: int) -> bool:
    """Return whether enough requests are slower than a percentile (for example "99.9") to display it."""
    return round(requests * (1 - float(point) / 100), 6) >= MIN_REQUESTS_BEYOND


def _mean_response_time(trial: Trial) -> float | None:
    if isinstance(trial.load, Scenario):
        counts = ranked_operation_times(trial)
        return sum(seconds * count for seconds, count in counts.items()) / sum(counts.values()) if counts else None
    return trial.latency.mean if trial.latency else None


def _throughput_per_megabyte(trial: Trial) -> float | None:
    return trial.throughput / (trial.server.rss_peak / 1e6) if trial.server.rss_peak else None


METRICS: Mapping[str, Metric] = {
    "throughput": Metric(True, lambda trial: trial.throughput),
    "cpu-per-request": Metric(False, lambda trial: trial.cpu_per_request),  # seconds, like all times
    "response-time": Metric(False, _mean_response_time),
    "response-time-p50": Metric(False, lambda trial: latency_percentile(trial, "50")),
    "response-time-p99": Metric(False, lambda trial: latency_percentile(trial, "99")),
    "memory": Metric(False, lambda trial: trial.server.rss_peak),  # bytes
    "throughput-per-memory": Metric(True, _throughput_per_megabyte),  # requests per second and megabyte
    "threads": Metric(False, lambda trial: trial.server.threads_peak),
    "startup-time": Metric(False, of_process=lambda process: process.startup_time),
}
THROUGHPUT, CPU_PER_REQUEST = METRICS["throughput"], METRICS["cpu-per-request"]


@dataclass(frozen=True)
class CellTrials:
    """The trials of a cell: an implementation, a test type and a load."""

    trials: Sequence[Trial]

    @cached_property
    def kept(self) -> Sequence[Trial]:
        """Trials that passed their validity checks and have a throughput. Zero has no logarithm."""
        return [trial for trial in self.trials if trial.throughput > 0 and trial.rankable]

    @cached_property
    def processes(self) -> tuple[int, ...]:
        """Numbers of the processes that have a valid trial."""
        return tuple(sorted({trial.process for trial in self.kept}))

    @cached_property
    def objections(self) -> Sequence[ValidityCheck]:
        """Results of validity checks that did not pass."""
        return [check for trial in self.trials for check in trial.validity if check.outcome is not Outcome.PASS]

    @cached_property
    def warm(self) -> bool:
        """True if the remaining warm-up of the processes is too small to affect the figures.

        For this, the average CPU per request of all trials must be close to that of their later half. A process with a
        single trial counts as warm unless CPU per request was still falling at the end of the warm-up.
        """
        costs: defaultdict[int, list[float]] = defaultdict(list)
        for trial in sorted(self.kept, key=lambda trial: trial.round):
            if trial.cpu_per_request and trial.cpu_per_request > MIN_VALUE:
                costs[trial.process].append(math.log(trial.cpu_per_request))
        if any(trial.steady is False and len(costs[trial.process]) < 2 for trial in self.kept):
            return False
        excess = [fmean(own) - fmean(own[len(own) // 2 :]) for own in costs.values() if len(own) > 1]
        return not excess or not fmean(excess) > math.log(MAX_WARM_UP_RATIO)

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the figures: warm-up first, followed by validity checks in the order of trials."""
        words = [] if self.warm else ["not warmed up"]
        words += [check.flag for trial in self.kept for check in trial.validity if check.flag]
        words += ["provisional"] if 0 < len(self.processes) < PROVISIONAL_BELOW else []
        return tuple(dict.fromkeys(words))

    @property
    def why_empty(self) -> str:
        """Why no trial is valid: the failed validity checks, most frequent first."""
        failed = Counter(check.flag or check.name for check in self.objections if check.outcome is Outcome.FAIL)
        return ", ".join(sorted(failed, key=lambda word: (-failed[word], word))) or "no valid response"

    def values(self, metric: Metric) -> dict[Position, float]:
        """Return the metric of each valid trial by process and round. Values outside the valid range are omitted."""
        read = ((trial.process, trial.round, metric.read(trial)) for trial in self.kept)
        return {(process, number): value for process, number, value in read if value and MIN_VALUE < value < MAX_VALUE}

    def by_process(self, metric: Metric) -> dict[int, float]:
        """Return the geometric mean over the rounds of each process."""
        logs: defaultdict[int, list[float]] = defaultdict(list)
        for (process, _), value in sorted(self.values(metric).items()):
            logs[process].append(math.log(value))
        return {process: math.exp(math.fsum(each) / len(each)) for process, each in logs.items()}

    def median(self, metric: Metric) -> float | None:
        """Return the median over processes, or None if there is no figure."""
        by_process = self.by_process(metric)
        return median(by_process.values()) if by_process else None


def collect_cells(trials: Iterable[Trial]) -> dict[CellKey, CellTrials]:
    """Group trials into cells. Only trials with the purpose "measure" belong to a cell."""
    groups: defaultdict[CellKey, list[Trial]] = defaultdict(list)
    loads: dict[tuple[object, ...], Load] = {}  # avoids hashing records, which would take a third of the time
    for trial in trials:
        if trial.purpose == "measure":
            plain = tuple(trial.load.__dict__.values())
            groups[trial.implementation, trial.test_type, loads.setdefault(plain, trial.load)].append(trial)
    return {key: CellTrials(members) for key, members in groups.items()}


def collect_process_values(processes: Iterable[ProcessRecord], metric: Metric) -> dict[str, dict[Position, float]]:
    """Return a metric of whole processes, by implementation and process. Interrupted processes are omitted."""
    values: defaultdict[str, dict[Position, float]] = defaultdict(dict)
    for record in processes:
        value = metric.of_process(record) if metric.of_process and record.status != "interrupted" else None
        if value:
            values[record.implementation][record.process, 0] = value
    return values


def group_by_test_type(cells: Mapping[CellKey, CellTrials]) -> dict[str, dict[str, dict[Load, CellTrials]]]:
    """Return the cells as test type -> implementation -> load -> cell."""
    nested: dict[str, dict[str, dict[Load, CellTrials]]] = defaultdict(lambda: defaultdict(dict))
    for (name, kind, load), cell in cells.items():
        nested[kind][name][load] = cell
    return nested


def deployment_by_process(info: RunInfo) -> dict[int, int]:
    """Return the deployment of each process in a merged run. Empty for a run of a single deployment."""
    if len(info.sets) < 2:
        return {}
    return {process: index for index, one in enumerate(info.sets) for process in one.processes}


def best_load(cells: Mapping[Load, CellTrials]) -> Load | None:
    """Return the load with the highest median throughput over processes."""
    known = {load: cell.median(THROUGHPUT) for load, cell in cells.items() if cell.kept}
    return max(known, key=lambda load: (known[load] or 0.0, -load.connections)) if known else None


def headline_load(cells: Mapping[str, Mapping[Load, CellTrials]]) -> Load | None:
    """Return the load of a test type's headline table. None means the best load of each implementation.

    A test type that sweeps the number of queries uses the highest number. Other test types use the load that was
    visited most often, if it is unique. A scenario uses the highest factor at which most implementations have figures.
    """
    loads: dict[Load, list[CellTrials]] = defaultdict(list)
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
