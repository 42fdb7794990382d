"""The closed loop's latency beside each row of a ranking, on the basis that ``closed_loop`` chooses. Pure."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

from harness.records.models import Latency, LatencyBasis, Load, Sample
from harness.stats.capacity import estimate_of, shown
from harness.stats.closed_loop import SERVICE, basis_of, latency_of
from harness.stats.model import ClosedLoopLatency, Estimate, Ranking, Row, Table

PERCENTILES = ("50", "90", "99")  # of a row; all that there are stand with the samples


def with_closed_loop(ranking: Ranking, samples: Sequence[Sample], confidence: float = 0.95) -> Ranking:
    """The ranking with the latency of each row at its level."""
    cells: defaultdict[tuple[str, str, Load], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.duet_partner is None and (sample.latency or sample.audited) and sample.level.factor is None:
            cells[sample.implementation, sample.test_type, sample.level].append(sample)
    if not cells:
        return ranking

    def of(row: Row, kind: str) -> list[Sample]:
        return cells.get((row.implementation, kind, row.level), []) if row.level else []

    def with_rows(table: Table) -> Table:
        found = [of(row, table.test_type) for row in table.rows]
        basis = basis_of(found)
        rows = [_with(row, summary(members, basis, confidence)) for row, members in zip(table.rows, found, strict=True)]
        return table.model_copy(update={"rows": tuple(rows)})

    return ranking.model_copy(
        update={
            "test_types": {
                name: one.model_copy(
                    update={"headline": with_rows(one.headline), "levels": tuple(map(with_rows, one.levels))}
                )
                for name, one in ranking.test_types.items()
            }
        }
    )


def _with(row: Row, found: ClosedLoopLatency | None) -> Row:
    """The row with its latency; its response time is the mean of the same."""
    return row.model_copy(update={"latency": found, "response_time": found.mean.median}) if found else row


def summary(members: Sequence[Sample], basis: LatencyBasis, confidence: float = 0.95) -> ClosedLoopLatency | None:
    """Medians over processes of each process's median sample; None where there is none on this basis."""
    kept = [(one, latency) for one in members if (latency := latency_of(one, basis))]
    if not kept:
        return None

    def estimate(read: Callable[[Latency], float | None]) -> Estimate | None:
        values: defaultdict[int, list[float]] = defaultdict(list)
        for one, latency in kept:
            if (value := read(latency)) is not None and value > 0:
                values[one.process].append(value)
        if len(values) < len({one.process for one, _ in kept}):
            return None
        found = estimate_of({process: median(each) for process, each in values.items()}, confidence)
        return found.model_copy(update={"values": (), "blocks": ()})

    mean = estimate(lambda latency: latency.mean)
    if mean is None:
        return None
    enough = min(_requests(one, basis) for one, _ in kept)
    points = {key: estimate(lambda latency, key=key: latency.percentiles.get(key)) for key in PERCENTILES}  # type: ignore[misc]
    return ClosedLoopLatency(
        basis=basis,
        mean=mean,
        percentiles={key: point for key, point in points.items() if point and shown(key, enough)},
        maximum=max(latency.max for _, latency in kept),
    )


def _requests(sample: Sample, basis: LatencyBasis) -> int:
    audited = sample.audited
    return audited.requests if basis == SERVICE and audited and audited.latency else sample.requests
