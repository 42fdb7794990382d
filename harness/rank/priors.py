"""What all tables of a run teach of its variances, by metric."""

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass

from harness.model import Level
from harness.rank import basis
from harness.rank.basis import Fitted
from harness.rank.moderation import Prior
from harness.rank.values import CellValues, log_matrix

Cells = Mapping[tuple[str, str], Mapping[Level, CellValues]]


@dataclass(frozen=True, kw_only=True)
class Priors:
    """How alike the variances of the run's implementations are in each metric."""

    throughput: Prior
    cpu_per_request: Prior


def of_run(cells: Cells, unranked: Container[tuple[str, str]] = ()) -> Priors:
    """Learned from every table of a test type at a level; rows that are not ranked teach nothing."""
    tables: defaultdict[tuple[str, Level], list[tuple[str, CellValues]]] = defaultdict(list)
    for (name, test_type), levels in cells.items():
        if (name, test_type) not in unranked:
            for level, cell in levels.items():
                tables[test_type, level].append((name, cell))
    throughput: list[Fitted] = []
    cpu: list[Fitted] = []
    for members in tables.values():
        for found, metric in ((throughput, "throughput"), (cpu, "cpu_per_request")):
            rows = [(name, values) for name, cell in members if (values := getattr(cell, metric))]
            if rows:
                names, by_block = zip(*rows, strict=True)
                found.append(basis.fitted(log_matrix(by_block), names))
    return Priors(throughput=basis.prior(throughput), cpu_per_request=basis.prior(cpu))
