"""The latency of the closed loop: what notes say of it, and its place in documents."""

from harness.report.columns import CLOSED_LOOP
from harness.stats.closed_loop import SERVICE, WRK
from harness.stats.model import ClosedLoopLatency, Ranking, Row

TOLD = {
    SERVICE: "service time of the closed loop at the table's level, by the project's own generator in audited loads of "
    "a second, over the processes that have one; no client's latency at a given rate, which --profile latency measures",
    WRK: "wrk's, altered by its correction, which adds samples behind every slow one (docs/method.md): not every "
    "implementation has an audited load at the level, which needs cargo",
}


def notes(ranking: Ranking) -> list[str]:
    """What p50 and p99 are, for each basis that is there."""
    tables = [table for one in ranking.test_types.values() for table in (one.headline, *one.levels)]
    found = {row.latency.basis for table in tables for row in table.rows if row.latency and row.latency.percentiles}
    names = {SERVICE: "p50, p99", WRK: "wrk p50, p99"}
    return [f"{names[basis]}: {text}" for basis, text in TOLD.items() if basis in found]


def values(row: Row) -> list[object]:
    """In the order of ``columns.CLOSED_LOOP``, seconds."""
    known = row.latency
    if known is None:
        return [None] * len(CLOSED_LOOP)
    ends: list[object] = []
    for point in ("50", "90", "99"):
        one = known.percentiles.get(point)
        ends += (one.median, one.low, one.high) if one else (None, None, None)
    return [known.basis, known.mean.replicates, known.mean.median, *ends, known.maximum]


def service_times(ranking: Ranking) -> dict[str, dict[str, list[dict[str, object]]]]:
    """Test type -> implementation -> a figure for each level in the run's order, empty where it has no service time."""
    found: dict[str, dict[str, list[dict[str, object]]]] = {}
    for kind, one in ranking.test_types.items():
        names = dict.fromkeys(row.implementation for table in one.levels for row in table.rows)
        rows = [{row.implementation: row for row in table.rows} for table in one.levels]
        by_name = {name: [_figure(at[name].latency if name in at else None) for at in rows] for name in names}
        kept = {name: figures for name, figures in by_name.items() if any(figures)}
        if kept:
            found[kind] = kept
    return found


def _figure(known: ClosedLoopLatency | None) -> dict[str, object]:
    return known.model_dump(mode="json", by_alias=True) if known and known.basis == SERVICE else {}
