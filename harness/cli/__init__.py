"""The command line: parses arguments, asks for consent and turns errors into exit codes."""

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

TRACEBACK = "TFB_TRACEBACK"  # environment variable that makes tfb print the traceback of an internal error
INTERRUPTED = "interrupted; all started processes have been stopped"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _run(arguments))


def guarded(command: Callable[[], int]) -> int:
    """Call a command and return its exit code. Convert exceptions to messages on stderr."""
    logging.getLogger("tfb").addHandler(logging.NullHandler())
    logging.raiseExceptions = False  # print no traceback if a log message cannot be written
    try:
        with guarded_streams():
            code = command()
            interruption.raise_if_pending()
    except KeyboardInterrupt as error:
        message = "\ntfb: ".join("\n".join(map(str, error.args)).splitlines()) or INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the only place that turns errors into exit codes
        if not (interruption.requested() or _comes_from_interrupt(error)):
            return _print_error(error)
        message = INTERRUPTED  # a library turned the interrupt into a different error
    else:
        if code == Exit.OK or not interruption.requested():
            return code
        message = INTERRUPTED  # a library suppressed the interrupt
    return _print(message, Exit.INTERRUPTED)


def _comes_from_interrupt(error: BaseException | None) -> bool:
    """Return whether a KeyboardInterrupt caused the error. A failing import may turn it into a different error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _print_error(error: Exception) -> int:
    """Print an error and return the exit code."""
    match error:
        case TfbError():
            return _print(str(error), error.exit_code)
        case OSError():  # keep the whole message, which contains the file name
            return _print(str(error), Exit.FAILED)
        case MemoryError():
            text = "tfb ran out of memory: raise the limit (ulimit -v), or measure fewer implementations at once"
            return _print(text, Exit.FAILED)
    if os.environ.get(TRACEBACK):
        return _print("".join(traceback.format_exception(error)), Exit.FAILED)
    frames = traceback.extract_tb(error.__traceback__)
    location = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    first_line = (str(error).splitlines() or [""])[0]
    return _print(
        f"internal error in tfb: {type(error).__name__}: {first_line[:300]}{location}. Please report it "
        f"with the output of {TRACEBACK}=1",
        Exit.FAILED,
    )


def _print(text: str, code: Exit) -> Exit:
    """Print a message to stderr, if stderr is writable, and return ``code``."""
    try:
        stream = InertStream(sys.stderr)
        stream.write(f"tfb: {text.replace('./tfb', PROGRAM)}\n")
        stream.flush()
    except (OSError, ValueError):  # stderr is full or closed
        return code
    return code


def _run(arguments: Sequence[str]) -> int:
    """Parse arguments, resolve the settings, and execute the command."""
    for number, argument in enumerate(arguments, 1):
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise UsageError(f"argument {number} is not valid {sys.getfilesystemencoding()}: {printable(argument)}")
    with interruption.held_while_loading():
        from harness.cli.verbs import dispatch
    result = dispatch(arguments)
    if isinstance(result, int):
        return result
    with interruption.held_while_loading():
        from harness.cli.run import execute
    return execute(result)
