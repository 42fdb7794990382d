"""Entry point for ``python -m harness`` and the installed ``tfb``. Stops all child processes before exiting."""

import os
import site
import sys

# Before any other import, remove the current folder and the caller's PYTHONPATH from the module search path. Files
# there could shadow standard modules and tfb's dependencies. (./tfb already starts Python without these folders.)
_tfb_home = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib is not imported yet
try:
    _current = os.path.realpath("")
except FileNotFoundError:  # the current folder has been removed
    _current = ""
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", _current) and _current != _tfb_home:
    del sys.path[0]
if _python_path := os.environ.get("PYTHONPATH"):
    _own_folders = {_tfb_home, *map(os.path.realpath, site.getsitepackages())}
    _foreign = {
        os.path.realpath(folder) if folder else _current for folder in _python_path.split(os.pathsep)
    } - _own_folders
    sys.path[:] = [folder for folder in sys.path if (os.path.realpath(folder) if folder else _current) not in _foreign]

from typing import Any  # noqa: E402

from harness.errors import Exit  # noqa: E402
from harness.host import environment, interruption, memory  # noqa: E402


def open_streams() -> None:
    """Open each standard stream that the parent has closed, so that no other file gets the stream's descriptor."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # os.open() returns the lowest free descriptor, which is ``number``. stdout becomes read-only, so that
            # writing to it fails instead of silently losing output. Text for stderr is discarded.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace"))  # noqa: PTH123, SIM115


def run() -> int:
    """Run the command line, stop all child processes and return the exit code."""
    open_streams()
    environment.secure_process()
    try:
        try:
            interruption.install_handlers(lambda: _children("terminate_all"), lambda: _children("kill_all"))
            if shortage := memory.describe_shortage():
                print(f"tfb: {shortage}", file=sys.stderr)
                return Exit.FAILED
            with interruption.held_while_loading():
                from harness.cli import main
            return main()
        finally:
            _end()
    except KeyboardInterrupt:  # interrupted outside harness.cli, which handles interrupts itself
        _end()
        return Exit.INTERRUPTED
    except Exception:
        if interruption.requested():  # the interrupt broke an import, which raised a different error
            return Exit.INTERRUPTED
        raise


def _end() -> None:
    """Stop all child processes and ignore all further signals."""
    interruption.hold_until_exit()
    _children("stop_all")
    interruption.disarm()


def _children(function: str) -> Any:  # noqa: ANN401 - result of the function
    """Call a function in ``harness.host.process``. If that module is not loaded, no children exist, so do nothing."""
    if call := getattr(sys.modules.get("harness.host.process"), function, None):
        call()


def script() -> None:
    """Run the command line and exit. This is the entry point of the installed ``tfb`` command."""
    status = run()
    # If SIGINT arrives during exec(), which dataclasses call, CPython later kills this process with SIGINT. A second
    # exec() makes CPython forget the signal, so that the process exits with ``status``.
    exec("")  # noqa: S102
    sys.exit(status)


if __name__ == "__main__":
    script()
