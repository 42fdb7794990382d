"""``./tfb report [RUN]``: the ranking again, from the files alone."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli.arguments import Parser
from harness.cli.settings import results_folder
from harness.errors import Exit, UsageError
from harness.plain_text import printable


def arguments() -> Parser:
    """The flags of ``./tfb report``."""
    from harness.report.exporters import EXPORTERS
    from harness.stats import by_metric

    p = Parser(prog="./tfb report", description="Print the ranking of a run again, from its files.")
    p.add_argument("run", nargs="?", help="run id, its beginning, or a folder; default: the latest")
    p.add_argument("--format", choices=tuple(EXPORTERS), default="text")
    p.add_argument("--html", action="store_true", help="write one HTML file that works offline, into the run's folder")
    p.add_argument("--metric", choices=by_metric.NAMES, help="by this one instead: text, markdown or json of every load")
    p.add_argument("--levels", action="store_true", help="text: every load's table, not the headline alone")
    p.add_argument("--output", metavar="FILE", help="write there instead of stdout")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    return p


def main(argv: Sequence[str]) -> int:
    """Print or write the report; exit code 1 when a file of the run could not be read."""
    from harness.records import store
    from harness.report import Report, put
    from harness.report.exporters import EXPORTERS
    from harness.report.metric import export as by_metric
    from harness.stats.rank import rank

    options = arguments().parse_args(list(argv))
    folder = store.find(results_folder(options.results), options.run)
    records = store.read(folder)
    target = Path(options.output) if options.output else folder / "report.html" if options.html else None
    out = io.StringIO() if target else sys.stdout
    if options.metric:
        by_metric(records, options.metric, options.format, out)
    else:
        ranking = rank(records.info, records.trials, records.processes, records.verdicts)
        report = Report(folder=folder, records=records, ranking=ranking, every_load=options.levels)
        EXPORTERS["html" if options.html else options.format].export(report, out)
    if target and isinstance(out, io.StringIO):
        put(target, out.getvalue())
        if options.html:
            print(target)
    for problem in records.problems:
        print(f"tfb: {printable(problem)}", file=sys.stderr)
    return Exit.FAILED if records.problems else Exit.OK
