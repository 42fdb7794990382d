"""If the disk is full or the output pipe is closed, every verb prints an error and exits with a documented code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.output import write_file
from harness.errors import EnvironmentLacksError, Exit
from harness.paths import REPOSITORY

FULL = Path("/dev/full")


@pytest.mark.parametrize("place", [">/dev/full", ">&-"])
def test_a_full_or_closed_stdout_exits_three(place: str) -> None:
    command = ["sh", "-c", f'"$@" {place}', "sh", sys.executable, "-m", "harness", "list"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert completed.returncode == Exit.ENVIRONMENT
    (line,) = completed.stderr.splitlines()
    assert line.startswith("tfb: cannot write stdout: ")


def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    write_file(target, "first")
    write_file(target, "second")
    assert (target.read_text(), [path.name for path in tmp_path.iterdir()]) == ("second", ["report.html"])
    with pytest.raises(EnvironmentLacksError, match="No such file or directory"):
        write_file(tmp_path / "none" / "report.html", "x")


@pytest.mark.skipif(not FULL.is_char_device(), reason="not judged: this system has no full device")
def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    device = tmp_path / "full"
    device.symlink_to(FULL)  # protects the real device if tfb wrongly replaces the file
    with pytest.raises(EnvironmentLacksError, match="full: No space left on device"):
        write_file(device, "x")
    assert device.is_symlink()
