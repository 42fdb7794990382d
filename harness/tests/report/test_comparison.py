"""Tests for the comparison report. An undecided cell must not look unchanged."""

from typing import Any

import pytest

from harness.records.loads import ClosedLoop
from harness.report import summary
from harness.stats.ranking_model import CellComparison, Comparison, Effect, Ratio


def effect(value: float, low: float, high: float, verdict: str = "cannot tell") -> Effect:
    return Effect.model_validate({"ratio": Ratio(value=value, low=low, high=high), "verdict": verdict})


SAME = effect(1.0, 0.98, 1.02, "same")
OPEN = effect(0.97, 0.80, 1.17)
SLOWER = effect(0.80, 0.75, 0.85, "slower")
FASTER = effect(1.30, 1.20, 1.40, "faster")
MISSING = Effect(ratio=None, verdict="cannot tell")


def cell(throughput: Effect, cpu: Effect = OPEN, name: str = "a", **fields: Any) -> CellComparison:
    return CellComparison(
        implementation=name, test_type="json", load=ClosedLoop(connections=64),
        throughput=throughput, cpu_per_request=cpu, **fields,
    )  # fmt: skip


def compared(*cells: CellComparison) -> Comparison:
    return Comparison(run_a="A", run_b="B", threshold=0.05, interleaved=True, cells=cells)


@pytest.mark.parametrize(
    ("throughput", "cpu", "word"),
    [
        (SAME, SAME, "same"),
        (SAME, OPEN, "cannot tell"),
        (
            OPEN,
            SAME,
            "cannot tell",
        ),  # a lock can reduce the throughput at the same CPU time per request
        (SAME, MISSING, "same"),
        (OPEN, OPEN, "cannot tell"),
        (MISSING, MISSING, "cannot tell"),
        (SLOWER, SAME, "slower"),
        (SAME, SLOWER, "slower"),
        (FASTER, OPEN, "faster"),
        (FASTER, SAME, "faster"),
    ],
)
def test_a_cell_has_one_of_four_words(throughput: Effect, cpu: Effect, word: str) -> None:
    assert summary.cell_verdict(cell(throughput, cpu)) == word


def test_runs_without_common_cells_are_undecided() -> None:
    (nothing,) = summary.summarize_comparison(compared())
    assert nothing.endswith("cannot tell, because the runs have no cell in common")


def test_cells_of_a_single_run_are_listed_once() -> None:
    others = [cell(MISSING, MISSING, name=name, reason="B: not measured", only_in="A") for name in ("x", "y")]
    comparison = compared(cell(SAME, SAME), *others)
    assert summary.summarize_comparison(comparison) == (
        "B over A, 1 cell: same within 5 % in 1",
        "Only A measured 2 cells (x, y; json).",
    )
    assert summary.comparison_table(comparison, every=True).columns[3].cells == ("a",)


def test_table_is_ordered_by_severity_with_reasons() -> None:
    missing = cell(MISSING, MISSING, name="none", reason="B: verification failed")
    result = compared(cell(SAME, SAME, name="same"), cell(SLOWER, name="slow"), missing)
    table = summary.comparison_table(result, every=False)
    assert table.columns[3].cells == ("slow", "none")
    assert table.columns[4].cells[1] == "–"
    assert table.remarks == ("B: verification failed: none json",)
    assert summary.comparison_table(result, every=True).columns[3].cells == ("slow", "none", "same")
