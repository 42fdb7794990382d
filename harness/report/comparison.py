"""Two runs compared, in words: slower, faster, the same within a margin, or cannot tell; never silence for any."""

from collections import Counter
from typing import Literal

from harness.report.tables import TableRows, TextTable, format_count, format_ratio
from harness.stats.ranking_model import CellComparison, Comparison, Effect

Verdict = Literal["slower", "cannot tell", "faster", "same"]
VERDICT_ORDER: tuple[Verdict, ...] = ("slower", "cannot tell", "faster", "same")  # the gravest first


def effect_verdict(effect: Effect, margin: float) -> Verdict:
    """One metric of one cell: ``same`` only where its interval leaves no room for more than the margin."""
    found = effect.ratio
    if found and found.low and found.high and found.low >= 1 / (1 + margin) and found.high <= 1 + margin:
        return "same"
    return effect.verdict if effect.verdict in ("faster", "slower") else "cannot tell"


def cell_verdict(cell: CellComparison, margin: float) -> Verdict:
    """A cell is slower where either figure is, else faster where either is; the same only where all that it has are."""
    known = [each for each in (cell.cpu_per_request, cell.throughput) if each.verdict != "missing"]
    found = [effect_verdict(effect, margin) for effect in known] or ["cannot tell"]
    order: tuple[Verdict, ...] = ("slower", "faster", "cannot tell", "same")
    return next(word for word in order if word in found)


def summarize_comparison(comparison: Comparison) -> tuple[str, ...]:
    """``B over A, 24 cells: slower in 2, cannot tell in 6, the same within 5 % in 16``, and what an open one means."""
    margin = f"{comparison.fail_over * 100:.3g} %"
    counts = Counter(cell_verdict(cell, comparison.fail_over) for cell in comparison.cells)
    names = {"same": f"the same within {margin}"}
    found = [f"{names.get(word, word)} in {counts[word]}" for word in VERDICT_ORDER if counts[word]]
    said = ", ".join(found) or "cannot tell, they have no cell in common"
    first = f"{comparison.run_b} over {comparison.run_a}, {format_count(len(comparison.cells), 'cell')}: {said}"
    if not counts["cannot tell"]:
        return (first,)
    return (
        first,
        f"Cannot tell is not the same: in {format_count(counts['cannot tell'], 'cell')} a difference of more than {margin} "
        "may be there. More processes, or a quieter machine, would tell.",
    )


def comparison_table(comparison: Comparison, *, every: bool) -> TextTable:
    """The cells, the gravest first; those that are the same only with ``every``."""
    judged = [(cell_verdict(cell, comparison.fail_over), cell) for cell in comparison.cells]
    judged.sort(key=lambda item: VERDICT_ORDER.index(item[0]))
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
