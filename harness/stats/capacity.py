"""The capacity at a latency goal: which load to try next on one process, and the tables of latency over load. Pure.

As in MLPerf's server scenario (Reddi et al., ISCA 2020) a load meets the goal when the share of late requests is at
most 1 - the percentile's; a binomial interval says whether it was long enough to decide. What was never answered is
late. A percentile is taken within each load, and its interval over processes: requests of several are never pooled.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from scipy import stats

from harness.plan.profile import OpenLoop
from harness.records.models import Closed, LatencyGoal, Open, Outcome, RunInfo, Scenario, Trial
from harness.stats.model import GoalRow, LatencyTable, RatePoint
from harness.stats.stopping import section
from harness.stats.tables import ONLY, Rules, Tables, best_first, percentiles
from harness.stats.values import PROVISIONAL_BELOW, create_times, deployments_of

LOST = frozenset({"errors", "achieved-rate", "unfinished", "response-size"})  # gates that a server fails
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

    def decided(self, goal: LatencyGoal, confidence: float) -> bool:
        """Whether the interval of the late share (Clopper & Pearson 1934) lies on one side of the goal.

        Lateness comes in bursts, so that it is narrower than the truth's: the load was long enough, not more.
        """
        if self.due <= 0:
            return False
        low, high = stats.binomtest(self.late, self.due).proportion_ci(confidence)
        return bool(high <= goal.late_share or low > goal.late_share)


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """The highest load that met the goal and the lowest beyond it that missed it."""

    low: Tried | None = None
    high: Tried | None = None

    def decided(self, goal: LatencyGoal, confidence: float) -> bool:
        """Whether the loads at both ends were long enough."""
        return all(end is not None and end.decided(goal, confidence) for end in (self.low, self.high))


def _enough(goal: LatencyGoal, confidence: float) -> int:
    """Requests without which not even a load without a late one shows that a goal was met: 368 for p99 at 95 %."""
    return math.ceil(math.log((1 - confidence) / 2) / math.log1p(-goal.late_share))


def _tried(trial: Trial, goal: LatencyGoal) -> Tried | None:
    """What counts of a load; none where the goal was missed while the generator was late itself."""
    failed = {gate.name for gate in trial.gates if gate.outcome is Outcome.FAIL}
    lagged = any(gate.name == "generator-lag" and gate.outcome is not Outcome.PASS for gate in trial.gates)
    saturated = bool(failed & {"errors", "achieved-rate", "unfinished"})
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


def bracket(trials: Sequence[Trial], goal: LatencyGoal, confidence: float) -> Bracket:
    """Of one process: the cut between loads that contradicts the fewest of them; the lowest of equals.

    One stall of the machine at a low rate would otherwise pass for the server's capacity.
    """
    pooled: dict[float, Tried] = {}
    for one in filter(None, (_tried(trial, goal) for trial in trials)):
        old = pooled.get(one.rate, Tried(rate=one.rate, due=0, late=0))
        pooled[one.rate] = Tried(rate=one.rate, due=old.due + one.due, late=old.late + one.late)
    enough = _enough(goal, confidence)
    ordered = [one for _, one in sorted(pooled.items()) if one.due >= enough or (one.due and not one.met(goal))]
    met = [one.met(goal) for one in ordered]
    costs = [met[:cut].count(False) + met[cut:].count(True) for cut in range(len(ordered) + 1)]
    cut = costs.index(min(costs))
    return Bracket(
        low=next((one for one in reversed(ordered[:cut]) if one.met(goal)), None),
        high=next((one for one in ordered[cut:] if not one.met(goal)), None),
    )


def next_load(
    trials: Sequence[Trial], goal: LatencyGoal, *, start: float, width: float, confidence: float, seconds: float
) -> float | None:
    """The rate of an open loop, or factor of arrivals, to try next on a process; None when the search is over.

    ``trials``: of this process and cell so far. ``start``: its closed-loop throughput, or the factor that it was
    measured at; ``seconds``: of a load. Outwards while one end is missing, then halving on logarithms down to ``width``
    (relative), then again at an end whose loads were too short to decide.
    """
    found = bracket(trials, goal, confidence)
    low, high = found.low, found.high
    arrivals = any(isinstance(trial.load, Scenario) for trial in trials)
    if low is None and high is None:
        return start if arrivals else start / 2
    if high is None:
        assert low is not None  # noqa: S101 - one of both is there
        return low.rate * 2 if arrivals else min(low.rate * 2, max(low.rate, start) * 1.1)
    if low is None:
        # Enough requests must come: as many a factor as came before, or as many a rate as it says.
        least = _enough(goal, confidence) * (high.rate / max(high.due, 1) if arrivals else 1 / seconds)
        # Below a hundredth of the load that it starts from the search gives up.
        lower = max(high.rate / 2, 0.01 * start, least)
        return lower if lower < high.rate else None
    if high.rate / low.rate > 1 + width:
        return math.sqrt(low.rate * high.rate)
    return next((end.rate for end in (low, high) if not end.decided(goal, confidence)), None)


# ---- tables ----------------------------------------------------------------------------------------------------------


def tables(info: RunInfo, trials: Sequence[Trial], reasons: Reasons, rules: Rules) -> dict[str, LatencyTable]:
    """By test type, of those with loads at given rates."""
    goal, found = _open_loop(info).goal, {}
    for kind in info.loads:
        mine = [trial for trial in trials if trial.test_type == kind and trial.purpose != "witness"]
        given = [trial for trial in mine if isinstance(trial.load, Open)]
        if not given:
            continue
        at_rate, closed = defaultdict[str, list[Trial]](list), defaultdict[str, list[float]](list)
        for trial in mine:
            if isinstance(trial.load, Open):
                at_rate[trial.implementation].append(trial)
            elif isinstance(trial.load, Closed) and trial.rankable:
                closed[trial.implementation].append(trial.throughput)
        rows = [
            row.model_copy(
                update={
                    "closed_loop": _middle(closed[row.implementation]),
                    "points": _points(at_rate[row.implementation], rules),
                }
            )
            for row in capacities(info, kind, given, goal, reasons, rules)
        ]
        found[kind] = LatencyTable(test_type=kind, goal=goal, rows=tuple(rows))
    return found


def _open_loop(info: RunInfo) -> OpenLoop:
    return section(info, "open_loop", OpenLoop) or OpenLoop()


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def capacities(
    info: RunInfo, kind: str, trials: Sequence[Trial], goal: LatencyGoal, reasons: Reasons, rules: Rules
) -> tuple[GoalRow, ...]:
    """Ranked rows first, best first. Only who met the goal in every process has a capacity: to leave out the others
    would flatter."""
    confidence, by_process = _open_loop(info).confidence, defaultdict[str, dict[int, list[Trial]]](dict)
    for trial in trials:
        by_process[trial.implementation].setdefault(trial.process, []).append(trial)
    rows, values = [], {}
    for name in (one.name for one in info.implementations if kind in one.test_types):
        own = {process: bracket(loads, goal, confidence) for process, loads in sorted(by_process[name].items())}
        ends = own.values()
        missed = sum(each.low is None for each in ends)
        why = reasons.get((kind, name), "") or ("" if own else "missing")
        why = why or (f"{goal.label} shown at no load in {missed} of {len(own)} processes" if missed else "")
        undecided = sum(not each.decided(goal, confidence) for each in ends)
        flags = ["lower bound"] if any(each.low and not each.high for each in ends) else []
        flags += [f"{undecided} of {len(own)} brackets not decided"] if undecided else []
        flags += ["provisional"] if 0 < len(own) < PROVISIONAL_BELOW else []
        above = _middle([each.high.rate for each in ends if each.high])
        rows.append(
            GoalRow(implementation=name, capacity=None, above=above, ranked=not why, reason=why, flags=tuple(flags))
        )
        if not why:
            values[name] = {(process, 0): each.low.rate for process, each in own.items() if each.low}
    found = Tables({ONLY: values}, deployments_of(info)).standings(rules, higher=True)
    rows = [row.model_copy(update={"capacity": found.get(row.implementation)}) for row in rows]
    return best_first(rows, lambda row: row.capacity)


def _points(trials: Sequence[Trial], rules: Rules) -> tuple[RatePoint, ...]:
    """Latency at each share of the throughput and at each common rate, by rate."""
    groups: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)
    for trial in trials:
        if isinstance(trial.load, Open) and trial.purpose in ("share", "common"):
            groups[trial.purpose, trial.load.rate if trial.share is None else trial.share].append(trial)
    made = []
    for members in groups.values():
        valid = [trial for trial in members if trial.rankable and trial.latency]
        # Had the server failed to hold the rate in one process, the others alone would be those in which it did.
        lost = any(g.outcome is Outcome.FAIL and g.name in LOST for trial in members for g in trial.gates)
        held = [] if lost else valid
        first, lags = members[0], [trial.lag_p99 for trial in members if trial.lag_p99 is not None]
        flags = dict.fromkeys(g.word for t in members for g in t.gates if g.outcome is not Outcome.PASS and g.word)
        made.append(
            RatePoint(
                purpose="share" if first.purpose == "share" else "common",
                share=first.share,
                rate=median(trial.load.rate for trial in members if isinstance(trial.load, Open)),
                percentiles=percentiles(
                    [(t.process, t.latency.percentiles, t.answered or 0) for t in held if t.latency], rules.confidence
                ),
                maximum=max((trial.latency.max for trial in held if trial.latency), default=None),
                lag_p99=_middle(lags),
                processes=len(valid),
                dropped=len(members) - len(valid),
                flags=tuple(flags),
            )
        )
    return tuple(sorted(made, key=lambda point: point.rate))
