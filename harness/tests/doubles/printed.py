"""Text that tfb prints, as it reaches a terminal."""

import io

from harness.console import InertStream, SafeConsole
from harness.extras.gate.judge import GateResult
from harness.extras.gate.report import print_text
from harness.report.terminal import PIPE_WIDTH


def printed(result: GateResult, width: int = PIPE_WIDTH) -> str:
    """Return the output of a gate session on a terminal of the given width."""
    written = io.StringIO()
    stream = InertStream(written)
    print_text(result, SafeConsole(file=stream, width=width, highlight=False))
    stream.rich_proxied_file.flush()
    return written.getvalue()
