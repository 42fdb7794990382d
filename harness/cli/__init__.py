"""The command line: flags and verbs, and the one place where an error becomes an exit code."""

import logging
import os
import sys
from collections.abc import Callable, Sequence

from harness.cli.verbs import VERBS
from harness.errors import Exit, TfbError

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
    try:
        return command()
    except TfbError as error:
        print(f"tfb: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("tfb: interrupted; everything started is stopped, what was measured is kept", file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # `./tfb report | head`: the reader has had enough. Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except OSError as error:  # a full disk, a file that may not be read: the error names it
        print(f"tfb: {error}", file=sys.stderr)
        return Exit.FAILED


def _run(words: Sequence[str]) -> int:
    if words and words[0] in VERBS:
        return VERBS[words[0]].load()(words[1:])
    if not words:
        from harness.cli.help import overview

        print(overview(), end="")
        return Exit.OK
    from harness.cli.subcommands import carry_out

    return carry_out(words)
