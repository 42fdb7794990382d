"""``./tfb claims``: its lists, verdicts and messages."""

import json
from pathlib import Path

import pytest

from harness import cli
from harness.extras.claims import cli as claims_cli
from harness.extras.claims.claim import read_claims
from harness.extras.claims.measure import merge_cells, record_verdicts
from harness.tests.doubles.records import stored
from harness.tests.extras.claims.claim_records import STEADY, claim, judged, run_of
from harness.tests.report import made


@pytest.fixture
def results(tmp_path: Path) -> str:
    record_verdicts(
        tmp_path, [judged(claim(ratio=2.5).model_copy(update={"name": "multiple-queries"}), run_of(STEADY))]
    )
    return str(tmp_path)


def test_list_shows_claims_with_latest_verdicts(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "--results", results]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("multiple-queries"))
    assert "supported" in row
    assert [name for name in read_claims() if not any(line.startswith(name) for line in lines)] == []
    assert cli.main(["claims", "multiple-queries", "--results", results]) == 0
    assert "●" in (whole := capsys.readouterr().out)
    assert "a-thousand-threads" not in whole


def test_dry_run_shows_cells_and_duration_of_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["multiple-queries", "a-thousand-threads"]
    words = ["claims", "run", "--dry-run", *names, "--time", "5m", "--results", str(tmp_path)]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "a-thousand-threads: java toolset/threads/Threads.java, 5 starts" in out
    assert "multiple-queries:\n" in out
    assert "resteasy  query  c512 q20" in out


def test_decided_claims_are_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = read_claims()["multiple-queries"]
    cells = known.cells
    trials = [
        made.trial(cell.implementation, number, value, cell.load, cell.test_type)
        for cell in dict.fromkeys(cells)
        for number, value in enumerate(STEADY["a" if cell.implementation == "vertx-web" else "b"])
    ]
    info = run_of(trials).info.model_copy(update={"settings": {"claims": [known.name]}, "cells": merge_cells(cells)})
    stored(tmp_path / info.run_id, info, trials)
    words = ["claims", "run", known.name, "--yes", "--json", "--results", str(tmp_path)]
    assert cli.main(words) == 0
    verdict = json.loads(capsys.readouterr().out)["verdicts"][known.name]
    assert (verdict["runs"], verdict["verdict"]) == ([info.run_id], "supported")
    assert json.loads((tmp_path / "claims.json").read_text())["verdicts"][known.name] == verdict
    assert cli.main(["claims", "run", known.name, "--dry-run", "--results", str(tmp_path)]) == 0
    assert "multiple-queries: nothing to measure" in capsys.readouterr().out
    # A later run, on a different kernel, lacks a cell of the claim, so the earlier verdict is kept.
    newer = info.model_copy(update={"run_id": "3", "machine": made.machine().model_copy(update={"kernel": "6.2"})})
    stored(tmp_path / "3", newer, [each for each in trials if each.implementation == "vertx-web"])
    monkeypatch.setattr(claims_cli, "run_benchmark", lambda _: pytest.fail("it would be measured whole"))
    with pytest.raises(pytest.fail.Exception, match="measured whole"):
        cli.main(words)
    assert json.loads((tmp_path / "claims.json").read_text())["verdicts"][known.name] == verdict


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["multiple-queries", "--resume"], "always continues with earlier measurements"),
        (["multiple-querys"], "did you mean multiple-queries?"),
    ],
)
def test_resume_and_unknown_claims_are_usage_errors(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["claims", "run", *words]) == 2
    assert expected in capsys.readouterr().err
