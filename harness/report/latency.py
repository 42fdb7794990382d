"""Latency at given rates: the words of its tables, the same in every rendering for people, and its CSV."""

import csv
from collections.abc import Sequence
from typing import TextIO

from harness.report import Report
from harness.report.cells import interval, ratio
from harness.report.columns import AT_RATE, PERCENTILES
from harness.stats.capacity import own_share
from harness.stats.model import Estimate, GoalRow, LatencyTable, Ranking, RatePoint
from harness.units import format_rate

GOAL_HEADERS = ("rank", "implementation", "req/s at goal", "95 %", "× best", "missed at", "closed loop", "n", "remarks")
POINT_HEADERS = ("implementation", "load", "req/s", "p50", "p90", "p99", "95 %", "p99.9", "max seen", "n", "remarks")


def goal_title(table: LatencyTable) -> str:
    """``json, capacity at p99 ≤ 10 ms``."""
    return f"{table.test_type}, capacity at {table.goal.label}"


def points_title(table: LatencyTable) -> str:
    """``json, latency over load``."""
    return f"{table.test_type}, latency over load (ms from the intended send time)"


def goal_cells(row: GoalRow) -> tuple[str, ...]:
    """One implementation, in the order of GOAL_HEADERS."""
    capacity = row.capacity if row.ranked else None
    remarks = [*([row.reason] if row.reason else []), *row.words]
    return (
        capacity.rank.label if capacity else "–",
        row.implementation,
        format_rate(capacity.estimate.median if capacity else None),
        interval(capacity.estimate, 1.0) if capacity else "–",
        ratio(capacity.to_best if capacity else None),
        format_rate(row.above),
        format_rate(row.closed_loop),
        str(capacity.estimate.replicates if capacity else 0),
        ", ".join(remarks),
    )


def point_cells(row: GoalRow, point: RatePoint) -> tuple[str, ...]:
    """One rate, in the order of POINT_HEADERS."""
    p99 = point.percentiles.get("99")
    remarks = list(point.words)
    if point.dropped:
        remarks.append(f"{point.dropped} of {point.dropped + point.replicates} loads kept out")
    return (
        row.implementation,
        f"{point.share:.0%} of own" if point.share is not None else "same for all",
        format_rate(point.rate),
        *(_ms(point.percentiles.get(key)) for key in ("50", "90", "99")),
        interval(p99, 1e3) if p99 else "–",
        _ms(point.percentiles.get("99.9")),
        "–" if point.maximum is None else f"{point.maximum * 1e3:,.1f}",
        str(point.replicates),
        ", ".join(remarks),
    )


def point_rows(table: LatencyTable) -> list[tuple[str, ...]]:
    """All rates of all implementations."""
    return [point_cells(row, point) for row in table.rows for point in row.points]


def _ms(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{estimate.median * 1e3:,.2f}"


def notes(ranking: Ranking) -> list[str]:
    """What a reader must know of these figures."""
    if not ranking.latency:
        return []
    found = [
        "latency: from the intended send time of Poisson arrivals (open loop) to the last byte; each "
        "load's own percentile, medians over replicates with 95 % intervals; the maximum grows with the requests",
        'capacity at the goal: the highest rate tried that met it; the truth lies between it and "missed at". The '
        "closed loop beside it has no given rate, and its latency figures are not these",
    ]
    machine = ranking.machine_latency
    if machine and "50" in machine.percentiles:
        shares = [
            share
            for table in ranking.latency.values()
            for row in table.rows
            for point in row.points
            if point.share is not None and point.share <= 0.5 and (p50 := point.percentiles.get("50"))
            if (share := own_share(machine, p50.median)) is not None
        ]
        words = ", ".join(
            f"p{key} {value * 1e3:.2f} ms" for key, value in machine.percentiles.items() if key in ("50", "99")
        )
        text = f"the machine itself: {words} at {machine.rate:,.0f} req/s on a server that does nothing"
        if shares:
            text += f", which is {min(shares):.0%} to {max(shares):.0%} of the medians up to half of a capacity"
        found.append(text)
    return found


def export(report: Report, out: TextIO) -> None:
    """CSV: one line a rate and implementation, and one for its capacity at the goal; SI units, unknowns empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(AT_RATE)
    run = report.records.info.run_id
    for table in report.ranking.latency.values():
        for row in table.rows:
            for values in (*(_point(point) for point in row.points), _goal(table, row)):
                known = {"run": run, "test_type": table.test_type, "implementation": row.implementation, **values}
                writer.writerow("" if (value := known.get(name)) is None else value for name in AT_RATE)


def _point(point: RatePoint) -> dict[str, object]:
    found: dict[str, object] = {
        "kind": point.purpose,
        "share": point.share,
        "requests_per_second_asked": point.rate,
        "requests_per_second_achieved": point.achieved_rate,
        "latency_maximum_seconds": point.maximum,
        "generator_lag_p99_seconds": point.lag_p99,
        "replicates": point.replicates,
        "dropped": point.dropped,
        "remarks": "; ".join(point.words),
    }
    for key in PERCENTILES:
        found |= _ends(f"latency_p{key}_seconds", point.percentiles.get(key))
    return found


def _goal(table: LatencyTable, row: GoalRow) -> dict[str, object]:
    capacity = row.capacity if row.ranked else None
    return {
        "kind": "goal",
        "replicates": capacity.estimate.replicates if capacity else 0,
        "goal_percentile": table.goal.percentile,
        "goal_seconds": table.goal.seconds,
        "goal_rank_low": capacity.rank.low if capacity else None,
        "goal_rank_high": capacity.rank.high if capacity else None,
        "goal_tie_group": capacity.tie_group if capacity else None,
        **_ends("goal_requests_per_second", capacity.estimate if capacity else None),
        "goal_missed_at_requests_per_second": row.above,
        "ranked": row.ranked,
        "reason": row.reason or None,
        "remarks": "; ".join(row.words),
    }


def _ends(name: str, estimate: Estimate | None) -> dict[str, object]:
    if estimate is None:
        return {}
    return {name: estimate.median, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def tables(ranking: Ranking) -> list[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """Title, headers and lines of every table for people."""
    found: list[tuple[str, Sequence[str], list[tuple[str, ...]]]] = []
    for table in ranking.latency.values():
        found.append((goal_title(table), GOAL_HEADERS, [goal_cells(row) for row in table.rows]))
        found.append((points_title(table), POINT_HEADERS, point_rows(table)))
    return found
