"""The command line: flags and verbs, and the one place where an error becomes an exit code."""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from harness.cli.verbs import VERBS
from harness.errors import Exit, TfbError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    logging.getLogger("tfb").addHandler(logging.NullHandler())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _as_interrupt)
    try:
        if words and words[0] in VERBS:
            return VERBS[words[0]].load()(words[1:])
        from harness.cli.arguments import parser

        options = parser().parse_args(words)
        if not words:
            parser().print_help()
            return Exit.OK
        # Only now: --help, a wrong flag and the verbs need not load what a run needs.
        from harness.cli.run import run

        return run(options, words)
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


def _as_interrupt(number: int, _frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end a run like Ctrl-C does; while it is stopping, a second one is ignored."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
