"""Tests for the dashboard's documents about runs. Unreadable files are listed as problems."""

import json
import os
import shutil
import statistics
import time
from pathlib import Path

import pytest

from harness.dashboard import run_documents
from harness.dashboard.results_folder import ResultsFolder
from harness.dashboard.run_documents import SILENT_SECONDS, DashboardRun
from harness.errors import StoreError, UsageError
from harness.paths import RESULTS
from harness.records.loads import ClosedLoop
from harness.records.run_folders import find_run
from harness.report.summary import run_title

SMALL = "20250615-small"


def test_list_is_newest_first_with_broken_folders(sample_results: Path) -> None:
    listed = ResultsFolder(sample_results).listed()
    assert [run.run_id for run in listed.runs] == ["20250622-second", "20250617-hostile", SMALL]
    broken = {item.run_id: (item.file, item.message) for item in listed.broken}
    assert {name: file for name, (file, _) in broken.items()} == dict.fromkeys(("corrupt", "empty", "list"), "run.json")
    assert broken["list"][1] == "Input should be an object"


def test_published_rounds_are_listed_after_own_runs(results: Path, tmp_path: Path) -> None:
    rounds = tmp_path / "rounds"
    for number in ("1", "2", "10"):
        shutil.copytree(results / "run", rounds / number / f"of-{number}")
    shutil.copytree(results / "run", rounds / "parts" / "of-a-part")  # not a round
    published = [("of-10", "Round 10"), ("of-2", "Round 2"), ("of-1", "Round 1")]
    without_own = ResultsFolder(tmp_path / "none", rounds=rounds)
    assert [(run.run_id, run.published) for run in without_own.listed().runs] == published
    assert DashboardRun(without_own.folder("of-2")).title.startswith("Round 2: ")
    with_own = ResultsFolder(results, rounds=rounds)
    assert [(run.run_id, run.published) for run in with_own.listed().runs] == [("run", ""), *published]
    assert [folder.run_id for folder in ResultsFolder(tmp_path).listed().broken] == ["results"]  # without rounds/


def test_rounds_are_found_by_name(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "run", tmp_path / "rounds" / "7" / "of-7")
    assert find_run(tmp_path, "round-7") == tmp_path / "rounds" / "7" / "of-7"
    assert find_run(results, "round-1").parent == RESULTS / "rounds" / "1"
    with pytest.raises(UsageError, match=r"round-99 does not exist in .*; available rounds: round-1"):
        find_run(results, "round-99")


def test_a_link_out_of_results_is_no_run(results: Path, tmp_path: Path) -> None:
    shutil.move(results / "run", tmp_path / "elsewhere")
    (results / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="no such run"):
        ResultsFolder(results).folder("link")
    assert ResultsFolder(results).listed().runs == ()


def test_run_in_preparation_reports_its_stage(results: Path) -> None:
    progress = results / "next" / "progress.json"
    progress.parent.mkdir()
    progress.write_text('{"status": "running", "stage": "building", "elapsed_seconds": 7}')
    listed = ResultsFolder(results).listed()
    (preparing,) = listed.preparing
    assert (preparing.run_id, preparing.stage, preparing.elapsed, preparing.silent_for) == ("next", "building", 7, None)
    assert listed.broken == ()

    os.utime(progress, times=(0, time.time() - 2 * SILENT_SECONDS))
    (killed,) = ResultsFolder(results).listed().preparing
    assert killed.silent_for == pytest.approx(2 * SILENT_SECONDS, abs=5)

    progress.write_text('{"status": "failed", "stage": "building"}')
    listed = ResultsFolder(results).listed()
    assert listed.preparing == ()
    assert listed.broken[0].message == "does not exist; last known status: failed, stage: building"


@pytest.mark.parametrize(
    ("text", "status", "problems"),
    [
        (None, "complete", []),
        ('{"run_id": 7}', "complete", ["ranking.json"]),
        ('{"run_id": "run", "reference": null, "scoring_version": 3}', "complete", []),
        ('{"run_id": "run", "reference": null}', "running", []),  # left behind by an interrupted run
    ],
)
def test_trials_are_ranked_without_a_current_ranking(
    results: Path, text: str | None, status: str, problems: list[str]
) -> None:
    path = results / "run" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": status}))
    (results / "run" / "ranking.json").unlink()
    if text:
        (results / "run" / "ranking.json").write_text(text)
    document = DashboardRun(results / "run").document()
    rows = document.ranking.test_types["json"].headline.rows
    assert {row.implementation for row in rows[:2]} == {"vertx-web", "resteasy"}
    assert all(row.ranked for row in rows)
    assert not any(ranking.tables for ranking in document.ranking.test_types.values())  # the page requests tables later
    assert [problem.file for problem in document.problems] == problems


def test_cell_document_has_only_its_records(sample_results: Path) -> None:
    run = DashboardRun(sample_results / SMALL)
    cell = run.cell("es4x", "db")
    assert {(trial.implementation, trial.test_type) for trial in cell.trials} == {("es4x", "db")}
    assert {(trial.process, trial.round) for trial in cell.trials} == {(p, r) for p in range(3) for r in range(2)}
    assert [verdict.test_type for verdict in cell.verdicts] == ["db"]
    assert [process.process for process in cell.processes] == [0, 1, 2]
    cells = list(run.cells())
    assert cell in cells
    assert sum(len(each.trials) for each in cells) == len(run.trials())


def test_latency_document_uses_valid_trials(sample_results: Path) -> None:
    run = DashboardRun(sample_results / SMALL)
    load, trials = ClosedLoop(connections=64), run.cell("es4x", "db").trials
    cell = next(c for c in run.latency("db").cells if (c.implementation, c.load) == ("es4x", load))
    own = [(t.process, t.latency.percentiles["99"]) for t in trials if t.load == load and t.latency]
    values = [statistics.geometric_mean(value for process, value in own if process == number) for number in range(3)]
    assert cell.trials == len(own) == 6
    assert cell.percentiles["99"] == pytest.approx(statistics.median(values))
    assert cell.spread["99"] == pytest.approx((min(values), max(values)))
    row = next(r for t in run.tests("db")["db"].tables for r in t.rows if (r.implementation, r.load) == ("es4x", load))
    assert row.latency
    assert (cell.percentiles["99"], cell.mean) == (row.latency.percentiles["99"].median, row.latency.mean.median)
    assert run.latency("plaintext").cells == ()  # pipelined


def test_a_long_log_is_cut_at_its_start(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_documents, "MAX_LOG_BYTES", 10)
    (results / "run" / "logs" / "long.log").write_text("0123456789abcdefghij")
    log = DashboardRun(results / "run").log("logs/long.log")
    assert (log.text, log.skipped) == ("abcdefghij", 10)


def test_time_like_name_is_replaced_by_a_title(sample_results: Path) -> None:
    info = DashboardRun(sample_results / SMALL).info
    timed = info.model_copy(update={"name": "2025-06-15 15:06:40"})
    assert run_title(info) == "Synthetic run 20250615-small"
    assert run_title(timed) == "standard: vertx-web, resteasy, es4x +1, 2025-06-15"
    assert run_title(timed, "Round 3") == "Round 3: vertx-web, resteasy, es4x +1, 2025-06-15"
    few = timed.model_copy(update={"implementations": info.implementations[:2], "loads": {"db": ()}})
    assert run_title(few) == "standard: vertx-web, resteasy, 2025-06-15"


@pytest.fixture
def running(results: Path) -> Path:
    """Return a run in progress. Its last ten trials stay in ``rest.jsonl`` until the test appends them."""
    folder = results / "run"
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "running"}))
    lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "trials.jsonl").write_text("".join(lines[:-10]))
    (folder / "rest.jsonl").write_text("".join(lines[-10:]))
    return folder


def test_last_trials_are_newest_first_without_windows(running: Path) -> None:
    before = DashboardRun(running).live()
    assert (before.status, before.silent_for) == ("running", None)
    assert DashboardRun(running).live() == before
    remaining_trials = (running / "rest.jsonl").read_text()
    with (running / "trials.jsonl").open("a") as file:
        file.write(remaining_trials + '{"half')
    live = DashboardRun(running).live()
    assert live.version != before.version
    newest = [json.loads(line)["id"] for line in remaining_trials.splitlines()[:-9:-1]]
    assert [trial.id for trial in live.trials] == newest
    assert all(trial.windows == () and trial.warm_up is None for trial in live.trials)


def test_silent_run_is_reported(running: Path) -> None:
    long_ago = time.time() - SILENT_SECONDS - 30
    for path in running.iterdir():
        os.utime(path, (long_ago, long_ago))
    silent_for = DashboardRun(running).live().silent_for
    assert silent_for is not None
    assert silent_for >= SILENT_SECONDS


def test_ratios_refer_to_the_requested_baseline(sample_results: Path) -> None:
    usual, rebased = (DashboardRun(sample_results / SMALL, baseline=name).document() for name in ("", "es4x"))
    assert (usual.ranking.reference, rebased.ranking.reference) == ("vertx-web", "es4x")
    assert rebased.run.reference == "vertx-web"  # the page offers to return to this baseline
    rows = {row.implementation: row for row in rebased.ranking.test_types["json"].headline.rows}
    ratio = rows["express"].throughput and rows["express"].throughput.to_reference
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.low < ratio.value < 1  # express serves fewer requests than es4x
    assert "as es4x" in rebased.sentences["json"]["throughput"][0]
    standings = [row.throughput for row in usual.ranking.test_types["json"].headline.rows if row.throughput]
    assert [each.rank for each in standings] == [row.throughput.rank for row in rows.values() if row.throughput]


def test_an_unknown_baseline_is_refused(sample_results: Path) -> None:
    with pytest.raises(StoreError, match="'nobody' is not an implementation of this run"):
        DashboardRun(sample_results / SMALL, baseline="nobody")


def test_rows_say_how_much_was_verified(sample_results: Path) -> None:
    run = DashboardRun(sample_results / SMALL)
    row = next(row for row in run.document().ranking.test_types["db"].headline.rows if row.implementation == "express")
    assert row.checks == max(len(verdict.results) for verdict in run.verdicts("express", "db")) > 0
    evidence = [trial.evidence for trial in run.trials("express", "db") if trial.evidence]
    assert row.responses_checked == sum(each.judged for each in evidence)
