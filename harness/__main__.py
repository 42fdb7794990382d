"""Runs the command line, ``python -m harness``, in a process of its own: no child of it outlives it."""

import os
import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nothing has been started yet
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(130))

from harness.errors import Exit
from harness.host import interruption


def open_streams() -> None:
    """Open what the parent has closed of stdin, stdout and stderr: the next file would take its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)  # the lowest free number
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace"))  # noqa: PTH123, SIM115


def run() -> int:
    """The exit code; signals end the run in order, and whatever is left in the end is stopped."""
    open_streams()
    try:
        try:
            interruption.install(lambda: _children("ask_all"), lambda: _children("kill_all"))
            with interruption.held():  # a library that is interrupted while it is loaded does as it likes
                from harness.cli import main
            return main()
        finally:
            _end()
    except KeyboardInterrupt:  # before or after everything that could be interrupted in order
        _end()
        return Exit.INTERRUPTED


def _end() -> None:
    """Stop what is left; a signal that comes now has nothing to interrupt."""
    interruption.closing()
    _children("stop_all")
    interruption.done()


def _children(order: str) -> None:
    """Give an order to all children; where nothing has loaded the door to other programs, there are none."""
    if door := sys.modules.get("harness.host.process"):
        getattr(door, order)()


sys.exit(run())
