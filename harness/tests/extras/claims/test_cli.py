"""``./tfb claims`` lists, plans and prints; what it cannot read it names."""

import json
from pathlib import Path

import pytest

from harness import cli
from harness.claims import judgement
from harness.records import claims as recorded
from harness.tests.claims.records import claim, run_of

RUN = run_of({"a": (2500.0, 2510.0, 2505.0), "b": (1000.0, 1001.0, 1002.0)})


@pytest.fixture
def results(tmp_path: Path) -> str:
    """A folder with a verdict on one of the project's claims."""
    verdict = judgement.of_run(claim(ratio=2.5).model_copy(update={"name": "multiple-queries"}), RUN)
    recorded.keep(tmp_path, (verdict,))
    return str(tmp_path)


def test_the_list_has_every_claim_with_its_last_verdict(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "--results", results]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("multiple-queries"))
    assert "supported" in row
    assert sum("not measured yet" in line for line in lines) >= 12


def test_a_dry_run_shows_the_runs_and_their_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "run", "--dry-run", "multiple-queries", "a-thousand-threads"]) == 0
    out = capsys.readouterr().out
    assert "a-thousand-threads: java toolset/threads/Threads.java, 5 starts" in out
    assert "  resteasy: query c512 q20" in out
    assert "run 2" not in out


def test_the_page_is_written_where_it_is_asked_for(results: str, tmp_path: Path) -> None:
    page = tmp_path / "claims.md"
    assert cli.main(["claims", "report", "multiple-queries", "--results", results, "--output", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("# The claims of the talks")


@pytest.mark.parametrize("words", [[], ["--format", "text"], ["--format", "table"], ["--format", "json"]])
def test_a_report_comes_in_several_forms(results: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "report", "multiple-queries", "--results", results, *words]) == 0
    out = capsys.readouterr().out
    assert "supported" in out
    if "json" in words:
        assert json.loads(out)["verdicts"]["multiple-queries"]["statements"][0]["value"] == pytest.approx(2.5, rel=0.01)


def test_a_name_that_is_no_claim_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "run", "multiple-querys"]) == 2
    assert "did you mean multiple-queries?" in capsys.readouterr().err
