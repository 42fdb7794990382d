"""The command line: flags and verbs, and the one place where an error becomes an exit code."""

import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.cli.output import guarded_streams
from harness.console import InertStream
from harness.errors import Exit, TfbError, UsageError
from harness.host import interruption
from harness.paths import PROGRAM
from harness.plain_text import printable

TRACEBACK = "TFB_TRACEBACK"  # environment variable that asks for all of an error that nobody foresaw
INTERRUPTED = "interrupted; everything started is stopped"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _run(arguments))


def guarded(command: Callable[[], int]) -> int:
    """The exit code of a command; an error becomes one line and its code."""
    logging.getLogger("tfb").addHandler(logging.NullHandler())
    logging.raiseExceptions = False  # a log that cannot be written is no reason to fill the screen
    try:
        with guarded_streams():
            code = command()
            interruption.raise_if_pending()
    except KeyboardInterrupt as error:
        told = "\ntfb: ".join("\n".join(map(str, error.args)).splitlines()) or INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place where an error becomes an exit code
        if not interruption.requested():
            return _told(error)
        told = INTERRUPTED  # which something took for an error of its own
    else:
        return code
    return _say(told, Exit.INTERRUPTED)


def _told(error: Exception) -> int:
    """The exit code of an error, once it is told."""
    match error:
        case TfbError():
            return _say(str(error), error.exit_code)
        case OSError():  # a full disk, a file that may not be read: the error names it
            return _say(str(error), Exit.FAILED)
        case MemoryError():
            text = "this process may take no more memory (ulimit -v, or the machine's): give it more, or ask for less"
            return _say(text, Exit.FAILED)
    if os.environ.get(TRACEBACK):
        return _say("".join(traceback.format_exception(error)), Exit.FAILED)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    first = (str(error).splitlines() or [""])[0]
    return _say(
        f"a mistake of the harness, not of yours: {type(error).__name__}: {first[:300]}{where}; please report it "
        f"with what {TRACEBACK}=1 shows",
        Exit.FAILED,
    )


def _say(text: str, code: Exit) -> Exit:
    """Tell on stderr, as far as that takes it; returns the code."""
    try:
        stream = InertStream(sys.stderr)
        stream.write(f"tfb: {text.replace('./tfb', PROGRAM)}\n")
        stream.flush()
    except (OSError, ValueError):  # closed, or full
        return code
    return code


def _run(arguments: Sequence[str]) -> int:
    for number, argument in enumerate(arguments, 1):
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise UsageError(f"argument {number} is not valid {sys.getfilesystemencoding()}: {printable(argument)}")
    with interruption.held_while_loading():
        from harness.cli.verbs import dispatch
    found = dispatch(arguments)
    if isinstance(found, int):
        return found
    with interruption.held_while_loading():
        from harness.cli.run import execute
    return execute(found, arguments)
