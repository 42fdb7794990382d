"""Tests of the published example, a reduced copy of a real run."""

import json
import shutil
from pathlib import Path

import pytest

from harness.dashboard import example
from harness.dashboard.results_folder import ResultsFolder
from harness.dashboard.run_documents import PUBLISHED, DashboardRun
from harness.paths import REPOSITORY, RESULTS
from harness.records.outcome import Outcome
from harness.report.summary import summarize_run
from harness.report.tables import format_ratio

MOST_BYTES = 3_000_000
NAME = "20250615-small"


@pytest.fixture(scope="module")
def run(sample_results: Path) -> DashboardRun:
    return DashboardRun(sample_results / NAME)


def test_example_ranks_like_its_run(run: DashboardRun, tmp_path: Path) -> None:
    example.write_example(run, tmp_path / PUBLISHED / NAME)
    made = DashboardRun(tmp_path / PUBLISHED / NAME)
    assert made.example
    assert made.info.left_out == example.LEFT_OUT
    assert len(made.trials()) == len(run.trials())
    assert not any(trial.windows or trial.command for trial in made.trials())
    assert {verdict.outcome for verdict in made.verdicts()} == {verdict.outcome for verdict in run.verdicts()}
    assert all(result.outcome is not Outcome.PASS for verdict in made.verdicts() for result in verdict.results)
    assert made.logs() == []
    assert not (made.folder / "ranking.json").exists()
    assert not made.problems
    shutil.copytree(run.folder, tmp_path / "whole")
    (tmp_path / "whole" / "ranking.json").unlink()
    assert made.ranking().test_types == DashboardRun(tmp_path / "whole").ranking().test_types


def test_example_has_no_paths_or_hosts() -> None:
    cut = {
        "/home/somebody/results": "results",
        "25.0.3 (/usr/lib/jvm/jdk/bin/java)": "25.0.3 (java)",
        "--output=/srv/a/b.json": "--output=b.json",
        "sh -c 'cd /opt/x && make'": "sh -c 'cd x && make'",
    }
    kept = ["http://127.0.0.1:8080/queries/a?n=1", "Accept: application/json,text/html,*/*", "GET /json"]
    kept.append("frameworks/Java/resteasy")
    assert example.remove_paths({"command": [*cut, *kept]}) == {"command": [*cut.values(), *kept]}
    with pytest.raises(ValueError, match=r"reason: names the host mirror\.example\.org"):
        example.remove_paths({"build": {"reason": "https://mirror.example.org/a: 404"}})
    assert example.remove_paths({"notes": "see https://example.org"}) == {"notes": "see https://example.org"}


def test_published_round_is_complete_and_small() -> None:
    (shipped,) = ResultsFolder(RESULTS / PUBLISHED).listed().runs
    folder = RESULTS / PUBLISHED / shipped.run_id
    assert sum(path.stat().st_size for path in folder.rglob("*")) <= MOST_BYTES
    assert (shipped.example, shipped.status, bool(shipped.problems)) == (True, "complete", False)
    assert "CPU" in shipped.machine
    for path in folder.rglob("*.json*"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert example.remove_paths(json.loads(line)) == json.loads(line)


def test_the_readme_says_what_the_published_round_says() -> None:
    (shipped,) = ResultsFolder(RESULTS / PUBLISHED).listed().runs
    run = DashboardRun(RESULTS / PUBLISHED / shipped.run_id)
    said = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    ranking = run.ranking()
    assert summarize_run(run.info, ranking).lead in said
    scores = {score.implementation: score.cpu for score in ranking.overall if score.cpu}
    vertx, es4x = (format_ratio(scores[name].to_reference) for name in ("vertx-web", "es4x"))
    assert f"takes {vertx} the CPU per request of vertx-web and {es4x} that of es4x" in said
