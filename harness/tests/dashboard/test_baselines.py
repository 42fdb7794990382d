"""What the page asks harness.stats for is harness.stats's own answer."""

from pathlib import Path

import pytest

from harness.dashboard import baselines
from harness.dashboard.runs import Run
from harness.errors import StoreError
from harness.stats.ranking import rank


@pytest.fixture
def run(sample_results: Path) -> Run:
    return Run(sample_results / "20250615-small")


def test_the_ratios_to_the_reference_are_those_of_the_ranking(run: Run) -> None:
    found = baselines.relative_to(run, "db", "vertx-web")
    headline = run.ranking().test_types["db"].headline
    for row in headline.rows:
        assert row.throughput is not None
        assert found.tables[""][row.implementation].throughput == row.throughput.to_reference


def test_another_baseline_is_what_the_ranking_says_with_that_reference(run: Run) -> None:
    found = baselines.relative_to(run, "db", "express")
    other = rank(run.info.model_copy(update={"reference": "express"}), run.trials(), run.processes(), run.verdicts())
    for table in other.test_types["db"].tables:
        assert table.load is not None
        for row in table.rows:
            assert row.throughput is not None
            assert found.tables[table.load.label][row.implementation].throughput == row.throughput.to_reference
    assert found.tables[""]["express"].throughput is not None
    assert found.tables[""]["express"].throughput.value == 1


def test_a_score_over_all_test_types_is_the_rankings(run: Run) -> None:
    found = baselines.overall(run, list(run.info.loads))
    assert found.scores == run.ranking().overall


def test_a_score_over_some_leaves_nobody_out_who_has_these(run: Run) -> None:
    scores = {score.implementation: score for score in baselines.overall(run, ["json", "db"]).scores}
    assert scores["es4x"].throughput is not None  # which lacks updates, and so has no score over all
    assert scores["es4x"].throughput.estimate.low is not None
    assert set(scores["es4x"].ratios) == {"json", "db"}


def test_a_saved_file_brings_every_other_baseline_of_a_small_run(run: Run) -> None:
    found = baselines.relative_to_all(run)
    assert set(found["json"]) == {"resteasy", "es4x", "express"}
    assert set(found["update"]) == {"resteasy", "express"}


@pytest.mark.parametrize(("test_type", "base"), [("db", "nobody"), ("nothing", "express")])
def test_what_was_not_measured_is_no_baseline(run: Run, test_type: str, base: str) -> None:
    with pytest.raises(StoreError, match="not measured in this run"):
        baselines.relative_to(run, test_type, base)


def test_two_runs_are_compared_cell_by_cell(sample_results: Path) -> None:
    before, after = (Run(sample_results / name) for name in ("20250615-small", "20250622-second"))
    found = baselines.comparison(before, after).comparison
    assert (found.run_a, found.run_b) == ("20250615-small", "20250622-second")
    assert {cell.implementation for cell in found.cells} == {"vertx-web", "resteasy", "es4x", "express"}
