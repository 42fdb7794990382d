"""A run's CPU per request beside that of warm servers."""

from pathlib import Path

import pytest

from harness.benchmarks import warmth
from harness.benchmarks.warmth import figures, ratios
from harness.errors import UsageError
from harness.records import store
from harness.stats.ranking import rank
from harness.tests import records

RUN = {("a", "json"): 12e-6, ("a", "db"): 30e-6, ("floor", "json"): 5.5e-6, ("floor", "db"): 10e-6, ("b", "json"): 1e-6}
WARM = {("a", "json"): 10e-6, ("a", "db"): 30e-6, ("floor", "json"): 5e-6, ("floor", "db"): 11e-6}


def test_each_cell_of_both_runs_is_one_ratio() -> None:
    assert ratios(RUN, WARM) == pytest.approx(
        {("a", "json"): 1.2, ("a", "db"): 1.0, ("floor", "json"): 1.1, ("floor", "db"): 10 / 11}
    )


def test_what_the_machine_changed_by_is_taken_off_test_by_test() -> None:
    found = ratios(RUN, WARM, "floor")
    assert found == pytest.approx({("a", "json"): 1.2 / 1.1, ("a", "db"): 1.1})


def test_a_steady_server_without_one_of_the_tests_is_refused() -> None:
    lacking = {cell: seconds for cell, seconds in WARM.items() if cell != ("floor", "db")}
    with pytest.raises(UsageError, match="floor has no db in both runs"):
        ratios(RUN, lacking, "floor")


def test_figures_are_the_medians_of_the_samples_at_the_level_that_the_tables_show(tmp_path: Path) -> None:
    records.write(tmp_path)
    run = store.read(tmp_path / "20260101-000000")
    ranking = rank(run.info, run.samples, run.replicates, run.verdicts)
    shown = {
        (row.implementation, kind): row.cpu_per_request.estimate.median
        for kind, test in ranking.test_types.items()
        for row in test.headline.rows
        if row.cpu_per_request is not None
    }
    assert shown
    assert figures(run) == pytest.approx(shown)


def test_a_run_beside_itself_is_warm_in_every_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records.write(tmp_path)
    folder = str(tmp_path / "20260101-000000")
    assert warmth.main([folder, folder]) == 0
    cells = len(figures(store.read(tmp_path / "20260101-000000")))
    assert capsys.readouterr().out.endswith(f"\n{cells} of {cells} cells within 10%, 0 above\n")
