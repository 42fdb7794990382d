"""Renders results of the regression gate as text for a terminal."""

import io

from harness.console import InertStream, SafeConsole
from harness.extras.gate.judge import GateResult
from harness.extras.gate.report import print_text
from harness.report.terminal import PIPE_WIDTH


def printed(result: GateResult, width: int = PIPE_WIDTH) -> str:
    """Return what the regression gate prints for a result on a terminal of ``width`` columns."""
    written = io.StringIO()
    stream = InertStream(written)
    print_text(result, SafeConsole(file=stream, width=width, highlight=False))
    stream.rich_proxied_file.flush()
    return written.getvalue()
