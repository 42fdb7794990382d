"""``./tfb dashboard``: the results in a browser."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli.flags import whole
from harness.cli.settings import results_folder
from harness.errors import Exit


def command(
    *file: Annotated[str, Parameter(help="results.json files of TechEmpower's own runs to show as well")],
    bind: Annotated[str, Parameter(help="default 127.0.0.1: this machine only", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[
        int, Parameter(help="default 8000; 0: a free one", converter=whole, validator=Number(gte=0, lte=65535))
    ] = 8000,
    results: Annotated[str | None, Parameter(help="another results folder", metavar="DIR")] = None,
) -> int:
    """Serve the results to a browser, live while a run goes on; Ctrl-C ends."""
    from harness.dashboard.server import serve
    from harness.report import comparison
    from harness.report.sentence import sentences

    files = [Path(name) for name in file]
    folder = results_folder(results)
    serve(folder, bind=bind, port=port, files=files, answer=sentences, told=comparison.sentences)
    return Exit.OK
