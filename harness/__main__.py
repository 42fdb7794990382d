"""Runs the command line, ``python -m harness``, in a process of its own: no child of it outlives it."""

import os
import site
import sys

# Before any other import: modules of the current folder, or of the caller's PYTHONPATH, are not tfb's. ./tfb starts
# Python so that neither is searched, but an installed tfb, or ``python -m harness``, may have them first.
_home = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib is not imported yet
try:
    _here = os.path.realpath("")
except FileNotFoundError:  # the current folder has been removed
    _here = ""
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", _here) and _here != _home:
    del sys.path[0]
if _theirs := os.environ.get("PYTHONPATH"):
    _own = {_home, *map(os.path.realpath, site.getsitepackages())}
    _foreign = {os.path.realpath(folder) if folder else _here for folder in _theirs.split(os.pathsep)} - _own
    sys.path[:] = [folder for folder in sys.path if (os.path.realpath(folder) if folder else _here) not in _foreign]

from typing import Any  # noqa: E402

from harness.errors import Exit  # noqa: E402
from harness.host import environment, interruption, memory  # noqa: E402


def open_streams() -> None:
    """Open what the parent has closed of stdin, stdout and stderr: the next file would take its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the lowest free number is taken; results that go nowhere are an error, messages are none
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace"))  # noqa: PTH123, SIM115


def run() -> int:
    """The exit code; signals end the run in order, and whatever is left in the end is stopped."""
    open_streams()
    environment.secure_process()
    try:
        try:
            interruption.install_handlers(lambda: _children("terminate_all"), lambda: _children("kill_all"))
            if lacking := memory.describe_shortage():
                print(f"tfb: {lacking}", file=sys.stderr)
                return Exit.FAILED
            with interruption.held_while_loading():
                from harness.cli import main
            return main()
        finally:
            _end()
    except KeyboardInterrupt:  # before or after everything that could be interrupted in order
        _end()
        return Exit.INTERRUPTED


def _end() -> None:
    """Stop what is left; a signal that comes now has nothing to interrupt."""
    interruption.hold_until_exit()
    _children("stop_all")
    interruption.disarm()


def _children(order: str) -> Any:  # noqa: ANN401 - what the order returns
    """Give an order to all children; where nothing has loaded all of the door to other programs, there are none."""
    if give := getattr(sys.modules.get("harness.host.process"), order, None):
        give()


def script() -> None:
    """What an installed ``tfb`` calls."""
    status = run()
    # An interrupt that passed an exec of a text, as dataclasses make their methods with, is remembered until the next
    # exec: Python would end itself by SIGINT instead of with our exit status.
    exec("")  # noqa: S102
    sys.exit(status)


if __name__ == "__main__":
    script()
