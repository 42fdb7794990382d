"""What does not reach its place is told by the exit code, whatever verb writes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.output import put
from harness.errors import EnvironmentLacksError, Exit
from harness.paths import REPOSITORY
from harness.tests.doubles import records

FULL = Path("/dev/full")
PRINTING = [("list",), ("--help",), ("report", "--format", "json")]  # by print, before anything is loaded, by a writer


def tfb(words: tuple[str, ...], results: Path, shell: str = "") -> "subprocess.CompletedProcess[str]":
    """./tfb, with what a shell writes behind a command."""
    more = ("--results", str(results)) if words[0] == "report" else ()
    command = ["sh", "-c", f'"$@" {shell}', "sh", sys.executable, "-m", "harness", *words, *more]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one run."""
    return records.write(tmp_path_factory.mktemp("results")).folder.parent


@pytest.mark.parametrize(
    ("words", "place"), [*((words, ">/dev/full") for words in PRINTING), (("list",), ">&-")], ids=str
)
def test_a_full_or_closed_stdout_is_what_the_machine_lacks(words: tuple[str, ...], place: str, results: Path) -> None:
    done = tfb(words, results, place)
    assert done.returncode == Exit.ENVIRONMENT
    assert done.stderr.splitlines()[-1].startswith("tfb: stdout: cannot be written: ")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not FULL.is_char_device(), reason="not judged: this system has no full device")
def test_a_report_written_to_a_full_device_is_no_success_and_leaves_the_device(results: Path, tmp_path: Path) -> None:
    device = tmp_path / "full"
    device.symlink_to(FULL)  # by its own name, a mistake would replace the machine's device
    done = tfb(("report", "--output", str(device)), results)
    assert (done.returncode, device.is_symlink()) == (Exit.ENVIRONMENT, True)
    assert "full: cannot be written: No space left on device" in done.stderr


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    put(target, "first")
    put(target, "second")
    assert (target.read_text(), [path.name for path in tmp_path.iterdir()]) == ("second", ["report.html"])
    with pytest.raises(EnvironmentLacksError, match="No such file or directory"):
        put(tmp_path / "none" / "report.html", "x")
