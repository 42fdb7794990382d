"""What the page asks harness.stats for: another baseline, an overall score of some test types, two runs compared.

Every ratio and interval on the page is made here or in ranking.json: the page itself estimates nothing.
"""

from collections.abc import Collection, Sequence

from harness.dashboard.documents import BaselineDocument, BaselineRatios, ComparisonDocument, OverallDocument
from harness.dashboard.runs import Run
from harness.errors import StoreError
from harness.records.models import RunInfo, Sample
from harness.stats.model import Ranking, Table

FAIL_OVER = 0.05  # of a regression, as ./tfb compare has it by default; the page shows the verdict, not the exit code
MOST_EMBEDDED = 12  # implementations of a saved file that brings the ratios to every baseline


def relative_to(run: Run, test_type: str, base: str, samples: Sequence[Sample]) -> BaselineDocument:
    """The tables of a test type relative to ``base``. Raises StoreError when it is none of the run.

    ``samples`` are all of the run: variances are pooled over its test types, so that one alone would rank otherwise.
    """
    if test_type not in run.info.levels or base not in {item.name for item in run.info.implementations}:
        raise StoreError(f"{base!r} in {test_type!r}: not measured in this run")
    return _relative(_ranked(run, list(run.info.levels), samples, reference=base), test_type, base)


def _relative(ranking: Ranking, test_type: str, base: str) -> BaselineDocument:
    found = ranking.test_types.get(test_type)
    tables = [] if found is None else [("", found.headline), *((_label(table), table) for table in found.levels)]
    return BaselineDocument(test_type=test_type, base=base, tables={label: _ratios(table) for label, table in tables})


def relative_to_all(run: Run, samples: Sequence[Sample]) -> dict[str, dict[str, BaselineDocument]]:
    """Every test type relative to every implementation but the reference; nothing where there are many."""
    names = [item.name for item in run.info.implementations]
    if len(names) > MOST_EMBEDDED or not samples:
        return {}
    others = [name for name in names if name != run.info.reference]
    rankings = {base: _ranked(run, list(run.info.levels), samples, reference=base) for base in others}
    return {
        kind: {
            base: _relative(rankings[base], kind, base)
            for base in others
            if any(sample.implementation == base and sample.test_type == kind for sample in samples)
        }
        for kind in run.info.levels
    }


def overall(run: Run, test_types: Collection[str], samples: Sequence[Sample]) -> OverallDocument:
    """Scores over some test types, in the run's order. Raises StoreError for one that the run has not."""
    unknown = [kind for kind in test_types if kind not in run.info.levels]
    if unknown or not test_types:
        raise StoreError(f"{', '.join(unknown) or 'no test type'}: not measured in this run")
    chosen = [kind for kind in run.info.levels if kind in test_types]
    ranking = _ranked(run, chosen, samples, reference=run.info.reference)
    return OverallDocument(test_types=tuple(chosen), scores=ranking.overall)


def comparison(before: Run, after: Run) -> ComparisonDocument:
    """``after`` over ``before``, cell by cell."""
    from harness.stats.compare import compare  # here: scipy takes longer to import than most pages to serve

    one, other = before.records(), after.records()
    return ComparisonDocument(comparison=compare(one, other, FAIL_OVER))


def _ranked(run: Run, test_types: Sequence[str], samples: Sequence[Sample], *, reference: str | None) -> Ranking:
    from harness.stats.ranking import rank  # here: as above

    info: RunInfo = run.info.model_copy(
        update={"reference": reference, "levels": {kind: run.info.levels[kind] for kind in test_types}}
    )
    wanted = [sample for sample in samples if sample.test_type in info.levels]
    verdicts = [verdict for verdict in run.verdicts() if verdict.test_type in info.levels]
    return rank(info, wanted, run.replicates(), verdicts)


def _label(table: Table) -> str:
    return table.level.label if table.level else ""


def _ratios(table: Table) -> dict[str, BaselineRatios]:
    return {
        row.implementation: BaselineRatios(
            throughput=row.throughput.to_reference if row.throughput else None,
            cpu_per_request=row.cpu_per_request.to_reference if row.cpu_per_request else None,
        )
        for row in table.rows
        if row.throughput or row.cpu_per_request
    }
