"""What the page asks harness.stats for: another baseline, an overall score of some test types, two runs compared.

Every ratio and interval on the page is made here or in ranking.json: the page itself estimates nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.dashboard.documents import BaselineDocument, BaselineRatios, ComparisonDocument, OverallDocument
from harness.dashboard.runs import Run, ranked
from harness.errors import StoreError
from harness.records.models import RunRecords
from harness.stats.model import Ranking, Table

FAIL_OVER = 0.05  # of a regression, as ./tfb compare has it by default; the page shows the verdict, not the exit code
MOST_EMBEDDED = 12  # implementations of a saved file that brings the ratios to every baseline


def relative_to(run: Run, test_type: str, base: str) -> BaselineDocument:
    """The tables of a test type relative to ``base``. Raises StoreError when it is none of the run."""
    if test_type not in run.info.loads or base not in {item.name for item in run.info.implementations}:
        raise StoreError(f"{base!r} in {test_type!r}: not measured in this run")
    # Variances are pooled over the run's test types: one alone would rank otherwise.
    return _relative(_ranked(run.records(), list(run.info.loads), base), test_type, base)


def relative_to_all(run: Run) -> dict[str, dict[str, BaselineDocument]]:
    """Every test type relative to every implementation but the reference; nothing where there are many."""
    names = [item.name for item in run.info.implementations]
    records = run.records()
    if len(names) > MOST_EMBEDDED or not records.trials:
        return {}
    others = [name for name in names if name != run.info.reference]
    rankings = {base: _ranked(records, list(run.info.loads), base) for base in others}
    measured = {(trial.implementation, trial.test_type) for trial in records.trials}
    return {
        kind: {base: _relative(rankings[base], kind, base) for base in others if (base, kind) in measured}
        for kind in run.info.loads
    }


def overall(run: Run, test_types: Collection[str]) -> OverallDocument:
    """Scores over some test types, in the run's order. Raises StoreError for one that the run has not."""
    unknown = [kind for kind in test_types if kind not in run.info.loads]
    if unknown or not test_types:
        raise StoreError(f"{', '.join(unknown) or 'no test type'}: not measured in this run")
    chosen = [kind for kind in run.info.loads if kind in test_types]
    ranking = _ranked(run.records(), chosen, run.info.reference)
    return OverallDocument(test_types=tuple(chosen), scores=ranking.overall)


def comparison(before: Run, after: Run) -> ComparisonDocument:
    """``after`` over ``before``, cell by cell."""
    from harness.stats.compare import compare  # here: scipy takes longer to import than most pages to serve

    return ComparisonDocument(comparison=compare(before.records(), after.records(), FAIL_OVER))


def _ranked(records: RunRecords, test_types: Sequence[str], reference: str | None) -> Ranking:
    loads = {kind: records.info.loads[kind] for kind in test_types}
    return ranked(
        replace(
            records,
            info=records.info.model_copy(update={"reference": reference, "loads": loads}),
            trials=[trial for trial in records.trials if trial.test_type in loads],
            verdicts=[verdict for verdict in records.verdicts if verdict.test_type in loads],
        )
    )


def _relative(ranking: Ranking, test_type: str, base: str) -> BaselineDocument:
    found = ranking.test_types.get(test_type)
    tables = [] if found is None else [("", found.headline), *((_label(table), table) for table in found.tables)]
    return BaselineDocument(test_type=test_type, base=base, tables={label: _ratios(table) for label, table in tables})


def _label(table: Table) -> str:
    return table.load.label if table.load else ""


def _ratios(table: Table) -> dict[str, BaselineRatios]:
    return {
        row.implementation: BaselineRatios(
            throughput=row.throughput.to_reference if row.throughput else None,
            cpu_per_request=row.cpu_per_request.to_reference if row.cpu_per_request else None,
        )
        for row in table.rows
        if row.throughput or row.cpu_per_request
    }
