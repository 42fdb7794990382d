"""The capacity at a latency goal: which load to try next on one process, and the tables of latency over load. Pure.

As in MLPerf's server scenario (Reddi et al., ISCA 2020) a load meets the goal when the share of late requests is at
most 1 - the percentile's; a binomial interval says whether it was long enough to decide. What was never answered is
late. A percentile is taken within each load, and its interval over processes: requests of several are never pooled.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from scipy import special

from harness.plan.profile import OpenLoop, Orders, Processes
from harness.records.models import Closed, Latency, LatencyGoal, Open, Outcome, RunInfo, Scenario, Trial
from harness.stats import fit, model
from harness.stats.fit import CONFIDENCE
from harness.stats.stopping import alpha_at, section
from harness.stats.tables import ONLY, Tables, alone, best_first, estimates, percentiles, placed
from harness.stats.values import (
    METRICS,
    PERCENTILES,
    PROVISIONAL_BELOW,
    Cell,
    create_times,
    deployments_of,
    percentile,
)

BRACKET = 0.05  # the search ends when its two loads are this close, relative
# Gates that a server fails which does not hold a rate.
SATURATED = frozenset({"errors", "achieved-rate", "unfinished", "response-size"})
ORDER = "order"  # the test type of the order service
Reasons = Mapping[tuple[str, str], str]  # test type, implementation -> why it is not ranked


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What loads at one rate, or factor of the arrivals, showed of one process."""

    rate: float
    due: int
    late: int

    def met(self, goal: LatencyGoal) -> bool:
        """Whether no more than the goal's share of the requests were late."""
        return self.due > 0 and self.late <= goal.late_share * self.due

    def decided(self, goal: LatencyGoal) -> bool:
        """Whether the interval of the late share (Clopper & Pearson 1934) lies on one side of the goal.

        Lateness comes in bursts, so that it is narrower than the truth's: the load was long enough, not more.
        """
        if self.due <= 0:
            return False
        of, tail = goal.late_share, (1 - CONFIDENCE) / 2
        few, many = special.bdtr(self.late, self.due, of), special.bdtrc(self.late - 1, self.due, of)
        return bool(few <= tail or many < tail)


def _enough(goal: LatencyGoal) -> int:
    """Requests without which not even a load without a late one shows that a goal was met: 368 for p99 at 95 %."""
    return math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log1p(-goal.late_share))


def _tried(trial: Trial, goal: LatencyGoal) -> Tried | None:
    """What counts of a load; none where the goal was missed while the generator was late itself."""
    lagged = any(gate.name == "generator-lag" and gate.outcome is not Outcome.PASS for gate in trial.gates)
    saturated = any(gate.name in SATURATED and gate.outcome is Outcome.FAIL for gate in trial.gates)
    rate, due, late = 0.0, trial.due or 0, trial.late or 0
    if isinstance(trial.load, Open):
        rate = trial.load.rate
    elif isinstance(trial.load, Scenario):
        rate = trial.load.factor
        if times := create_times(trial):
            due = trial.arrivals.due if trial.arrivals else sum(times.values())
            late = due - sum(count for seconds, count in times.items() if seconds <= goal.seconds)
    missed = late > goal.late_share * due
    if rate <= 0 or trial.restarted or (missed and lagged and not saturated):
        return None
    # A load that the server did not hold leaves a backlog, which it may have been too short to show as latency.
    return Tried(rate=rate, due=due, late=due if saturated else late)


def bracket(trials: Sequence[Trial], goal: LatencyGoal) -> tuple[Tried | None, Tried | None]:
    """Of one process the highest load that met the goal, and the lowest beyond it that missed it.

    They lie at the cut between loads that contradicts the fewest of them, the lowest of equals: one stall of the
    machine at a low rate would otherwise pass for the server's capacity.
    """
    pooled: dict[float, Tried] = {}
    for one in filter(None, (_tried(trial, goal) for trial in trials)):
        old = pooled.get(one.rate, Tried(rate=one.rate, due=0, late=0))
        pooled[one.rate] = Tried(rate=one.rate, due=old.due + one.due, late=old.late + one.late)
    enough = _enough(goal)
    ordered = [one for _, one in sorted(pooled.items()) if one.due >= enough or (one.due and not one.met(goal))]
    met = [one.met(goal) for one in ordered]
    costs = [met[:cut].count(False) + met[cut:].count(True) for cut in range(len(ordered) + 1)]
    cut = costs.index(min(costs))
    low = next((one for one in reversed(ordered[:cut]) if one.met(goal)), None)
    return low, next((one for one in ordered[cut:] if not one.met(goal)), None)


def next_load(trials: Sequence[Trial], goal: LatencyGoal, *, start: float, seconds: float) -> float | None:
    """The rate of an open loop, or factor of arrivals, to try next on a process; None when the search is over.

    ``trials``: of this process and cell so far. ``start``: its closed-loop throughput, or the factor that it was
    measured at; ``seconds``: of a load. Outwards while one end is missing, then halving on logarithms down to
    ``BRACKET``, then again at an end whose loads were too short to decide.
    """
    low, high = bracket(trials, goal)
    arrivals = any(isinstance(trial.load, Scenario) for trial in trials)
    if low and high:
        if high.rate / low.rate > 1 + BRACKET:
            return math.sqrt(low.rate * high.rate)
        return next((end.rate for end in (low, high) if not end.decided(goal)), None)
    if low:
        return low.rate * 2 if arrivals else min(low.rate * 2, max(low.rate, start) * 1.1)
    if high:
        # Enough requests must come: as many a factor as came before, or as many a rate as it says.
        least = _enough(goal) * (high.rate / max(high.due, 1) if arrivals else 1 / seconds)
        # Below a hundredth of the load that it starts from the search gives up.
        lower = max(high.rate / 2, 0.01 * start, least)
        return lower if lower < high.rate else None
    return start if arrivals else start / 2


# ---- tables ----------------------------------------------------------------------------------------------------------


def tables(info: RunInfo, trials: Sequence[Trial], reasons: Reasons) -> dict[str, model.LatencyTable]:
    """By test type, of those with loads at given rates."""
    goal, found = section(info, "open_loop", OpenLoop).goal, {}
    for kind in info.loads:
        mine = [trial for trial in trials if trial.test_type == kind and trial.purpose != "witness"]
        if not any(isinstance(trial.load, Open) for trial in mine):
            continue
        at_rate, closed = defaultdict[str, list[Trial]](list), defaultdict[str, list[float]](list)
        for trial in mine:
            if isinstance(trial.load, Open):
                at_rate[trial.implementation].append(trial)
            elif isinstance(trial.load, Closed) and trial.rankable:
                closed[trial.implementation].append(trial.throughput)
        rows = _capacities(info, kind, at_rate, goal, reasons, closed)
        found[kind] = model.LatencyTable(test_type=kind, goal=goal, rows=rows)
    return found


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _capacities(
    info: RunInfo, kind: str, loads: Mapping[str, Sequence[Trial]], goal: LatencyGoal, reasons: Reasons,
    closed: Mapping[str, Sequence[float]],
) -> tuple[model.GoalRow, ...]:  # fmt: skip
    """Ranked rows first, best first, of loads and closed-loop throughputs by implementation.

    Only who met the goal in every process has a capacity: to leave out the others would flatter.
    """
    rows, values = [], {}
    for name in (one.name for one in info.implementations if kind in one.test_types):
        by_process = defaultdict[int, list[Trial]](list)
        for trial in loads.get(name, ()):
            by_process[trial.process].append(trial)
        own = {process: bracket(tried, goal) for process, tried in sorted(by_process.items())}
        missed = sum(low is None for low, _ in own.values())
        why = reasons.get((kind, name), "") or ("" if own else "missing")
        why = why or (f"{goal.label} shown at no load in {missed} of {len(own)} processes" if missed else "")
        undecided = sum(not all(end and end.decided(goal) for end in ends) for ends in own.values())
        flags = ["lower bound"] if any(low and not high for low, high in own.values()) else []
        flags += [f"{undecided} of {len(own)} brackets not decided"] if undecided else []
        flags += ["provisional"] if 0 < len(own) < PROVISIONAL_BELOW else []
        rows.append(
            model.GoalRow(
                implementation=name,
                capacity=None,
                above=_middle([high.rate for _, high in own.values() if high]),
                closed_loop=_middle(closed.get(name, ())),
                ranked=not why,
                reason=why,
                flags=tuple(flags),
                points=_points(loads.get(name, ())),
            )
        )
        if not why:
            values[name] = {p: (low.rate, (high or low).rate) for p, (low, high) in own.items() if low}
    found = _standings(info, values)
    rows = [row.model_copy(update={"capacity": found.get(row.implementation)}) for row in rows]
    return best_first(rows, lambda row: row.capacity)


def _standings(info: RunInfo, brackets: Mapping[str, Mapping[int, tuple[float, float]]]) -> dict[str, model.Standing]:
    """Of brackets by row and process: shown are their low ends, compared their middles.

    A capacity is as likely anywhere within its bracket: a variance of width² / 12, however many processes have the same
    one, since all searches try the same loads.
    """
    values = {name: {(p, 0): math.sqrt(low * high) for p, (low, high) in own.items()} for name, own in brackets.items()}
    tables = Tables({ONLY: values}, deployments_of(info))
    widths = [fmean(math.log(high / low) for low, high in own.values()) for own in brackets.values()]
    compared = fit.less_sure(tables.means(), np.square(widths) / 12, fit.CERTAIN)
    shown = []
    for each, own in zip(estimates(tables.fits[ONLY], compared), brackets.values(), strict=True):
        lows = tuple(low for low, _ in own.values())
        low = each.low and min(each.low, median(lows))
        shown.append(each.model_copy(update={"median": median(lows), "low": low, "values": lows}))
    return placed(compared, shown, info.reference, 1 - CONFIDENCE, 0.0, higher=True)


def _points(trials: Sequence[Trial]) -> tuple[model.RatePoint, ...]:
    """Latency at each share of the throughput and at each common rate, by rate."""
    groups: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)
    for trial in trials:
        if isinstance(trial.load, Open) and trial.purpose in ("share", "common"):
            groups[trial.purpose, trial.load.rate if trial.share is None else trial.share].append(trial)
    made = []
    for members in groups.values():
        # Had the server failed to hold the rate in one process, the others alone would be those in which it did.
        lost = any(g.outcome is Outcome.FAIL and g.name in SATURATED for trial in members for g in trial.gates)
        held = [(t, t.latency) for t in members if t.rankable and t.latency and not lost]
        first = members[0]
        made.append(
            model.RatePoint(
                purpose="share" if first.purpose == "share" else "common",
                share=first.share,
                rate=median(trial.load.rate for trial in members if isinstance(trial.load, Open)),
                percentiles=percentiles([(t.process, times.percentiles, t.answered or 0) for t, times in held]),
                maximum=max((times.max for _, times in held), default=None),
                flags=tuple(dict.fromkeys(gate.word for trial in members for gate in trial.gates if gate.word)),
            )
        )
    return tuple(sorted(made, key=lambda point: point.rate))


# ---- the order service: response times from the due time, CPU per arrival, capacity at a goal ------------------------


def orders(
    info: RunInfo, trials: Sequence[Trial], test_types: Mapping[str, model.TestTypeRanking], reasons: Reasons
) -> model.Orders | None:
    """None for a run without it."""
    if ORDER not in test_types:
        return None
    measured: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)  # by implementation and factor
    tried: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.test_type == ORDER and isinstance(trial.load, Scenario):
            tried[trial.implementation].append(trial)
            if trial.purpose == "measure":
                measured[trial.implementation, trial.load.factor].append(trial)
    goal = section(info, "orders", Orders).goal
    searched = any(trial.purpose == "search" for own in tried.values() for trial in own)
    found = [(table.load.factor, table) for table in test_types[ORDER].tables if isinstance(table.load, Scenario)]
    names = [one.name for one in info.implementations if ORDER in one.test_types]
    processes = {trial.process for own in measured.values() for trial in own}
    alpha = alpha_at(section(info, "processes", Processes), len(processes))
    return model.Orders(
        tables=tuple(
            _of_factor(info, table, factor, measured, alpha)
            for factor, table in sorted(found, key=lambda each: each[0])
        ),
        goal=goal if searched else None,
        capacities=_capacities(info, ORDER, tried, goal, reasons, {}) if searched else (),
        points={
            name: tuple(point for factor, _ in found for point in _operations(factor, measured[name, factor]))
            for name in names
        },
    )


def _of_factor(
    info: RunInfo,
    table: model.Table,
    factor: float,
    measured: Mapping[tuple[str, float], Sequence[Trial]],
    alpha: float,
) -> model.OrderTable:
    """One factor: who answers "create order" soonest, and at what cost."""
    cells = {row.implementation: Cell(measured.get((row.implementation, factor), ())) for row in table.rows}
    response = METRICS["response-time-p50"]
    values = {row.implementation: cells[row.implementation].values(response) for row in table.rows if not row.reason}
    found = Tables({ONLY: values}, deployments_of(info)).standings(info.reference, alpha=alpha, higher=False)
    rows = []
    for row in table.rows:
        kept = cells[row.implementation].kept
        times = [(t.process, {point: percentile(t, point) or 0.0 for point in PERCENTILES}, t.requests) for t in kept]
        database = {t.process: t.database_cpu_seconds / t.arrivals.due for t in kept
                    if t.database_cpu_seconds and t.arrivals and t.arrivals.due}  # fmt: skip
        rows.append(
            model.OrderRow(
                **vars(row),
                response=found.get(row.implementation),
                percentiles=percentiles(times),
                database_cpu_per_arrival=alone(database) if database else None,
            )
        )
    return model.OrderTable(factor=factor, rows=best_first(rows, lambda row: row.response))


def _operations(factor: float, loads: Sequence[Trial]) -> Iterable[model.OrderPoint]:
    """Every operation of every use case, and every arrival as a whole."""
    seen: defaultdict[tuple[str, str], list[tuple[Trial, Latency | None, int, int]]] = defaultdict(list)
    for load in loads:
        for one in load.arrivals.operations if load.arrivals else ():
            seen[one.use_case, one.operation].append((load, one.latency, one.answered, one.due))
        for each in load.arrivals.use_cases if load.arrivals else ():
            seen[each.use_case, ""].append((load, each.latency, each.done, each.due))
    for (use_case, operation), found in seen.items():
        valid = [(load.process, times.percentiles, done) for load, times, done, _ in found if load.rankable and times]
        yield model.OrderPoint(
            factor=factor,
            use_case=use_case,
            operation=operation,
            percentiles=percentiles(valid, PERCENTILES),
            answered=sum(done for _, _, done, _ in found),
            failed=sum(due - done for _, _, done, due in found),
        )
