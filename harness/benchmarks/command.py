"""Runs a script of this package as ``./tfb`` runs a verb: one line an error, and no child outlives it."""

import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from harness.cli import guarded
from harness.host import interruption, process


def command(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Leave the process with the exit code of ``main``, after stopping whatever it started."""
    interruption.install(process.ask_all, process.kill_all)
    try:
        status = guarded(lambda: main(sys.argv[1:]))
    finally:
        process.stop_all()
        interruption.done()
    sys.exit(status)
