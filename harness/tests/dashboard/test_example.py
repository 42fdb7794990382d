"""Tests for the published example, a reduced copy of a real run."""

import json
import shutil
from pathlib import Path

import pytest

from harness.dashboard import example
from harness.dashboard.results_folder import ResultsFolder
from harness.dashboard.run_documents import DashboardRun
from harness.paths import RESULTS
from harness.records.verification_record import Outcome
from harness.stats.ranking_model import Ranking

PUBLISHED = "rounds/1"  # folder of the published round in results/
MOST_BYTES = 3_000_000
NAME = "20250615-small"


@pytest.fixture(scope="module")
def run(sample_results: Path) -> DashboardRun:
    return DashboardRun(sample_results / NAME)


def test_example_ranks_like_its_run(run: DashboardRun, tmp_path: Path) -> None:
    example.write_example(run, tmp_path / PUBLISHED / NAME)
    published = DashboardRun(tmp_path / PUBLISHED / NAME)
    assert published.published == "Round 1"
    assert published.info.left_out == example.LEFT_OUT
    assert len(published.trials()) == len(run.trials())
    assert not any(trial.windows or trial.command for trial in published.trials())
    assert {verdict.outcome for verdict in published.verdicts()} == {verdict.outcome for verdict in run.verdicts()}
    assert all(result.outcome is not Outcome.PASS for verdict in published.verdicts() for result in verdict.results)
    assert published.logs() == []
    assert not (published.folder / "ranking.json").exists()
    assert not published.problems
    shutil.copytree(run.folder, tmp_path / "whole")
    (tmp_path / "whole" / "ranking.json").unlink()
    whole = DashboardRun(tmp_path / "whole").ranking()
    assert count_checks(whole) > 0
    assert count_checks(published.ranking()) == 0  # the copy omits passed checks, so their number is unknown
    assert published.ranking().test_types.keys() == whole.test_types.keys()
    for kind, tables in whole.test_types.items():
        uncounted = [row.model_copy(update={"checks": 0}) for row in tables.headline.rows]
        assert list(published.ranking().test_types[kind].headline.rows) == uncounted


def count_checks(ranking: Ranking) -> int:
    return sum(row.checks for tables in ranking.test_types.values() for row in tables.headline.rows)


def test_example_has_no_paths_or_hosts() -> None:
    cut = {
        "/home/somebody/results": "results",
        "25.0.3 (/usr/lib/jvm/jdk/bin/java)": "25.0.3 (java)",
        "--output=/srv/a/b.json": "--output=b.json",
        "sh -c 'cd /opt/x && make'": "sh -c 'cd x && make'",
    }
    unchanged = ["http://127.0.0.1:8080/queries/a?n=1", "Accept: application/json,text/html,*/*", "GET /json"]
    unchanged.append("frameworks/Java/resteasy")
    assert example.remove_paths({"command": [*cut, *unchanged]}) == {"command": [*cut.values(), *unchanged]}
    with pytest.raises(ValueError, match=r"reason names the host mirror\.example\.org"):
        example.remove_paths({"build": {"reason": "https://mirror.example.org/a: 404"}})
    assert example.remove_paths({"notes": "see https://example.org"}) == {"notes": "see https://example.org"}


def test_round_contains_only_the_published_run(
    run: DashboardRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "RESULTS", tmp_path)
    (tmp_path / PUBLISHED / "earlier").mkdir(parents=True)
    (tmp_path / "rounds" / "1-draft").mkdir()
    for words, rounds in (([], {"1"}), (["2"], {"1", "2"})):
        assert example.main([str(run.folder), *words]) == 0
        assert {each.parent.name for each in (tmp_path / "rounds").glob("*/*")} == rounds
        assert {each.name for each in (tmp_path / "rounds").glob("*/*")} == {NAME}


def test_published_round_is_complete_and_small() -> None:
    (shipped,) = (run for run in ResultsFolder(RESULTS).listed().runs if run.published == "Round 1")
    folder = RESULTS / PUBLISHED / shipped.run_id
    assert sum(path.stat().st_size for path in folder.rglob("*")) <= MOST_BYTES
    assert (shipped.published, shipped.status, bool(shipped.problems)) == ("Round 1", "complete", False)
    assert "CPU" in shipped.machine
    for path in folder.rglob("*.json*"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert example.remove_paths(json.loads(line)) == json.loads(line)
