"""Computes the capacity at a latency goal, and tables of latency by load.

As in MLPerf's server scenario (Reddi et al., ISCA 2020), a load meets the goal if the share of late requests is at most
1 - percentile / 100. A binomial interval shows whether the load was long enough to decide. Requests without a response
count as late. Percentiles are computed separately for each load. Intervals are computed from one value per process, so
requests of different processes are never pooled.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from scipy import special

from harness.plan.profile import OpenLoopSettings, ProcessLimits, ScenarioLoads
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.records.measurements import Latency, LatencyGoal
from harness.records.run_info import RunInfo
from harness.records.trial_record import Trial
from harness.records.verification_record import Outcome
from harness.stats import ranking_model
from harness.stats.cell_values import (
    METRICS,
    PERCENTILES,
    PROVISIONAL_BELOW,
    CellTrials,
    joining_baseline,
    latency_percentile,
    ranked_operation_times,
)
from harness.stats.moderation import CONFIDENCE, MAX_DF, add_variance
from harness.stats.stopping import alpha_at, profile_section
from harness.stats.unranked import UNCONNECTED
from harness.stats.value_tables import (
    SINGLE_TABLE,
    ValueTables,
    connected_rows,
    estimate_from_processes,
    estimate_percentiles,
    estimate_rows,
    rank_rows,
    sort_rows,
)

MAX_BRACKET_WIDTH = 0.05  # the search ends when the loads that bracket the capacity differ by at most this fraction
# Validity checks that fail if a server cannot keep up with the request rate.
SATURATION_CHECKS = frozenset({"errors", "achieved-rate", "unfinished", "response-size"})
Reasons = Mapping[tuple[str, str], str]  # (test type, implementation) -> why the implementation is not ranked


@dataclass(frozen=True, kw_only=True)
class PooledRequests:
    """Request counts of a process at a rate (or scenario factor), summed over all trials at that rate."""

    rate: float  # requests per second, or the scenario's load factor
    due: int  # number of requests that were due
    late: int  # number of requests that count as late

    def met(self, goal: LatencyGoal) -> bool:
        """Return whether the share of late requests is small enough for the goal."""
        return self.due > 0 and self.late <= goal.late_share * self.due

    def decided(self, goal: LatencyGoal) -> bool:
        """Return whether there are enough requests to decide that the goal was met or missed.

        The Clopper-Pearson interval (1934) of the share of late requests must exclude the share that the goal allows.
        The true interval is wider, because late requests occur in bursts.
        """
        if self.due <= 0:
            return False
        allowed, alpha = goal.late_share, (1 - CONFIDENCE) / 2
        p_fewer, p_more = special.bdtr(self.late, self.due, allowed), special.bdtrc(self.late - 1, self.due, allowed)
        return bool(p_fewer <= alpha or p_more < alpha)


def _min_requests(goal: LatencyGoal) -> int:
    """Return how many requests are needed, if none is late, to show that the goal was met: 368 for p99."""
    return math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log1p(-goal.late_share))


def _load_counts(trial: Trial, goal: LatencyGoal) -> PooledRequests | None:
    """Return a trial's request counts, or None if they do not describe the server (e.g. if the generator lagged)."""
    lagged = any(check.name == "generator-lag" and check.outcome is not Outcome.PASS for check in trial.validity)
    saturated = any(check.name in SATURATION_CHECKS and check.outcome is Outcome.FAIL for check in trial.validity)
    rate, due, late_count = 0.0, trial.due or 0, trial.late or 0
    if isinstance(trial.load, OpenLoop):
        rate = trial.load.rate
    elif isinstance(trial.load, Scenario):
        rate = trial.load.factor
        if times := ranked_operation_times(trial):
            due = trial.arrivals.due if trial.arrivals else sum(times.values())
            late_count = due - sum(count for seconds, count in times.items() if seconds <= goal.seconds)
    missed = late_count > goal.late_share * due
    if rate <= 0 or trial.restarted or (missed and lagged and not saturated):
        return None
    # If a server cannot keep up, the backlog grows, but a short load may end before latency exceeds the goal. Therefore
    # count all requests of a saturated server as late.
    return PooledRequests(rate=rate, due=due, late=due if saturated else late_count)


def bracket(trials: Sequence[Trial], goal: LatencyGoal) -> tuple[PooledRequests | None, PooledRequests | None]:
    """Return the loads just below and above the capacity: one that met the goal, and one that missed it, or None.

    ``trials`` must belong to one process. Loads below the capacity should meet the goal, and loads above it should miss
    it. Use the boundary with the fewest exceptions to this rule. If several boundaries tie, use the lowest. A single
    stall of the machine at a low rate is thus not mistaken for the capacity.
    """
    pooled: dict[float, PooledRequests] = {}
    for load in filter(None, (_load_counts(trial, goal) for trial in trials)):
        old = pooled.get(load.rate, PooledRequests(rate=load.rate, due=0, late=0))
        pooled[load.rate] = PooledRequests(rate=load.rate, due=old.due + load.due, late=old.late + load.late)
    min_requests = _min_requests(goal)
    ordered = [
        load for _, load in sorted(pooled.items()) if load.due >= min_requests or (load.due and not load.met(goal))
    ]
    met = [load.met(goal) for load in ordered]
    contradictions = [met[:cut].count(False) + met[cut:].count(True) for cut in range(len(ordered) + 1)]
    cut = contradictions.index(min(contradictions))
    low = next((load for load in reversed(ordered[:cut]) if load.met(goal)), None)
    return low, next((load for load in ordered[cut:] if not load.met(goal)), None)


def next_load(trials: Sequence[Trial], goal: LatencyGoal, *, start: float, seconds: float) -> float | None:
    """Return the next rate (open loop) or factor (scenario) to try, or None at the end of the search.

    The search first finds a load that met the goal and a load that missed it. It then bisects between them on the log
    scale until they differ by at most ``MAX_BRACKET_WIDTH``. Finally, it repeats loads that were too short to decide.
    ``start`` is the closed-loop throughput (requests/s) or the first factor.
    """
    low, high = bracket(trials, goal)
    arrivals = any(isinstance(trial.load, Scenario) for trial in trials)
    if low and high:
        if high.rate / low.rate > 1 + MAX_BRACKET_WIDTH:
            return math.sqrt(low.rate * high.rate)
        return next((end.rate for end in (low, high) if not end.decided(goal)), None)
    if low:
        return low.rate * 2 if arrivals else min(low.rate * 2, max(low.rate, start) * 1.1)
    if high:
        # At a lower rate, the load would have too few requests to decide whether the goal was met.
        min_rate = _min_requests(goal) * (high.rate / max(high.due, 1) if arrivals else 1 / seconds)
        # Do not search below 1 % of the initial load.
        lower = max(high.rate / 2, 0.01 * start, min_rate)
        return lower if lower < high.rate else None
    return start if arrivals else start / 2


# ---- Latency tables of open loops ------------------------------------------------------------------------------------


def latency_tables(info: RunInfo, trials: Sequence[Trial], reasons: Reasons) -> dict[str, ranking_model.LatencyTable]:
    """Return a latency table for each test type that has open-loop loads."""
    goal, by_type = profile_section(info, "open_loop", OpenLoopSettings).goal, {}
    for kind in info.loads:
        of_type = [trial for trial in trials if trial.test_type == kind and trial.purpose != "witness"]
        if not any(isinstance(trial.load, OpenLoop) for trial in of_type):
            continue
        at_rate, closed = defaultdict[str, list[Trial]](list), defaultdict[str, list[float]](list)
        for trial in of_type:
            if isinstance(trial.load, OpenLoop):
                at_rate[trial.implementation].append(trial)
            elif isinstance(trial.load, ClosedLoop) and trial.rankable:
                closed[trial.implementation].append(trial.throughput)
        rows = _capacity_rows(info, kind, at_rate, goal, reasons, closed)
        by_type[kind] = ranking_model.LatencyTable(test_type=kind, goal=goal, rows=rows)
    return by_type


def _median_or_none(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _capacity_rows(
    info: RunInfo, kind: str, loads: Mapping[str, Sequence[Trial]], goal: LatencyGoal, reasons: Reasons,
    closed: Mapping[str, Sequence[float]],
) -> tuple[ranking_model.GoalRow, ...]:  # fmt: skip
    """Return the rows of a capacity table: ranked rows, best first, then unranked rows.

    An implementation has a capacity only if every process met the goal at some load. If processes that missed the goal
    were excluded instead, the remaining processes would make the implementation look better than it is.
    """
    rows, values = [], {}
    for name in (one.name for one in info.implementations if kind in one.test_types):
        by_process = defaultdict[int, list[Trial]](list)
        for trial in loads.get(name, ()):
            by_process[trial.process].append(trial)
        brackets = {process: bracket(tried, goal) for process, tried in sorted(by_process.items())}
        missed = sum(low is None for low, _ in brackets.values())
        reason = reasons.get((kind, name), "") or ("" if brackets else "missing")
        reason = reason or (
            f"{goal.label} was not met at any load in {missed} of {len(brackets)} processes" if missed else ""
        )
        undecided = sum(not all(end and end.decided(goal) for end in ends) for ends in brackets.values())
        flags = ["lower bound"] if any(low and not high for low, high in brackets.values()) else []
        flags += [f"loads too short to decide in {undecided} of {len(brackets)} processes"] if undecided else []
        flags += ["provisional"] if 0 < len(brackets) < PROVISIONAL_BELOW else []
        rows.append(
            ranking_model.GoalRow(
                implementation=name,
                capacity=None,
                above=_median_or_none([high.rate for _, high in brackets.values() if high]),
                closed_loop=_median_or_none(closed.get(name, ())),
                ranked=not reason,
                reason=reason,
                flags=tuple(flags),
                points=_rate_points(loads.get(name, ())),
            )
        )
        if not reason:
            values[name] = {p: (low.rate, (high or low).rate) for p, (low, high) in brackets.items() if low}
    if baseline := joining_baseline(info):
        unconnected = values.keys() - connected_rows({n: [(p, 0) for p in own] for n, own in values.items()}, baseline)
        values = {name: own for name, own in values.items() if name not in unconnected}
        told = {"ranked": False, "reason": UNCONNECTED}
        rows = [row.model_copy(update=told if row.implementation in unconnected else {}) for row in rows]
    standings = _rank_brackets(info, values)
    rows = [row.model_copy(update={"capacity": standings.get(row.implementation)}) for row in rows]
    return sort_rows(rows, lambda row: row.capacity)


def _rank_brackets(
    info: RunInfo, brackets: Mapping[str, Mapping[int, tuple[float, float]]]
) -> dict[str, ranking_model.Standing]:
    """Rank implementations by capacity, the geometric mean of each bracket's two loads. Reports show the lower load.

    The capacity is assumed to be uniformly distributed within the bracket, which adds a variance of width² / 12.
    Additional processes do not reduce this variance, because all searches try the same loads.
    """
    values = {name: {(p, 0): math.sqrt(low * high) for p, (low, high) in own.items()} for name, own in brackets.items()}
    tables = ValueTables.of_run({SINGLE_TABLE: values}, info)
    widths = [fmean(math.log(high / low) for low, high in own.values()) for own in brackets.values()]
    compared = add_variance(tables.means(), np.square(widths) / 12, MAX_DF)
    estimates = []
    for each, own in zip(estimate_rows(tables.fits[SINGLE_TABLE], compared), brackets.values(), strict=True):
        lows = tuple(low for low, _ in own.values())
        low = each.low and min(each.low, median(lows))
        estimates.append(each.model_copy(update={"median": median(lows), "low": low, "values": lows}))
    return rank_rows(compared, estimates, info.reference, 1 - CONFIDENCE, 0.0, higher_is_better=True)


def _rate_points(trials: Sequence[Trial]) -> tuple[ranking_model.RatePoint, ...]:
    """Return an implementation's latency at each common rate and at each share of the throughput, by ascending rate."""
    groups: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)
    for trial in trials:
        if isinstance(trial.load, OpenLoop) and trial.purpose in ("share", "common"):
            groups[trial.purpose, trial.load.rate if trial.share is None else trial.share].append(trial)
    points = []
    for members in groups.values():
        # If any process was saturated, show no latency, because the latency of the other processes would mislead.
        saturated = any(
            check.outcome is Outcome.FAIL and check.name in SATURATION_CHECKS
            for trial in members
            for check in trial.validity
        )
        valid = [(t, t.latency) for t in members if t.rankable and t.latency and not saturated]
        first = members[0]
        points.append(
            ranking_model.RatePoint(
                purpose="share" if first.purpose == "share" else "common",
                share=first.share,
                rate=median(trial.load.rate for trial in members if isinstance(trial.load, OpenLoop)),
                percentiles=estimate_percentiles(
                    [(t.process, times.percentiles, t.answered or 0) for t, times in valid]
                ),
                maximum=max((times.max for _, times in valid), default=None),
                flags=tuple(dict.fromkeys(check.flag for trial in members for check in trial.validity if check.flag)),
            )
        )
    return tuple(sorted(points, key=lambda point: point.rate))


# ---- Results of scenarios --------------------------------------------------------------------------------------------


def scenario_results(
    info: RunInfo, trials: Sequence[Trial], test_types: Mapping[str, ranking_model.TestTypeRanking], reasons: Reasons
) -> ranking_model.ScenarioResults | None:
    """Return a scenario's tables, capacities and response times, or None for a run without scenarios."""
    scenario = next((name for name, each in test_types.items() if each.is_scenario), None)
    if scenario is None:
        return None
    # (implementation, factor) -> trials
    trials_by_factor: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)
    by_implementation: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.test_type == scenario and isinstance(trial.load, Scenario):
            by_implementation[trial.implementation].append(trial)
            if trial.purpose == "measure":
                trials_by_factor[trial.implementation, trial.load.factor].append(trial)
    goal = profile_section(info, "orders", ScenarioLoads).goal
    searched = any(trial.purpose == "search" for own in by_implementation.values() for trial in own)
    tables = [(table.load.factor, table) for table in test_types[scenario].tables if isinstance(table.load, Scenario)]
    names = [one.name for one in info.implementations if scenario in one.test_types]
    processes = {trial.process for own in trials_by_factor.values() for trial in own}
    alpha = alpha_at(profile_section(info, "processes", ProcessLimits), len(processes))
    return ranking_model.ScenarioResults(
        tables=tuple(
            _scenario_table(info, table, factor, trials_by_factor, alpha)
            for factor, table in sorted(tables, key=lambda each: each[0])
        ),
        goal=goal if searched else None,
        capacities=_capacity_rows(info, scenario, by_implementation, goal, reasons, {}) if searched else (),
        points={
            name: tuple(
                point for factor, _ in tables for point in _scenario_points(factor, trials_by_factor[name, factor])
            )
            for name in names
        },
    )


def _scenario_table(
    info: RunInfo,
    table: ranking_model.Table,
    factor: float,
    trials_by_factor: Mapping[tuple[str, float], Sequence[Trial]],
    alpha: float,
) -> ranking_model.ScenarioTable:
    """Rank implementations at a load factor by the response time of the ranked operation."""
    cells = {
        row.implementation: CellTrials(trials_by_factor.get((row.implementation, factor), ())) for row in table.rows
    }
    response = METRICS["response-time-p50"]
    values = {row.implementation: cells[row.implementation].values(response) for row in table.rows if not row.reason}
    standings = ValueTables.of_run({SINGLE_TABLE: values}, info).standings(
        info.reference, alpha=alpha, higher_is_better=False
    )
    rows = []
    for row in table.rows:
        valid = cells[row.implementation].valid
        times = [
            (t.process, {point: latency_percentile(t, point) or 0.0 for point in PERCENTILES}, t.requests)
            for t in valid
        ]
        database = {t.process: t.database_cpu_seconds / t.arrivals.due for t in valid
                    if t.database_cpu_seconds and t.arrivals and t.arrivals.due}  # fmt: skip
        rows.append(
            ranking_model.ScenarioRow(
                implementation=row.implementation,
                load=row.load,
                throughput=row.throughput,
                cpu_per_request=row.cpu_per_request,
                rss_peak=row.rss_peak,
                startup_time=row.startup_time,
                errors=row.errors,
                flags=row.flags,
                ranked=row.ranked,
                reason=row.reason,
                trials=row.trials,
                dropped=row.dropped,
                latency=row.latency,
                response_time=row.response_time,
                throughput_per_memory=row.throughput_per_memory,
                threads=row.threads,
                response=standings.get(row.implementation),
                percentiles=estimate_percentiles(times),
                database_cpu_per_arrival=estimate_from_processes(database) if database else None,
            )
        )
    return ranking_model.ScenarioTable(factor=factor, rows=sort_rows(rows, lambda row: row.response))


def _scenario_points(factor: float, loads: Sequence[Trial]) -> Iterable[ranking_model.ScenarioPoint]:
    """Yield the response times of each operation in each use case, and of each use case as a whole."""
    groups: defaultdict[tuple[str, str], list[tuple[Trial, Latency | None, int, int]]] = defaultdict(list)
    for load in loads:
        for step in load.arrivals.operations if load.arrivals else ():
            groups[step.use_case, step.operation].append((load, step.latency, step.answered, step.due))
        for case in load.arrivals.use_cases if load.arrivals else ():
            groups[case.use_case, ""].append((load, case.latency, case.done, case.due))
    for (use_case, operation), results in groups.items():
        valid = [(load.process, times.percentiles, done) for load, times, done, _ in results if load.rankable and times]
        yield ranking_model.ScenarioPoint(
            factor=factor,
            use_case=use_case,
            operation=operation,
            percentiles=estimate_percentiles(valid, PERCENTILES),
            answered=sum(done for _, _, done, _ in results),
            failed=sum(due - done for _, _, done, due in results),
        )
