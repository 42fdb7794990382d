"""Selects the valid trials of each cell and computes metrics and flags from them."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median

from scipy import special

from harness.plan.testtypes.registry import ranked_operation
from harness.records.loads import Load, Scenario
from harness.records.run_info import RunInfo
from harness.records.run_records import ProcessRecord
from harness.records.trial_record import COMPILING_SHARE, Trial, ValidityCheck
from harness.records.verification_record import Outcome
from harness.stats.table_fit import Position

PROVISIONAL_BELOW = 5  # with fewer processes, intervals are correct but very wide
# A cell counts as not warmed up if mean CPU per request over all trials, divided by the mean over the later half of the
# trials, exceeds this ratio.
MAX_WARM_UP_RATIO = 1.10
MIN_FALL = 1.03  # early / late CPU per request; a smaller ratio is not flagged, even if it is significant
# Values outside this range (in seconds, bytes or requests per second) are invalid, and their ratios would overflow.
MIN_VALUE, MAX_VALUE = 1e-15, 1e15
PERCENTILES = ("50", "90", "99")  # percentiles in tables; trials record more percentiles
MIN_REQUESTS_BEYOND = 5  # a percentile is displayed only if at least this many requests were slower than the percentile

CellKey = tuple[str, str, Load]  # implementation, test type, load


@dataclass(frozen=True)
class Metric:
    """A metric by which implementations can be ranked.

    ``of_process`` reads the metric from a process record. If ``of_process`` is None, ``read`` reads it from a trial.
    Both functions return None if the value is unknown.
    """

    higher_is_better: bool
    read: Callable[[Trial], float | None] = lambda _: None
    of_process: Callable[[ProcessRecord], float | None] | None = None


def ranked_operation_times(trial: Trial) -> Mapping[float, int]:
    """Count the responses of a scenario's ranked operation by response time, in seconds from the due time."""
    ranked = ranked_operation(trial.test_type)
    counts: Counter[float] = Counter()
    for step in trial.arrivals.operations if trial.arrivals else ():
        if step.operation == ranked and step.latency:
            counts.update(dict(step.latency.histogram))
    return counts


def latency_percentile(trial: Trial, point: str) -> float | None:
    """Return a latency percentile, for example "99", in seconds, or None if too few requests were slower.

    For a scenario, use only the ranked operation.
    """
    if isinstance(trial.load, Scenario):
        counts = ranked_operation_times(trial)
        total, passed = sum(counts.values()), 0
        for seconds, count in sorted(counts.items()) if has_enough_requests(point, total) else ():
            passed += count
            if passed >= total * float(point) / 100:
                return seconds
        return None
    percentile = trial.latency.percentiles.get(point) if trial.latency else None
    return percentile if percentile and has_enough_requests(point, trial.requests) else None


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
    "throughput-per-memory": Metric(True, _throughput_per_megabyte),  # requests per second per megabyte
    "threads": Metric(False, lambda trial: trial.server.threads_peak),
    "startup-time": Metric(False, of_process=lambda process: process.startup_time),
}
THROUGHPUT, CPU_PER_REQUEST = METRICS["throughput"], METRICS["cpu-per-request"]


@dataclass(frozen=True)
class CellTrials:
    """The trials of a cell: an implementation, a test type and a load."""

    trials: Sequence[Trial]

    @cached_property
    def valid(self) -> Sequence[Trial]:
        """Trials that failed no validity check. Trials without throughput are excluded, as zero has no logarithm."""
        return [trial for trial in self.trials if trial.throughput > 0 and trial.rankable]

    @cached_property
    def processes(self) -> tuple[int, ...]:
        """Numbers of the processes that have a valid trial."""
        return tuple(sorted({trial.process for trial in self.valid}))

    @cached_property
    def objections(self) -> Sequence[ValidityCheck]:
        """Results of validity checks that did not pass."""
        return [check for trial in self.trials for check in trial.validity if check.outcome is not Outcome.PASS]

    @cached_property
    def warm(self) -> bool:
        """True if the processes were warm enough when they were measured.

        - Mean CPU per request over all trials must be close to the mean over the later half (``MAX_WARM_UP_RATIO``).
        - CPU per request must not have fallen significantly during the trials (``fall_is_significant``).
        - The just-in-time compiler must have been quiet during the last third of the trials (``COMPILING_SHARE``).
        - In a process with a single trial, CPU per request must not have been falling at the end of the warm-up.
        """
        costs: defaultdict[int, list[float]] = defaultdict(list)
        for trial in sorted(self.valid, key=lambda trial: trial.round):
            if trial.cpu_per_request and trial.cpu_per_request > MIN_VALUE:
                costs[trial.process].append(math.log(trial.cpu_per_request))
        if any(trial.steady is False and len(costs[trial.process]) < 2 for trial in self.valid):
            return False
        if fall_is_significant(list(costs.values())) or (self.last_compiler_share or 0.0) > COMPILING_SHARE:
            return False
        excess = [fmean(own) - fmean(own[len(own) // 2 :]) for own in costs.values() if len(own) > 1]
        return not excess or not fmean(excess) > math.log(MAX_WARM_UP_RATIO)

    @property
    def last_compiler_share(self) -> float | None:
        """Compiler threads' share of the server's CPU time in the last third of the trials; None if unknown."""
        compiler = total = 0.0
        for process in self.processes:
            own = sorted((trial for trial in self.valid if trial.process == process), key=lambda trial: trial.round)
            for usage in (trial.server for trial in own[-max(1, len(own) // 3) :]):
                if usage.compiler_cpu_seconds is not None:
                    compiler, total = compiler + usage.compiler_cpu_seconds, total + usage.cpu_seconds
        return compiler / total if total > 0 else None

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags to display next to the values: "not warmed up", flags of validity checks, and "provisional"."""
        flags = [] if self.warm else ["not warmed up"]
        flags += [check.flag for trial in self.valid for check in trial.validity if check.flag]
        flags += ["provisional"] if 0 < len(self.processes) < PROVISIONAL_BELOW else []
        return tuple(dict.fromkeys(flags))

    @property
    def why_empty(self) -> str:
        """Why no trial is valid: the failed validity checks, most frequent first."""
        failed = Counter(check.flag or check.name for check in self.objections if check.outcome is Outcome.FAIL)
        return ", ".join(sorted(failed, key=lambda word: (-failed[word], word))) or "no valid response"

    def values(self, metric: Metric) -> dict[Position, float]:
        """Return the metric of each valid trial by process and round. Values outside the valid range are omitted."""
        values = ((trial.process, trial.round, metric.read(trial)) for trial in self.valid)
        return {(process, number): v for process, number, v in values if v and MIN_VALUE < v < MAX_VALUE}

    def by_process(self, metric: Metric) -> dict[int, float]:
        """Return the metric of each process, as the geometric mean over rounds."""
        logs: defaultdict[int, list[float]] = defaultdict(list)
        for (process, _), value in sorted(self.values(metric).items()):
            logs[process].append(math.log(value))
        return {process: math.exp(math.fsum(each) / len(each)) for process, each in logs.items()}

    def median(self, metric: Metric) -> float | None:
        """Return the median over processes, or None if no process has a value."""
        by_process = self.by_process(metric)
        return median(by_process.values()) if by_process else None


def fall_is_significant(costs: Sequence[Sequence[float]]) -> bool:
    """Return whether costs fell, by a factor above ``MIN_FALL``, between the first and the last third of the trials.

    ``costs`` contains, for each process, the logarithms of CPU per request in the order of the trials. The function
    applies a one-sided t test at the 1 % level, because a run has dozens of cells. With too little data, it returns
    False.

    For a process with n trials, let k = max(1, n // 3), let d be the mean of the first k trials minus the mean of the
    last k, and let h = d sqrt(k / 2). If costs are constant with independent normal errors of variance s^2, each h has
    variance s^2. With P processes, T = sum(h) / (s sqrt(P)) then follows Student's t distribution. s^2 is estimated
    from the deviations of h from their mean (P - 1 degrees of freedom), and from the deviations within each third
    (k - 1 degrees of freedom).
    """
    contrasts, falls, squares, df = [], [], 0.0, -1
    for own in costs:
        if len(own) < 2:
            continue
        k = max(1, len(own) // 3)
        thirds = own[:k], own[-k:]
        first, last = map(fmean, thirds)
        falls.append(first - last)
        contrasts.append((first - last) * math.sqrt(k / 2))
        squares += sum((cost - fmean(third)) ** 2 for third in thirds for cost in third)
        df += 2 * (k - 1) + 1
    if df < 1 or fmean(falls) <= math.log(MIN_FALL):
        return False
    squares += sum((h - fmean(contrasts)) ** 2 for h in contrasts)
    return sum(contrasts) / math.sqrt(len(contrasts)) > float(special.stdtrit(df, 0.99)) * math.sqrt(squares / df)


def collect_cells(trials: Iterable[Trial]) -> dict[CellKey, CellTrials]:
    """Group trials into cells. Only trials with the purpose "measure" belong to a cell."""
    groups: defaultdict[CellKey, list[Trial]] = defaultdict(list)
    # Reuse a single object for equal loads, because hashing every trial's load takes a third of this function's time.
    loads: dict[tuple[object, ...], Load] = {}
    for trial in trials:
        if trial.purpose == "measure":
            load_values = tuple(trial.load.__dict__.values())
            groups[trial.implementation, trial.test_type, loads.setdefault(load_values, trial.load)].append(trial)
    return {key: CellTrials(members) for key, members in groups.items()}


def collect_process_values(processes: Iterable[ProcessRecord], metric: Metric) -> dict[str, dict[Position, float]]:
    """Read a per-process metric. Return implementation -> (process, 0) -> value, without interrupted processes."""
    values: defaultdict[str, dict[Position, float]] = defaultdict(dict)
    for record in processes:
        value = metric.of_process(record) if metric.of_process and record.status != "interrupted" else None
        if value:
            values[record.implementation][record.process, 0] = value
    return values


def group_by_test_type(cells: Mapping[CellKey, CellTrials]) -> dict[str, dict[str, dict[Load, CellTrials]]]:
    """Return the cells as nested dictionaries: test type -> implementation -> load -> cell."""
    nested: dict[str, dict[str, dict[Load, CellTrials]]] = defaultdict(lambda: defaultdict(dict))
    for (name, kind, load), cell in cells.items():
        nested[kind][name][load] = cell
    return nested


def deployment_by_process(info: RunInfo) -> dict[int, int]:
    """Map each process to the index of its deployment. Return an empty dictionary for a single deployment.

    In joined parts, each process counts as a separate deployment. If a whole part counted as a deployment, all rows
    except the baseline would have values in only a single deployment.
    """
    if len(info.sets) < 2:
        return {}
    if info.part:
        return {process: process for machines in info.sets for process in machines.processes}
    return {process: index for index, machines in enumerate(info.sets) for process in machines.processes}


def joining_baseline(info: RunInfo) -> str | None:
    """Return the baseline that connects joined parts, or None for other runs."""
    return info.reference if info.part and len(info.sets) > 1 else None


def best_load(cells: Mapping[Load, CellTrials]) -> Load | None:
    """Return the load with the highest median throughput over processes, or None if no load has a valid trial."""
    medians = {load: cell.median(THROUGHPUT) for load, cell in cells.items() if cell.valid}
    return max(medians, key=lambda load: (medians[load] or 0.0, -load.connections)) if medians else None


def headline_table_load(cells: Mapping[str, Mapping[Load, CellTrials]]) -> Load | None:
    """Return the load of a test type's headline table. None means the best load of each implementation.

    For test types that sweep the number of queries, it is the load with the most queries. For a scenario, it is the
    factor at which the largest number of implementations have valid trials; if factors tie, the highest. For other
    test types, it is the load with the most trials. Return None if a different load has at least half as many trials.
    """
    loads: dict[Load, list[CellTrials]] = defaultdict(list)
    for own in cells.values():
        for load, cell in own.items():
            loads[load].append(cell)
    if not loads:
        return None
    counts = {load: sum(len(cell.trials) for cell in own) for load, own in loads.items()}
    frequent = [load for load, count in counts.items() if 2 * count >= max(counts.values())]
    if factors := {load: load.factor for load in frequent if isinstance(load, Scenario)}:
        return max(factors, key=lambda load: (sum(bool(cell.valid) for cell in loads[load]), factors[load]))
    if any(load.queries is not None for load in loads):
        return max(loads, key=lambda load: load.queries or 0)
    return frequent[0] if len(frequent) == 1 else None
