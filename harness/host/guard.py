"""The guardian of this process's children: at most one, started with the first child, gone at an orderly end."""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.host import interruption
from harness.host.ownership import Owner

SCRIPT = Path(__file__).with_name("guardian.py")
FAREWELL_SECONDS = 5.0

_guardian: list["subprocess.Popen[bytes]"] = []


def start(me: Owner, mark: str, key: str) -> None:
    """Have somebody who ends our children, known by ``mark`` in their environment, if we are killed.

    It is in our session, so that it is not taken for a daemon of theirs, and deaf to the terminal's signals; ``key`` is
    the mark's variable, which it must not carry itself.
    """
    if _guardian or sys.platform != "linux":
        return
    with interruption.held(), contextlib.suppress(OSError):
        _guardian.append(
            subprocess.Popen(
                [sys.executable, "-I", "-S", str(SCRIPT), mark, tempfile.gettempdir(), str(me)],
                cwd="/",
                env={name: value for name, value in os.environ.items() if name != key},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        )


def dismiss() -> None:
    """An orderly end: the guardian goes, too."""
    while _guardian:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            _guardian.pop().communicate(b"bye", timeout=FAREWELL_SECONDS)
