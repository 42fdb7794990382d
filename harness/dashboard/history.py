"""An implementation over runs."""

from collections.abc import Iterator, Sequence

from harness.dashboard.documents import HistoryDocument, HistoryPoint, RunDocument
from harness.dashboard.titles import machine_of


def history_points(document: RunDocument) -> Iterator[tuple[str, HistoryPoint]]:
    """Each implementation's headline figures of one run."""
    for test_type, test in document.ranking.test_types.items():
        of = sum(row.ranked for row in test.headline.rows)
        for row in test.headline.rows:
            standing = row.throughput
            yield (
                row.implementation,
                HistoryPoint(
                    run_id=document.run.run_id,
                    title=document.title,
                    environment=document.run.environment,
                    machine=machine_of(document.run),
                    started_at=document.run.started_at,
                    profile=document.run.profile,
                    test_type=test_type,
                    level=row.level,
                    throughput=standing.estimate if standing else None,
                    rank=standing.rank if standing else None,
                    of=of,
                    to_reference=standing.to_reference if standing else None,
                    cpu_per_request=row.cpu_per_request.estimate if row.cpu_per_request else None,
                    reason=row.reason,
                ),
            )


def history(documents: Sequence[RunDocument], implementation: str) -> HistoryDocument:
    """An implementation over runs, oldest first."""
    points = [
        point
        for document in sorted(documents, key=lambda document: document.run.started_at)
        for name, point in history_points(document)
        if name == implementation
    ]
    return HistoryDocument(implementation=implementation, points=tuple(points))
