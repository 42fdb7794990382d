"""``./tfb report [RUN]``: the ranking again, from the files alone."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from harness.cli.arguments import Parser, results_folder
from harness.errors import Exit
from harness.rank.ranking import rank
from harness.report import markdown, table, terminal
from harness.results import store


def main(argv: Sequence[str]) -> int:
    """Print or write the report; exit code 1 when a file of the run could not be read."""
    p = Parser(prog="./tfb report", description="Print the ranking of a run again, from its files.")
    p.add_argument("run", nargs="?", help="run id, its beginning, or a folder; default: the latest")
    p.add_argument("--format", choices=("text", "markdown", "csv", "json"), default="text")
    p.add_argument("--html", action="store_true", help="write one HTML file that works offline")
    p.add_argument("--levels", action="store_true", help="text: every level's table, not the headline alone")
    p.add_argument("--output", metavar="FILE", help="write there instead of stdout")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    options = p.parse_args(list(argv))
    folder = store.find(results_folder(options.results), options.run)
    if options.html:
        from harness.report.html import write_html

        target = Path(options.output) if options.output else folder / "report.html"
        write_html(folder, target)
        print(target)
        return Exit.OK
    records = store.read(folder)
    ranking = rank(records.info, records.samples, records.replicates, records.verdicts)
    match options.format:
        case "markdown":
            _write(markdown.render(records.info, ranking), options.output)
        case "csv":
            _write(table.render(records.info, ranking), options.output)
        case "json":
            _write(ranking.model_dump_json(indent=1) + "\n", options.output)
        case _ if options.output:
            with Path(options.output).open("w", encoding="utf-8") as file:
                terminal.show(
                    records.info, ranking, Console(file=file, width=terminal.PIPE_WIDTH), levels=options.levels
                )
        case _:
            terminal.show(records.info, ranking, terminal.console(), levels=options.levels)
    for problem in records.problems:
        print(f"tfb: {problem}", file=sys.stderr)
    return Exit.FAILED if records.problems else Exit.OK


def _write(text: str, target: str | None) -> None:
    if target:
        Path(target).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
