"""Reading results/ survives whatever is in it, and says what it could not read."""

import json
from pathlib import Path

import pytest

from harness.dashboard import history, runs
from harness.errors import StoreError
from harness.records.models import Closed


def test_runs_are_listed_newest_first_and_broken_folders_are_named(sample_results: Path) -> None:
    listed = runs.list_runs(sample_results)
    assert [run.run_id for run in listed.runs] == ["20250622-second", "20250617-hostile", "20250615-small"]
    assert {(item.run_id, item.file) for item in listed.broken} == {
        ("corrupt", "run.json"),
        ("empty", "run.json"),
        ("list", "run.json"),
    }
    assert next(item.message for item in listed.broken if item.run_id == "list") == "is not a JSON object"


@pytest.mark.parametrize("name", ["..", ".", "", "../x", "a/b", ".hidden", "/etc", "no-such-run"])
def test_a_name_that_is_no_folder_of_results_is_no_run(sample_results: Path, name: str) -> None:
    with pytest.raises(StoreError, match="no such run"):
        runs.open_run(sample_results, name)


def test_a_link_out_of_results_is_no_run(results: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (results / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="no such run"):
        runs.open_run(results, "link")


def test_a_broken_key_of_run_json_is_replaced_and_named(results: Path) -> None:
    path = results / "run" / "run.json"
    raw = json.loads(path.read_text())
    raw["seed"] = "seven"
    raw["machine"].pop("kernel")
    raw["implementations"][0].pop("language")
    raw["schema_version"] = 99
    path.write_text(json.dumps(raw))
    run = runs.open_run(results, "run")
    assert [item.name for item in run.info.implementations] == ["resteasy", "es4x", "express"]
    assert run.info.machine.kernel == "unknown"
    messages = [problem.message for problem in run.problems]
    assert messages[0].startswith("schema version 99")
    assert {message.split(":")[0] for message in messages[1:]} == {
        "seed",
        "machine.kernel",
        "implementations.0.language",
    }


def test_a_run_that_is_still_being_prepared_says_at_what(results: Path) -> None:
    (results / "next").mkdir()
    (results / "next" / "progress.json").write_text('{"status": "running", "stage": "building"}')
    broken = runs.list_runs(results).broken
    assert broken[0].message == "not there; the run was last seen running, at: building"


def test_lines_that_cannot_be_read_are_problems_and_so_is_a_half_line_once_the_run_has_ended(results: Path) -> None:
    path = results / "run" / "samples.jsonl"
    count = len(path.read_text().splitlines())
    with path.open("a") as file:
        file.write('nonsense\n{"id": 1}\n{"half of a')
    run = runs.open_run(results, "run")
    assert len(run.samples()) == count
    assert [problem.message.split(":")[0] for problem in run.problems] == [
        f"line {count + number}" for number in (1, 2, 3)
    ]
    assert run.problems[-1].message.endswith(": cut off")


def test_without_a_ranking_the_samples_are_ranked(results: Path) -> None:
    (results / "run" / "ranking.json").unlink()
    ranking = runs.open_run(results, "run").headlines()
    rows = ranking.test_types["json"].headline.rows
    assert {row.implementation for row in rows[:2]} == {"vertx-web", "resteasy"}
    assert all(row.ranked for row in rows)


def test_a_ranking_that_cannot_be_read_is_made_again_and_named(results: Path) -> None:
    (results / "run" / "ranking.json").write_text('{"run_id": 7}')
    run = runs.open_run(results, "run")
    assert run.headlines().test_types["json"].headline.rows
    assert run.problems[0].file == "ranking.json"
    assert "ranked again" in run.problems[0].message


def test_headlines_leave_the_levels_out(sample_results: Path) -> None:
    run = runs.open_run(sample_results, "20250615-small")
    assert run.headlines().test_types["db"].levels == ()
    assert len(run.ranking().test_types["db"].levels) == 3


def test_a_cell_holds_its_own_samples_and_verdicts_only(sample_results: Path) -> None:
    cell = runs.open_run(sample_results, "20250615-small").cell("es4x", "db")
    assert len(cell.samples) == 15
    assert {(sample.implementation, sample.test_type) for sample in cell.samples} == {("es4x", "db")}
    assert [verdict.test_type for verdict in cell.verdicts] == ["db"]
    assert [replicate.replicate for replicate in cell.replicates] == [0, 1, 2, 3, 4]


def test_an_index_goes_on_where_it_stopped(results: Path) -> None:
    run = runs.open_run(results, "run")
    path = results / "run" / "samples.jsonl"
    text = path.read_text()
    half = text.index("\n", len(text) // 2) + 10
    path.write_text(text[:half])
    lines = run.index()
    offset = lines.offset
    assert offset < half
    path.write_text(text)
    assert sum(map(len, run.index(lines).spans.values())) == text.count("\n")
    assert lines.offset == len(text.encode())


def test_latency_is_the_median_of_the_samples_that_count(sample_results: Path) -> None:
    run = runs.open_run(sample_results, "20250615-small")
    cells = run.latency()["db"].cells
    cell = next(item for item in cells if item.implementation == "es4x" and item.level == Closed(connections=64))
    values = sorted(
        sample.latency.percentiles["99"]
        for sample in run.samples()
        if (sample.implementation, sample.test_type, sample.level.connections) == ("es4x", "db", 64) and sample.latency
    )
    assert cell.percentiles["99"] == values[2]
    assert "plaintext" not in run.latency()


@pytest.mark.parametrize(
    "name", ["run.json", "../run/run.json", "logs/../run.json", "/etc/passwd", "logs", "logs/none", "logs/\0"]
)
def test_only_logs_are_served_as_logs(results: Path, name: str) -> None:
    with pytest.raises(StoreError, match="no such log"):
        runs.open_run(results, "run").log(name)


def test_a_long_log_is_cut_at_its_start(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "LOG_BYTES", 10)
    (results / "run" / "logs" / "long.log").write_text("0123456789abcdefghij")
    log = runs.open_run(results, "run").log("logs/long.log")
    assert (log.text, log.skipped) == ("abcdefghij", 10)


def test_history_is_in_order_of_time(sample_results: Path) -> None:
    documents = [
        run.document(run.headlines())
        for run in (runs.open_run(sample_results, name) for name in ("20250622-second", "20250615-small"))
    ]
    points = [point for point in history.history(documents, "es4x").points if point.test_type == "db"]
    assert [point.run_id for point in points] == ["20250615-small", "20250622-second"]
    assert all(point.of == 4 for point in points)


def test_the_page_is_told_the_figures_of_each_row_and_not_what_they_are_made_of(sample_results: Path) -> None:
    run = runs.Run(sample_results / "20250615-small")
    ranking = run.ranking()
    told = run.document(ranking).ranking
    whole, row = (known.test_types["json"].headline.rows[0].throughput for known in (ranking, told))
    assert whole is not None
    assert row is not None
    agrees = pytest.approx((whole.estimate.median, whole.estimate.low), rel=1e-9)  # with ten digits of each
    assert (row.estimate.median, row.estimate.low) == agrees
    assert row.rank == whole.rank
    assert row.to_reference is not None
    assert (row.estimate.values, row.log_mean, row.components) == ((), None, None)
    assert row.to_reference.simultaneous_low is None
