"""Runs the command line, ``python -m harness``, in a process of its own: no child of it outlives it."""

import sys

from harness.errors import Exit
from harness.host import interruption


def run() -> int:
    """The exit code; signals end the run in order, and whatever is left in the end is stopped."""
    interruption.install(lambda: _children("ask_all"), lambda: _children("kill_all"))
    try:
        from harness.cli import main

        return main()
    except KeyboardInterrupt:  # before or after everything that could be interrupted in order
        return Exit.INTERRUPTED
    finally:
        _children("stop_all")
        interruption.done()


def _children(order: str) -> None:
    """Give an order to all children; where nothing has loaded the door to other programs, there are none."""
    if door := sys.modules.get("harness.host.process"):
        getattr(door, order)()


sys.exit(run())
