"""The command line: flags and verbs, and the one place where an error becomes an exit code."""

import contextlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from harness.cli.verbs import VERBS
from harness.errors import Exit, TfbError, UsageError
from harness.host import interruption
from harness.plain_text import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

TRACEBACK = "TFB_TRACEBACK"  # environment variable that asks for all of an error that nobody foresaw

COMPLETING = "_ARGCOMPLETE"  # in the environment: the shell asks what may follow


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if COMPLETING in os.environ:
        from harness.cli.completion import answer

        answer()  # and ends the process
    return guarded(lambda: _run(words))


def guarded(command: Callable[[], int]) -> int:
    """The exit code of a command; an error becomes one line and its code."""
    logging.getLogger("tfb").addHandler(logging.NullHandler())
    logging.raiseExceptions = False  # a log that cannot be written is no reason to fill the screen
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # what the terminal's encoding lacks is spelled out
    sys.stderr = _unfailing(sys.stderr)
    try:
        return _flushed(command())
    except TfbError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        told = [str(word) for word in interrupt.args] or ["interrupted; everything started is stopped"]
        for line in "\n".join(told).splitlines():
            _say(line)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # `./tfb report | head`: the reader has had enough. Python would complain once more while it exits.
        _silence()
        return Exit.OK
    except OSError as error:  # a full disk, a file that may not be read: the error names it
        if error.filename is None:
            _silence()
            error.filename = "the output"
        _say(str(error))
        return Exit.FAILED
    except MemoryError:
        _say("this process may take no more memory (ulimit -v, or the machine's): give it more, or ask for less")
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001 - a mistake of the harness: told in a line, and nothing is hidden
        return _unforeseen(error)


class _Unfailing(io.FileIO):
    """A file into nothing once it can be written to no more: its reader has left, or its disk is full."""

    def write(self, data: "Buffer", /) -> int:
        """All of it, as far as the caller can tell."""
        try:
            written = super().write(data)
        except OSError:
            written = None
        return memoryview(data).nbytes if written is None else written


def _unfailing(stream: TextIO) -> TextIO:
    """The stream for what a command says beside its result: a run is not given up because nobody hears of it."""
    try:
        raw = _Unfailing(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError):  # one that is no file
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors="backslashreplace", line_buffering=True
    )


def told(code: int, show: Callable[[], None]) -> int:
    """The exit code of what is done already, whether or not its reader stays until all of it is shown."""
    try:
        show()
        return _flushed(code)
    except BrokenPipeError:
        _silence()
        return code


def _flushed(code: int) -> int:
    """The exit code, once everything is written: a full disk is an error of the command and not of Python's end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code


def _say(text: str) -> None:
    """A line on stderr; nothing where that is closed or full."""
    try:
        print(f"tfb: {printable(text)}", file=sys.stderr, flush=True)
    except OSError:
        return


def _silence() -> None:
    """Whatever is still to be written to stdout goes nowhere: Python would complain once more while it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):  # one that is no file
        os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _unforeseen(error: Exception) -> int:
    """An error that no one foresaw, with where it came from; all of it where the environment asks for that."""
    if os.environ.get(TRACEBACK):
        _say("".join(traceback.format_exception(error)))
        return Exit.FAILED
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    first = (str(error).splitlines() or [""])[0]
    _say(
        f"a mistake of the harness, not of yours: {type(error).__name__}: {first[:300]}{where}; please report it "
        f"with what {TRACEBACK}=1 shows (CONTRIBUTING.md)"
    )
    return Exit.FAILED


def _run(words: Sequence[str]) -> int:
    for number, word in enumerate(words, 1):
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise UsageError(f"argument {number} is not valid {sys.getfilesystemencoding()}: {printable(word)}")
    if words and words[0] in VERBS:
        with interruption.loading():
            verb = VERBS[words[0]].load()
        return verb(words[1:])
    if not words:
        from harness.cli.help import overview

        print(overview(), end="")
        return Exit.OK
    with interruption.loading():
        from harness.cli.subcommands import carry_out

    return carry_out(words)
