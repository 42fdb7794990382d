"""Finds the capacity at a latency goal, and makes the tables of latency over load.

As in MLPerf's server scenario (Reddi et al., ISCA 2020), a load meets the goal if the share of late requests is at most
1 - percentile / 100. A binomial interval shows whether the load was long enough to decide. Requests without a response
count as late. Percentiles are computed for each load, and intervals over processes. Requests of different processes are
never pooled.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from scipy import special

from harness.plan.profile import OpenLoopSettings, OrderLoads, ProcessLimits
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.records.measurements import Latency, LatencyGoal
from harness.records.outcome import Outcome
from harness.records.run_info import RunInfo
from harness.records.trial_record import Trial
from harness.stats import ranking_model
from harness.stats.cell_values import (
    METRICS,
    PERCENTILES,
    PROVISIONAL_BELOW,
    CellTrials,
    deployment_by_process,
    latency_percentile,
    ranked_operation_times,
)
from harness.stats.moderation import CONFIDENCE, MAX_DF, add_variance
from harness.stats.stopping import alpha_at, profile_section
from harness.stats.value_tables import (
    SINGLE_TABLE,
    ValueTables,
    estimate_from_processes,
    estimate_percentiles,
    estimate_rows,
    rank_rows,
    sort_rows,
)

MAX_BRACKET_WIDTH = 0.05  # the search ends when the two loads differ by less than this relative distance
# Validity checks that fail if a server cannot sustain a rate.
SATURATION_CHECKS = frozenset({"errors", "achieved-rate", "unfinished", "response-size"})
Reasons = Mapping[tuple[str, str], str]  # (test type, implementation) -> why the implementation is not ranked


@dataclass(frozen=True, kw_only=True)
class PooledRequests:
    """Requests of a process at a rate (or factor of a scenario), pooled over all loads."""

    rate: float
    due: int
    late: int

    def met(self, goal: LatencyGoal) -> bool:
        """Return whether the share of late requests is at most the share that the goal allows."""
        return self.due > 0 and self.late <= goal.late_share * self.due

    def decided(self, goal: LatencyGoal) -> bool:
        """Return whether the interval of the late share (Clopper & Pearson 1934) excludes the goal's share.

        Late requests occur in bursts, so the true interval is wider. The check shows only that the load was long
        enough.
        """
        if self.due <= 0:
            return False
        of, tail = goal.late_share, (1 - CONFIDENCE) / 2
        few, many = special.bdtr(self.late, self.due, of), special.bdtrc(self.late - 1, self.due, of)
        return bool(few <= tail or many < tail)


def _min_requests(goal: LatencyGoal) -> int:
    """Return how many requests show that the goal was met if no request is late: 368 for p99."""
    return math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log1p(-goal.late_share))


def _load_counts(trial: Trial, goal: LatencyGoal) -> PooledRequests | None:
    """Return the counts of a trial, or None if the goal was missed because the load generator was late."""
    lagged = any(check.name == "generator-lag" and check.outcome is not Outcome.PASS for check in trial.validity)
    saturated = any(check.name in SATURATION_CHECKS and check.outcome is Outcome.FAIL for check in trial.validity)
    rate, due, late = 0.0, trial.due or 0, trial.late or 0
    if isinstance(trial.load, OpenLoop):
        rate = trial.load.rate
    elif isinstance(trial.load, Scenario):
        rate = trial.load.factor
        if times := ranked_operation_times(trial):
            due = trial.arrivals.due if trial.arrivals else sum(times.values())
            late = due - sum(count for seconds, count in times.items() if seconds <= goal.seconds)
    missed = late > goal.late_share * due
    if rate <= 0 or trial.restarted or (missed and lagged and not saturated):
        return None
    # A server that does not sustain a rate builds up a backlog. In a short load, the backlog may not appear as latency.
    return PooledRequests(rate=rate, due=due, late=due if saturated else late)


def bracket(trials: Sequence[Trial], goal: LatencyGoal) -> tuple[PooledRequests | None, PooledRequests | None]:
    """Return the highest load of a process that met the goal, and the lowest load above it that missed the goal.

    The boundary contradicts as few loads as possible. If several boundaries are equally good, the lowest is used.
    Without this rule, a single stall of the machine at a low rate would be taken for the capacity.
    """
    pooled: dict[float, PooledRequests] = {}
    for one in filter(None, (_load_counts(trial, goal) for trial in trials)):
        old = pooled.get(one.rate, PooledRequests(rate=one.rate, due=0, late=0))
        pooled[one.rate] = PooledRequests(rate=one.rate, due=old.due + one.due, late=old.late + one.late)
    enough = _min_requests(goal)
    ordered = [one for _, one in sorted(pooled.items()) if one.due >= enough or (one.due and not one.met(goal))]
    met = [one.met(goal) for one in ordered]
    costs = [met[:cut].count(False) + met[cut:].count(True) for cut in range(len(ordered) + 1)]
    cut = costs.index(min(costs))
    low = next((one for one in reversed(ordered[:cut]) if one.met(goal)), None)
    return low, next((one for one in ordered[cut:] if not one.met(goal)), None)


def next_load(trials: Sequence[Trial], goal: LatencyGoal, *, start: float, seconds: float) -> float | None:
    """Return the next rate of an open loop (or factor of a scenario) to try. None ends the search.

    The search first moves outwards until both ends of the bracket exist. It then bisects on the log scale down to
    ``MAX_BRACKET_WIDTH``. Finally, it repeats an end of the bracket if its loads were too short to decide.

    Args:
        trials: Previous trials of this process and cell.
        goal: The latency goal.
        start: Closed-loop throughput of the process in requests per second, or the factor of its first load.
        seconds: Duration of a load.
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
        # The lowest load that still has enough requests for a decision.
        least = _min_requests(goal) * (high.rate / max(high.due, 1) if arrivals else 1 / seconds)
        # The search ends below a hundredth of the initial load.
        lower = max(high.rate / 2, 0.01 * start, least)
        return lower if lower < high.rate else None
    return start if arrivals else start / 2


# ---- tables ----------------------------------------------------------------------------------------------------------


def latency_tables(info: RunInfo, trials: Sequence[Trial], reasons: Reasons) -> dict[str, ranking_model.LatencyTable]:
    """Return a latency table for each test type that has open-loop loads."""
    goal, by_type = profile_section(info, "open_loop", OpenLoopSettings).goal, {}
    for kind in info.loads:
        mine = [trial for trial in trials if trial.test_type == kind and trial.purpose != "witness"]
        if not any(isinstance(trial.load, OpenLoop) for trial in mine):
            continue
        at_rate, closed = defaultdict[str, list[Trial]](list), defaultdict[str, list[float]](list)
        for trial in mine:
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
    """Return the rows of a capacity table: ranked rows with the best first, then unranked rows.

    An implementation has a capacity only if each process met the goal. Excluding processes that missed the goal would
    favour the implementation.
    """
    rows, values = [], {}
    for name in (one.name for one in info.implementations if kind in one.test_types):
        by_process = defaultdict[int, list[Trial]](list)
        for trial in loads.get(name, ()):
            by_process[trial.process].append(trial)
        own = {process: bracket(tried, goal) for process, tried in sorted(by_process.items())}
        missed = sum(low is None for low, _ in own.values())
        reason = reasons.get((kind, name), "") or ("" if own else "missing")
        reason = reason or (f"{goal.label} met at no load in {missed} of {len(own)} processes" if missed else "")
        undecided = sum(not all(end and end.decided(goal) for end in ends) for ends in own.values())
        flags = ["lower bound"] if any(low and not high for low, high in own.values()) else []
        flags += [f"{undecided} of {len(own)} brackets not decided"] if undecided else []
        flags += ["provisional"] if 0 < len(own) < PROVISIONAL_BELOW else []
        rows.append(
            ranking_model.GoalRow(
                implementation=name,
                capacity=None,
                above=_median_or_none([high.rate for _, high in own.values() if high]),
                closed_loop=_median_or_none(closed.get(name, ())),
                ranked=not reason,
                reason=reason,
                flags=tuple(flags),
                points=_rate_points(loads.get(name, ())),
            )
        )
        if not reason:
            values[name] = {p: (low.rate, (high or low).rate) for p, (low, high) in own.items() if low}
    standings = _rank_brackets(info, values)
    rows = [row.model_copy(update={"capacity": standings.get(row.implementation)}) for row in rows]
    return sort_rows(rows, lambda row: row.capacity)


def _rank_brackets(
    info: RunInfo, brackets: Mapping[str, Mapping[int, tuple[float, float]]]
) -> dict[str, ranking_model.Standing]:
    """Rank brackets by the geometric middle. The displayed capacity is the low end.

    The capacity is assumed to be uniformly distributed within the bracket, which adds a variance of width² / 12. More
    processes with the same bracket do not reduce this variance, because all searches try the same loads.
    """
    values = {name: {(p, 0): math.sqrt(low * high) for p, (low, high) in own.items()} for name, own in brackets.items()}
    tables = ValueTables({SINGLE_TABLE: values}, deployment_by_process(info))
    widths = [fmean(math.log(high / low) for low, high in own.values()) for own in brackets.values()]
    compared = add_variance(tables.means(), np.square(widths) / 12, MAX_DF)
    shown = []
    for each, own in zip(estimate_rows(tables.fits[SINGLE_TABLE], compared), brackets.values(), strict=True):
        lows = tuple(low for low, _ in own.values())
        low = each.low and min(each.low, median(lows))
        shown.append(each.model_copy(update={"median": median(lows), "low": low, "values": lows}))
    return rank_rows(compared, shown, info.reference, 1 - CONFIDENCE, 0.0, higher_is_better=True)


def _rate_points(trials: Sequence[Trial]) -> tuple[ranking_model.RatePoint, ...]:
    """Return the latency at each share of the throughput and at each common rate, in order of the rate."""
    groups: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)
    for trial in trials:
        if isinstance(trial.load, OpenLoop) and trial.purpose in ("share", "common"):
            groups[trial.purpose, trial.load.rate if trial.share is None else trial.share].append(trial)
    made = []
    for members in groups.values():
        # If a process did not sustain the rate, the remaining processes are a biased selection.
        lost = any(
            check.outcome is Outcome.FAIL and check.name in SATURATION_CHECKS
            for trial in members
            for check in trial.validity
        )
        held = [(t, t.latency) for t in members if t.rankable and t.latency and not lost]
        first = members[0]
        made.append(
            ranking_model.RatePoint(
                purpose="share" if first.purpose == "share" else "common",
                share=first.share,
                rate=median(trial.load.rate for trial in members if isinstance(trial.load, OpenLoop)),
                percentiles=estimate_percentiles(
                    [(t.process, times.percentiles, t.answered or 0) for t, times in held]
                ),
                maximum=max((times.max for _, times in held), default=None),
                flags=tuple(dict.fromkeys(check.flag for trial in members for check in trial.validity if check.flag)),
            )
        )
    return tuple(sorted(made, key=lambda point: point.rate))


# ---- scenarios: response times from the due time, CPU per arrival, capacity at a goal ------------------------


def order_results(
    info: RunInfo, trials: Sequence[Trial], test_types: Mapping[str, ranking_model.TestTypeRanking], reasons: Reasons
) -> ranking_model.OrderResults | None:
    """Return tables, capacities and operations of a scenario. Return None for a run without scenarios."""
    scenario = next((name for name, each in test_types.items() if each.is_scenario), None)
    if scenario is None:
        return None
    measured: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)  # (implementation, factor) -> trials
    tried: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.test_type == scenario and isinstance(trial.load, Scenario):
            tried[trial.implementation].append(trial)
            if trial.purpose == "measure":
                measured[trial.implementation, trial.load.factor].append(trial)
    goal = profile_section(info, "orders", OrderLoads).goal
    searched = any(trial.purpose == "search" for own in tried.values() for trial in own)
    found = [(table.load.factor, table) for table in test_types[scenario].tables if isinstance(table.load, Scenario)]
    names = [one.name for one in info.implementations if scenario in one.test_types]
    processes = {trial.process for own in measured.values() for trial in own}
    alpha = alpha_at(profile_section(info, "processes", ProcessLimits), len(processes))
    return ranking_model.OrderResults(
        tables=tuple(
            _order_table(info, table, factor, measured, alpha)
            for factor, table in sorted(found, key=lambda each: each[0])
        ),
        goal=goal if searched else None,
        capacities=_capacity_rows(info, scenario, tried, goal, reasons, {}) if searched else (),
        points={
            name: tuple(point for factor, _ in found for point in _order_points(factor, measured[name, factor]))
            for name in names
        },
    )


def _order_table(
    info: RunInfo,
    table: ranking_model.Table,
    factor: float,
    measured: Mapping[tuple[str, float], Sequence[Trial]],
    alpha: float,
) -> ranking_model.OrderTable:
    """Rank implementations at a factor by the response time of the ranked operation."""
    cells = {row.implementation: CellTrials(measured.get((row.implementation, factor), ())) for row in table.rows}
    response = METRICS["response-time-p50"]
    values = {row.implementation: cells[row.implementation].values(response) for row in table.rows if not row.reason}
    found = ValueTables({SINGLE_TABLE: values}, deployment_by_process(info)).standings(
        info.reference, alpha=alpha, higher_is_better=False
    )
    rows = []
    for row in table.rows:
        kept = cells[row.implementation].kept
        times = [
            (t.process, {point: latency_percentile(t, point) or 0.0 for point in PERCENTILES}, t.requests) for t in kept
        ]
        database = {t.process: t.database_cpu_seconds / t.arrivals.due for t in kept
                    if t.database_cpu_seconds and t.arrivals and t.arrivals.due}  # fmt: skip
        rows.append(
            ranking_model.OrderRow(
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
                response=found.get(row.implementation),
                percentiles=estimate_percentiles(times),
                database_cpu_per_arrival=estimate_from_processes(database) if database else None,
            )
        )
    return ranking_model.OrderTable(factor=factor, rows=sort_rows(rows, lambda row: row.response))


def _order_points(factor: float, loads: Sequence[Trial]) -> Iterable[ranking_model.OrderPoint]:
    """Yield a point for each operation of each use case, and for each complete use case."""
    seen: defaultdict[tuple[str, str], list[tuple[Trial, Latency | None, int, int]]] = defaultdict(list)
    for load in loads:
        for one in load.arrivals.operations if load.arrivals else ():
            seen[one.use_case, one.operation].append((load, one.latency, one.answered, one.due))
        for each in load.arrivals.use_cases if load.arrivals else ():
            seen[each.use_case, ""].append((load, each.latency, each.done, each.due))
    for (use_case, operation), found in seen.items():
        valid = [(load.process, times.percentiles, done) for load, times, done, _ in found if load.rankable and times]
        yield ranking_model.OrderPoint(
            factor=factor,
            use_case=use_case,
            operation=operation,
            percentiles=estimate_percentiles(valid, PERCENTILES),
            answered=sum(done for _, _, done, _ in found),
            failed=sum(due - done for _, _, done, due in found),
        )
