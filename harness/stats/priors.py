"""What all tables of a run teach of its variances, by metric."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from harness.records.models import Load
from harness.stats import metric
from harness.stats.metric import MetricRows
from harness.stats.moderation import Prior
from harness.stats.values import CellValues

Cells = Mapping[tuple[str, str], Mapping[Load, CellValues]]


@dataclass(frozen=True, kw_only=True)
class Priors:
    """How alike the variances of the run's implementations are in each metric."""

    throughput: Prior
    cpu_per_request: Prior


def of_run(cells: Cells, unranked: Container[tuple[str, str]] = ()) -> Priors:
    """Learned from every table of a test type at a level; rows that are not ranked teach nothing."""
    tables: defaultdict[tuple[str, Load], list[tuple[str, CellValues]]] = defaultdict(list)
    for (name, test_type), levels in cells.items():
        if (name, test_type) not in unranked:
            for level, cell in levels.items():
                tables[test_type, level].append((name, cell))
    members = [table for table in tables.values() if table]
    return Priors(
        throughput=_prior([metric.throughput(table) for table in members]),
        cpu_per_request=_prior([metric.cpu_per_request(table) for table in members]),
    )


def _prior(tables: Iterable[MetricRows]) -> Prior:
    return metric.prior([metric.fitted(rows) for rows in tables if rows.values])
