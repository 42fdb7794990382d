"""What a run measured of a comparison: the ratio of two cells with its interval, by rank's own comparison."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.claims.claim import Cell, Comparison
from harness.records.models import Load, Outcome, ReplicateRecord, RunRecords, Sample
from harness.stats import further, ratios, rules
from harness.stats.closed_loop import basis_to_compare
from harness.stats.further import METRICS, Metric, Values
from harness.stats.model import Ratio
from harness.stats.moderation import Prior
from harness.stats.nested import ONE_PROCESS
from harness.stats.values import collect
from harness.stats.verdicts import unranked

Key = tuple[str, str, Load]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A ratio as measured; ``lacking`` says why there is none."""

    ratio: Ratio | None = None
    processes: int = 0  # of the side with fewer
    confidence: float | None = None
    remarks: tuple[str, ...] = ()
    lacking: str = ""


class Evidence:
    """The records of one run, asked for one comparison after the other."""

    def __init__(self, records: RunRecords) -> None:
        self._records = records
        self._samples: dict[Key, list[Sample]] = defaultdict(list)
        for sample in records.samples:
            self._samples[sample.implementation, sample.test_type, sample.level].append(sample)
        self._replicates: dict[str, list[ReplicateRecord]] = defaultdict(list)
        for record in records.replicates:
            self._replicates[record.implementation].append(record)
        self._replication = rules.replication(records.info)
        self._priors: dict[str, Prior] = {}

    @cached_property
    def _reasons(self) -> Mapping[tuple[str, str], str]:
        found = self._records
        return unranked(found.info, found.samples, found.replicates, found.verdicts)

    def ratio(self, comparison: Comparison) -> Measured:
        """Of two cells, in the comparison's metric."""
        of, to = comparison.of, comparison.to
        assert isinstance(of, Cell) and isinstance(to, Cell)  # noqa: S101, PT018 - of a run's claim
        if lacking := self._lacking(of) or self._lacking(to):
            return Measured(lacking=lacking)
        metric = METRICS[comparison.metric]
        table = self._table(metric, of, to)
        within = bool(metric.of_process) or of.key[1:] == to.key[1:]
        names = [cell.implementation if within else cell.label for cell in (of, to)]
        for cell, name in zip((of, to), names, strict=True):
            if not table.get(name, further.NOTHING).processes:
                return Measured(lacking=f"{cell.label}: {self._why_empty(cell, metric)}")
        processes = min(len(table[name].processes) for name in names)
        confidence = 1 - rules.alpha_at(self._replication, processes)
        rows = further.rows(table)
        found = ratios.ratio(rows, names[0], names[1], self._prior(metric), confidence)
        alone = rows.in_turns and all(len(row.processes) == 1 for row in table.values())
        remarks = (*([ONE_PROCESS] if alone else []), *self._remarks(metric, (of, to)))
        return Measured(ratio=found, processes=processes, confidence=confidence, remarks=remarks)

    def errors(self, cell: Cell) -> tuple[int, int] | None:
        """Errors and requests of a cell, kept out by their gates or not; None when it was not measured."""
        samples = self._samples.get(cell.key, [])
        if not samples:
            return None
        return sum(s.errors.total for s in samples), sum(s.requests for s in samples)

    def _table(self, metric: Metric, of: Cell, to: Cell) -> dict[str, Values]:
        """The rows that both cells stand among: those of their level's table, or the two alone where it is not one."""
        if metric.of_process:
            names = [name for name in self._replicates if self._measured(name)]
            return self._rows(metric, {name: (name, ()) for name in names})
        if (of.test_type, of.level) == (to.test_type, to.level):
            keys = [key for key in self._samples if key[1:] == (of.test_type, of.level)]
            ranked = [key for key in keys if key[:2] not in self._reasons]
            return self._rows(metric, {key[0]: (key[0], self._samples[key]) for key in ranked})
        return self._rows(metric, {cell.label: (cell.implementation, self._samples[cell.key]) for cell in (of, to)})

    def _rows(self, metric: Metric, cells: Mapping[str, tuple[str, Sequence[Sample]]]) -> dict[str, Values]:
        """Values of cells that are compared, latencies on one basis; a cell is an implementation and its samples."""
        basis = basis_to_compare(samples for _, samples in cells.values())
        return {
            label: further.of_cell(metric, samples, self._replicates[name], basis)
            for label, (name, samples) in cells.items()
        }

    def _prior(self, metric: Metric) -> Prior:
        """Learned from all tables of the run, once."""
        if metric.name not in self._priors:
            tables: dict[tuple[str, Load], dict[str, tuple[str, Sequence[Sample]]]] = defaultdict(dict)
            if metric.of_process:
                return ratios.prior([further.rows(self._rows(metric, {n: (n, ()) for n in self._replicates}))])
            for (name, kind, level), samples in self._samples.items():
                if (name, kind) not in self._reasons:
                    tables[kind, level][name] = (name, samples)
            found = [further.rows(self._rows(metric, table)) for table in tables.values()]
            self._priors[metric.name] = ratios.prior(found)
        return self._priors[metric.name]

    def _measured(self, implementation: str) -> bool:
        return any(record.first_answer for record in self._replicates[implementation])

    def _lacking(self, cell: Cell) -> str:
        """Why a cell cannot be compared at all."""
        if reason := self._reasons.get((cell.implementation, cell.test_type)):
            return f"{cell.implementation} {cell.test_type}: {reason.splitlines()[0]}"
        return "" if cell.key in self._samples else f"{cell.label}: not measured"

    def _why_empty(self, cell: Cell, metric: Metric) -> str:
        failed = [
            gate.word or gate.name
            for sample in self._samples[cell.key]
            for gate in sample.gates
            if gate.outcome is Outcome.FAIL
        ]
        return f"kept out by its gates: {', '.join(dict.fromkeys(failed))}" if failed else f"no {metric.title} recorded"

    def _remarks(self, metric: Metric, cells: Sequence[Cell]) -> tuple[str, ...]:
        """The words beside the samples, of both sides; those of a whole process have none."""
        if metric.of_process:
            return ()
        samples = [sample for cell in cells for sample in self._samples[cell.key]]
        found = [cell.words for levels in collect(samples).values() for cell in levels.values()]
        return tuple(dict.fromkeys(word for words in found for word in words))
