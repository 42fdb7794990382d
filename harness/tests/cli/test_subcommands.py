"""Verbs with names mean what TechEmpower's flags mean."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness import cli
from harness.cli.arguments import parse
from harness.cli.run import newest_interrupted
from harness.cli.settings import resumed, settings
from harness.errors import UsageError
from harness.plan.config import Settings
from harness.records import store
from harness.tests import records


def understood(text: str) -> Settings:
    words = text.split()
    return replace(settings(parse(words), words), command=(), seed=0, results_name="")


@pytest.mark.parametrize(
    ("verb", "flags"),
    [
        ("run", "--test run"),
        ("run express axum", "--test express axum"),
        ("run all --profile smoke", "--test all --profile smoke"),
        ("run express --profile smoke axum", "--test express axum --profile smoke"),
        ("verify express --type json db", "--mode verify --test express --type json db"),
        ("verify --test-lang Go", "--mode verify --test run --test-lang Go"),
        ("debug express --server-port 8080", "--mode debug --test express --server-port 8080"),
    ],
)
def test_a_verb_with_names_is_a_run_with_flags(verb: str, flags: str) -> None:
    assert understood(verb) == understood(flags)


@pytest.mark.parametrize("text", ["verify --seed 1", "debug --profile smoke", "run --mode verify"])
def test_a_verb_refuses_the_flags_of_another(text: str) -> None:
    with pytest.raises(UsageError, match="unknown argument"):
        parse(text.split())


def test_every_unknown_name_is_told_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["run", "vertx-wep", "expres", "--dry-run", "--results", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "did you mean vertx-web" in message
    assert "did you mean express" in message


def test_list_has_a_line_an_implementation_with_folder_and_test_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "express"]) == 0
    assert capsys.readouterr().out.split()[:3] == ["express", "JavaScript/express", "json"]


def interrupted(results: Path, name: str, status: str, command: tuple[str, ...] = ("run",)) -> None:
    written = records.write(results, name)
    written.write_info(records.info(name).model_copy(update={"status": status, "command": command}))


def test_resume_without_a_name_takes_the_newest_run_that_was_interrupted(tmp_path: Path) -> None:
    interrupted(tmp_path, "20260101-000000", "interrupted")
    interrupted(tmp_path, "20260102-000000", "running")  # killed: nobody holds its lock
    interrupted(tmp_path, "20260103-000000", "complete")
    interrupted(tmp_path, "20260104-000000", "interrupted", ("calibrate", "--test", "a"))
    assert newest_interrupted(tmp_path).name == "20260102-000000"
    with store.RunStore(tmp_path / "20260102-000000", started_at=0).locked():
        assert newest_interrupted(tmp_path).name == "20260101-000000"


def test_resume_without_a_name_and_without_such_a_run_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run in .* was interrupted"):
        newest_interrupted(tmp_path)


def test_a_run_begun_with_a_verb_is_resumed_with_its_own_flags() -> None:
    info = records.info().model_copy(update={"command": ("run", "a", "--duration", "9"), "seed": 11})
    known = resumed(understood("run --resume 2026"), info)
    assert (known.selection.test, known.profile.duration_seconds, known.seed) == (("a",), 9, 11)


def test_a_broken_file_is_told_in_plain_words_instead_of_an_unknown_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "Go" / "mine" / "benchmark_config.json"
    config.parent.mkdir(parents=True)
    entry = {"json_url": "/json", "port": "x", "local": {"run": []}}
    config.write_text(json.dumps({"framework": "mine", "tests": [{"default": entry}]}))
    assert cli.main(["verify", "mine", "--frameworks", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"tfb: {config}: ")
    assert "tests.default: local.run: must not be empty (found [])" in message
    assert "unknown name" not in message
    assert "Tuple" not in message
