"""The reader of toolset/meter: a line in, a line out, and the end with its input."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.paths import TOOLSET

METER = TOOLSET / "meter" / "meter.py"


def ask(pid: int, lines: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-S", str(METER), str(pid), "0"], input="\n" * lines, capture_output=True, text=True,
        timeout=20, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(not Path("/sys/fs/cgroup").is_dir(), reason="no control groups here")
def test_every_line_is_answered_with_counters_that_only_grow() -> None:
    ready, first, second = ask(os.getpid(), 2)
    assert ready["ready"] is True
    for name in ("at", "cpu_seconds", "run_seconds"):
        assert second["reading"][name] >= first["reading"][name] > 0
    assert os.getpid() in first["reading"]["pids"]
    assert first["sockets"] is None


def test_a_process_that_is_gone_is_said_to_be() -> None:
    assert ask(2**22 + 1, 1) == [{"gone": f"process {2**22 + 1} is gone"}]
