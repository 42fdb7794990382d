"""Runs the command line, ``python -m harness``, in a process of its own: no child of it outlives it."""

import sys

from harness.errors import Exit
from harness.host import interruption, process


def run() -> int:
    """The exit code; signals end the run in order, and whatever is left in the end is stopped."""
    interruption.install(process.ask_all, process.kill_all)
    try:
        from harness.cli import main

        return main()
    except KeyboardInterrupt:  # before or after everything that could be interrupted in order
        return Exit.INTERRUPTED
    finally:
        process.stop_all()
        interruption.done()


sys.exit(run())
