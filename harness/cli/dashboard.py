"""``./tfb dashboard``: the results in a browser."""

from collections.abc import Sequence
from pathlib import Path

from harness.cli.arguments import Parser
from harness.cli.parsing import free_or_port
from harness.cli.settings import results_folder
from harness.errors import Exit


def arguments() -> Parser:
    """The flags of ``./tfb dashboard``."""
    p = Parser(prog="./tfb dashboard", description="Serve the results to a browser, live while a run goes on.")
    p.add_argument("file", nargs="*", help="results.json files of TechEmpower's own runs to show as well")
    p.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="default 127.0.0.1: this machine only")
    p.add_argument("--port", type=free_or_port, default=8000, help="default 8000; 0: a free one")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    return p


def main(argv: Sequence[str]) -> int:
    """Serve until Ctrl-C."""
    options = arguments().parse_args(list(argv))
    from harness.dashboard import serve
    from harness.report.sentence import sentences

    files = [Path(name) for name in options.file]
    serve(results_folder(options.results), bind=options.bind, port=options.port, files=files, answer=sentences)
    return Exit.OK
