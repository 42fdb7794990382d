"""Errors become exit codes in one place, and the program stays quick to start."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import cli
from harness.cli.verbs import VERBS, Verb
from harness.errors import BuildError, ConfigError, EnvironmentLacksError, TfbError, UsageError
from harness.paths import REPOSITORY
from harness.tests import records


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    def fail(_argv: object) -> int:
        raise error

    monkeypatch.setattr(Verb, "load", lambda _self: fail)
    return cli.main(["report"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TfbError("x"), 1),
        (BuildError("x"), 1),
        (UsageError("x"), 2),
        (ConfigError("x"), 2),
        (EnvironmentLacksError("x"), 3),
        (KeyboardInterrupt(), 130),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/results/run.json"), 1),
    ],
)
def test_each_error_has_its_exit_code_and_one_line(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error, monkeypatch) == code
    message = capsys.readouterr().err
    assert message.startswith("tfb: ")
    assert message.count("\n") == 1


def test_a_usage_error_of_the_flags_is_2_and_points_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--tset"]) == 2
    assert "See ./tfb --help" in capsys.readouterr().err


def test_without_arguments_it_shows_the_help_with_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    text = capsys.readouterr().out
    assert [verb for verb in VERBS if f"  {verb} " not in text] == []


def test_list_tests_names_the_implementations(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--list-tests"]) == 0
    assert {"es4x", "express", "resteasy", "vertx-web"} <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json"])
def test_report_prints_a_run_from_its_files(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    records.write(tmp_path)
    assert cli.main(["report", "--results", str(tmp_path), "--format", form]) == 0
    assert "fast" in capsys.readouterr().out


def test_report_of_a_run_with_a_broken_line_shows_the_rest_and_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = records.write(tmp_path).folder
    with (folder / "samples.jsonl").open("a") as file:
        file.write('{"id": "half')
    assert cli.main(["report", "--results", str(tmp_path)]) == 1
    streams = capsys.readouterr()
    assert "fast" in streams.out
    assert "samples.jsonl: line 13: cut off" in streams.err


def test_an_unknown_name_leaves_no_folder_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--test", "vertx-wep", "--results", str(tmp_path / "results")]) == 2
    assert "did you mean vertx-web" in capsys.readouterr().err
    assert list((tmp_path / "results").iterdir()) == []


def test_a_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--test", "run", "--dry-run", "--seed", "1", "--profile", "smoke", "--results", str(tmp_path / "results")]
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    assert "seed 1" in text
    assert "Expected" in text
    assert not (tmp_path / "results").exists()


def test_the_launcher_is_a_sh_script() -> None:
    assert (REPOSITORY / "tfb").read_text().startswith("#!/bin/sh\n")
    assert os.access(REPOSITORY / "tfb", os.X_OK)


def test_what_is_said_beside_the_result_fails_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from harness import cli;"
        "sys.exit(cli.guarded(lambda: [print('x' * 100, file=sys.stderr) or 7 for _ in range(999)][0]))"
    )
    with Path("/dev/full").open("wb") as full:
        assert subprocess.run([sys.executable, "-c", code], stderr=full, check=False, cwd=REPOSITORY).returncode == 7
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        assert subprocess.run([sys.executable, "-c", code], stderr=gone, check=False, cwd=REPOSITORY).returncode == 7


# Lines, since rich takes a minute of CPU to fold one word of 100,000 characters.
@pytest.mark.parametrize("show", ["print('x\\n' * 50_000)", "SafeConsole().print('x\\n' * 50_000)"])
def test_a_reader_that_leaves_changes_nothing_of_what_is_done(show: str) -> None:
    code = (
        "import sys; from harness import cli; from harness.console import SafeConsole;"
        f"sys.exit(cli.guarded(lambda: cli.told(5, lambda: {show})))"
    )
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=gone, stderr=subprocess.PIPE, check=False, cwd=REPOSITORY
        )
    assert (done.returncode, done.stderr) == (5, b"")
