"""The command line: flags and verbs, and the one place where an error becomes an exit code."""

import logging
import os
import sys
from collections.abc import Callable, Sequence

from harness.cli.verbs import VERBS
from harness.errors import Exit, TfbError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
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
    from harness.cli.arguments import parser

    options = parser().parse_args(words)
    if not words:
        parser().print_help()
        return Exit.OK
    if options.list_tests or options.list_tag:
        from harness.cli.listing import show

        return show(options)
    # Only now: --help, a wrong flag and the verbs need not load what a run needs.
    from harness.cli.run import run

    return run(options, words)
