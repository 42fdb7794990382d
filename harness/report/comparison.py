"""Describes a comparison of two runs: the verdict for each cell, a summary and a table."""

from collections import Counter

from harness.records.verdicts import WORST_FIRST, Verdict
from harness.report.tables import TableRows, TextTable, format_count, format_ratio
from harness.stats.ranking_model import CellComparison, Comparison

# Verdicts in order of precedence. For example, a cell with the verdicts "faster" and "same" is faster.
CELL_ORDER: tuple[Verdict, ...] = ("slower", "faster", "cannot tell", "same")


def cell_verdict(cell: CellComparison) -> Verdict:
    """Return the verdict for a cell from the verdicts for its metrics. Metrics without a ratio are ignored."""
    verdicts = [effect.verdict for effect in (cell.cpu_per_request, cell.throughput) if effect.ratio]
    return min(verdicts, key=CELL_ORDER.index, default="cannot tell")


def summarize_comparison(comparison: Comparison) -> tuple[str, ...]:
    """Return a summary such as ``B over A, 24 cells: slower in 2, cannot tell in 6``, and an explanation if needed."""
    margin = f"{comparison.threshold * 100:.3g} %"
    counts = Counter(cell_verdict(cell) for cell in comparison.cells)
    names = {"same": f"same within {margin}"}
    found = [f"{names.get(word, word)} in {counts[word]}" for word in WORST_FIRST if counts[word]]
    said = ", ".join(found) or "cannot tell, because they have no cell in common"
    first = f"{comparison.run_b} over {comparison.run_a}, {format_count(len(comparison.cells), 'cell')}: {said}"
    if not counts["cannot tell"]:
        return (first,)
    return (
        first,
        f'"Cannot tell" does not mean "same": {format_count(counts["cannot tell"], "cell")} may differ by more than '
        f"{margin}. Measure more processes, or use a quieter machine.",
    )


def comparison_table(comparison: Comparison, *, every: bool) -> TextTable:
    """Return the table of cells, with the worst verdicts first. ``every`` includes cells with the verdict "same"."""
    judged = [(cell_verdict(cell), cell) for cell in comparison.cells]
    judged.sort(key=lambda item: WORST_FIRST.index(item[0]))
    rows = TableRows([item for item in judged if every or item[0] != "same"])
    return rows.table(
        f"ratios of {comparison.run_b} to {comparison.run_a}",
        rows.column("verdict", lambda row: row[0]),
        rows.column("test", lambda row: row[1].test_type),
        rows.column("load", lambda row: row[1].load.label),
        rows.column("implementation", lambda row: row[1].implementation),
        rows.column("CPU per request", lambda row: format_ratio(row[1].cpu_per_request.ratio)),
        rows.column("req/s", lambda row: format_ratio(row[1].throughput.ratio)),
        remarks=lambda row: (f"{row[1].implementation} {row[1].test_type}", [row[1].reason] if row[1].reason else []),
    )
