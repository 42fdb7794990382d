"""``./tfb report [RUN]``: the ranking again, from the files alone."""

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli.arguments import Parser
from harness.cli.settings import results_folder
from harness.errors import Exit, StoreError, UsageError
from harness.plain_text import printable
from harness.records.models import RunRecords


def arguments() -> Parser:
    """The flags of ``./tfb report``."""
    from harness.report.exporters import EXPORTERS
    from harness.stats import by_metric

    p = Parser(prog="./tfb report", description="Print the ranking of a run again, from its files.")
    p.add_argument("run", nargs="?", help="run id, its beginning, or a folder; default: the latest")
    p.add_argument("--format", choices=tuple(EXPORTERS), default="text")
    p.add_argument("--html", action="store_true", help="write one HTML file that works offline, into the run's folder")
    p.add_argument(
        "--metric", choices=by_metric.NAMES, help="rank by this one instead: text, markdown, csv or json of every level"
    )
    p.add_argument("--levels", action="store_true", help="text: every level's table, not the headline alone")
    p.add_argument("--output", metavar="FILE", help="write there instead of stdout")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    return p


def main(argv: Sequence[str]) -> int:
    """Print or write the report; exit code 1 when a file of the run could not be read."""
    from harness.records import store
    from harness.report import Report
    from harness.report.exporters import EXPORTERS
    from harness.stats.whole import rank_whole

    options = arguments().parse_args(list(argv))
    folder = store.find(results_folder(options.results), options.run)
    records = store.read(folder)
    if options.metric:
        return _by_metric(options, records)
    ranking, problems = rank_whole(folder, records.info, records.samples, records.replicates, records.verdicts)
    report = Report(folder=folder, records=records, ranking=ranking, every_level=options.levels)
    exporter = EXPORTERS["html" if options.html else options.format]
    target = Path(options.output) if options.output else folder / "report.html" if options.html else None
    if target is None:
        exporter.export(report, sys.stdout)
    else:
        text = io.StringIO()
        exporter.export(report, text)
        put(target, text.getvalue())
        if options.html:
            print(target)
    for problem in (*records.problems, *problems):
        print(f"tfb: {printable(problem)}", file=sys.stderr)
    return Exit.FAILED if records.problems or problems else Exit.OK


def _by_metric(options: argparse.Namespace, records: RunRecords) -> int:
    from harness.report import metric
    from harness.stats import by_metric

    export = metric.FORMATS.get(options.format)
    if export is None or options.html:
        raise UsageError(f"--metric: comes as {', '.join(metric.FORMATS)}")
    ranking = by_metric.rank_by(records, options.metric)
    if options.output:
        text = io.StringIO()
        export(ranking, text)
        put(Path(options.output), text.getvalue())
    else:
        export(ranking, sys.stdout)
    for problem in records.problems:
        print(f"tfb: {problem}", file=sys.stderr)
    return Exit.FAILED if records.problems else Exit.OK


def put(target: Path, text: str) -> None:
    """Write a file by rename, so that nobody sees half of it. Raises StoreError."""
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"{target}: cannot be written: {error.strerror}") from error
