"""Renders the regression gate's results as a terminal receives them."""

import io

from harness.console import InertStream, SafeConsole
from harness.extras.gate.judge import GateResult
from harness.extras.gate.report import print_text
from harness.report.terminal import PIPE_WIDTH


def printed(result: GateResult, width: int = PIPE_WIDTH) -> str:
    """Return the regression gate's output for a result, on a terminal of the given width."""
    written = io.StringIO()
    stream = InertStream(written)
    print_text(result, SafeConsole(file=stream, width=width, highlight=False))
    stream.rich_proxied_file.flush()
    return written.getvalue()
