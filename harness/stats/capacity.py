"""Latency over load and the ranking by the capacity at a latency goal, from the records of a run. Pure.

The unit is the replicate, as everywhere: a percentile is taken within each load, and its interval over the processes;
requests of several loads are never pooled. Capacities are compared on logarithms by the engine of the other tables.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from harness.records.models import GoalCapacity, LatencyGoal, Outcome, RateSample, RunInfo
from harness.records.rates import RateRecords
from harness.stats import estimates, metric, rules, sets
from harness.stats.metric import MetricRows
from harness.stats.model import Estimate, GoalRow, LatencyTable, MachineLatency, Ranking, RatePoint
from harness.stats.tables import NOTHING, Rules, Standings, standings
from harness.stats.values import PROVISIONAL_BELOW, log_matrix

BEYOND = 5  # requests that must be slower than a percentile for it to be shown
LOST = frozenset({"errors", "achieved-rate", "unfinished", "response-size"})  # gates that a server fails
LOWER_BOUND = "lower bound"
Point = tuple[str, float]  # purpose; share, or rate where all have the same


def with_latency(ranking: Ranking, info: RunInfo, records: RateRecords) -> Ranking:
    """The ranking with the latency tables of the run's loads at given rates; as it is for a run without any."""
    if not records.rates and not records.capacities:
        return ranking
    by_type: defaultdict[str, list[GoalCapacity]] = defaultdict(list)
    for capacity in records.capacities:
        by_type[capacity.test_type].append(capacity)
    set_of = sets.set_of_block(info)
    rows = {kind: metric.across(_metric(found), set_of, info.reference) for kind, found in by_type.items()}
    known = metric.prior([metric.fitted(one) for one in rows.values() if one.values])
    replication = rules.replication(info)
    rule = Rules(alpha=1 - replication.confidence, confidence=replication.confidence, reference=info.reference)
    tables = {}
    for kind in info.levels:
        if kind not in by_type:
            continue
        found = (
            standings(rows[kind], rule, prior=known, floor=0.0, higher=True, duets={}) if rows[kind].values else NOTHING
        )
        tables[kind] = _table(kind, by_type[kind], found, ranking, info, records)
    return ranking.model_copy(update={"latency": tables, "machine_latency": _machine(records.rates)})


def _metric(capacities: Sequence[GoalCapacity]) -> MetricRows:
    """Rates of those who met the goal in every process: leaving out the processes that did not would flatter."""
    values: defaultdict[str, dict[int, float]] = defaultdict(dict)
    never = {one.implementation for one in capacities if one.rate is None}
    for one in capacities:
        if one.rate is not None and one.implementation not in never:
            values[one.implementation][one.block] = one.rate
    return MetricRows(values={name: dict(sorted(found.items())) for name, found in values.items()}, windows={})


def _table(
    kind: str,
    capacities: Sequence[GoalCapacity],
    found: Standings,
    ranking: Ranking,
    info: RunInfo,
    records: RateRecords,
) -> LatencyTable:
    goal = capacities[-1].goal
    by_name: defaultdict[str, list[GoalCapacity]] = defaultdict(list)
    for capacity in capacities:
        by_name[capacity.implementation].append(capacity)
    refused = {
        row.implementation: row.reason
        for row in (ranking.test_types[kind].headline.rows if kind in ranking.test_types else ())
        if not row.ranked
    }
    rows = [
        _row(one.name, kind, by_name.get(one.name, ()), found, refused.get(one.name, ""), goal, records)
        for one in info.implementations
        if kind in one.test_types
    ]
    last = len(rows) + 1
    rows.sort(key=lambda row: (row.capacity.position if row.capacity and row.ranked else last, row.implementation))
    return LatencyTable(test_type=kind, goal=goal, rows=tuple(rows), comparability=found.comparability)


def _row(
    name: str,
    kind: str,
    capacities: Sequence[GoalCapacity],
    found: Standings,
    refused: str,
    goal: LatencyGoal,
    records: RateRecords,
) -> GoalRow:
    missed = sum(one.rate is None for one in capacities)
    reason = refused
    if not reason and not capacities:
        reason = "missing"
    elif not reason and missed:
        reason = f"{goal.label} shown at no rate in {missed} of {len(capacities)} replicates"
    above = [one.above for one in capacities if one.above is not None]
    return GoalRow(
        implementation=name,
        capacity=found.of.get(name),
        closed_loop=median(one.closed_loop for one in capacities) if capacities else None,
        above=median(above) if above else None,
        ranked=not reason,
        reason=reason,
        words=tuple(_words(capacities)),
        points=points([s for s in records.rates if (s.implementation, s.test_type) == (name, kind)]),
    )


def _words(capacities: Sequence[GoalCapacity]) -> Iterable[str]:
    if any(one.rate is not None and one.above is None for one in capacities):
        yield LOWER_BOUND
    if undecided := sum(not one.decided for one in capacities):
        yield f"{undecided} of {len(capacities)} brackets not decided"
    if contradictions := sum(one.contradictions for one in capacities):
        yield f"{contradictions} contradicting load{'s' if contradictions > 1 else ''}"
    if 0 < len(capacities) < PROVISIONAL_BELOW:
        yield "provisional"


def points(samples: Sequence[RateSample], confidence: float = 0.95) -> tuple[RatePoint, ...]:
    """Latency at each share of the capacity and at each common rate, by rate."""
    groups: defaultdict[Point, list[RateSample]] = defaultdict(list)
    for sample in samples:
        if sample.purpose == "share" and sample.share is not None:
            groups[sample.purpose, sample.share].append(sample)
        elif sample.purpose == "common":
            groups[sample.purpose, sample.asked_rate].append(sample)
    made = [_point(members, confidence) for members in groups.values()]
    return tuple(sorted(made, key=lambda point: point.rate))


def _point(members: Sequence[RateSample], confidence: float) -> RatePoint:
    valid = [sample for sample in members if sample.valid and sample.latency is not None]
    held = valid if not any(map(lost, members)) else []
    first = members[0]
    words = dict.fromkeys(g.word for s in members for g in s.gates if g.outcome is not Outcome.PASS and g.word)
    lags = [sample.lag_p99 for sample in members if sample.lag_p99 is not None]
    return RatePoint(
        purpose="share" if first.purpose == "share" else "common",
        share=first.share,
        rate=median(sample.asked_rate for sample in members),
        achieved_rate=median(sample.achieved_rate for sample in members),
        percentiles=_percentiles(held, confidence),
        maximum=max((sample.latency.max for sample in held if sample.latency), default=None),
        lag_p99=median(lags) if lags else None,
        replicates=len(valid),
        dropped=len(members) - len(valid),
        words=tuple(words),
    )


def lost(sample: RateSample) -> bool:
    """Whether the server did not hold the rate: the other replicates alone would be those in which it did."""
    return any(gate.outcome is Outcome.FAIL and gate.name in LOST for gate in sample.gates)


def _percentiles(valid: Sequence[RateSample], confidence: float) -> dict[str, Estimate]:
    values: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for sample in valid:
        for key, seconds in sample.latency.percentiles.items() if sample.latency else ():
            if seconds > 0 and shown(key, sample.answered):
                values[key][sample.block] = seconds
    # A percentile that some loads were too short for would be that of the fast ones.
    return {key: estimate_of(found, confidence) for key, found in values.items() if len(found) == len(valid)}


def shown(percentile: str, requests: int) -> bool:
    """Whether enough requests are slower than a percentile ("99.9") for it to be one."""
    return round(requests * (1 - float(percentile) / 100), 6) >= BEYOND


def estimate_of(values: Mapping[int, float], confidence: float) -> Estimate:
    """The median of values by block, with its interval."""
    ordered = dict(sorted(values.items()))
    stats = estimates.moments(log_matrix([ordered]))
    low, high = estimates.intervals(stats, confidence)
    return Estimate(
        median=float(stats.median[0]),
        low=estimates.finite(float(low[0])),
        high=estimates.finite(float(high[0])),
        replicates=len(ordered),
        values=tuple(ordered.values()),
        blocks=tuple(ordered),
    )


def _machine(rates: Sequence[RateSample]) -> MachineLatency | None:
    found = [sample for sample in rates if sample.purpose == "machine" and sample.latency]
    if not found or found[-1].latency is None:
        return None
    last, latency = found[-1], found[-1].latency
    known = {key: value for key, value in latency.percentiles.items() if shown(key, last.answered)}
    return MachineLatency(rate=last.asked_rate, percentiles=known, lag_p99=last.lag_p99)


def own_share(machine: MachineLatency | None, latency: float, percentile: str = "50") -> float | None:
    """Share of a latency (seconds) that the machine's own wake-up would explain, at most 1; None where unknown."""
    if machine is None or percentile not in machine.percentiles or not math.isfinite(latency) or latency <= 0:
        return None
    return min(1.0, machine.percentiles[percentile] / latency)
