"""``./tfb report [RUN]``: the ranking again, from the files alone."""

import io
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli import values
from harness.cli.output import put
from harness.cli.settings import results_folder
from harness.errors import Exit, UsageError
from harness.plain_text import printable
from harness.plan.words import suggest


def command(
    run: Annotated[
        str | None,
        Parameter(help="its id, the beginning of it, or a folder; default: the latest", completer=values.runs),
    ] = None,
    /,
    *,
    format: Annotated[str, Parameter(help="text markdown csv json html techempower")] = "text",  # noqa: A002 - the flag
    html: Annotated[bool, Parameter(help="write one HTML file that works offline, into the run's folder")] = False,
    metric: Annotated[
        str | None, Parameter(help="by this one instead, such as memory: text, markdown or json of every load")
    ] = None,
    levels: Annotated[bool, Parameter(help="text: every load's table, not the headline alone")] = False,
    output: Annotated[Path | None, Parameter(help="write there instead of stdout", metavar="FILE")] = None,
    results: Annotated[str | None, Parameter(help="another results folder", metavar="DIR")] = None,
) -> int:
    """Print or write the ranking of a run again; exit code 1 when a file of the run could not be read."""
    from harness.records import store
    from harness.report import Report
    from harness.report.exporters import EXPORTERS
    from harness.report.metric import export as by_metric
    from harness.stats.ranking import rank
    from harness.stats.values import METRICS

    if format not in EXPORTERS:
        raise UsageError(f"--format: no format {format!r}; {suggest(format, EXPORTERS)}")
    if metric and metric not in METRICS:
        raise UsageError(f"--metric: no metric {metric!r}; {suggest(metric, METRICS)}")
    folder = store.find(results_folder(results), run)
    records = store.read(folder)
    target = output or (folder / "report.html" if html else None)
    out = io.StringIO() if target else sys.stdout
    if metric:
        by_metric(records, metric, format, out)
    else:
        ranking = rank(records.info, records.trials, records.processes, records.verdicts)
        report = Report(folder=folder, records=records, ranking=ranking, every_load=levels)
        EXPORTERS["html" if html else format].export(report, out)
    if target and isinstance(out, io.StringIO):
        put(target, out.getvalue())
        if html:
            print(target)
    for problem in records.problems:
        print(f"tfb: {printable(problem)}", file=sys.stderr)
    return Exit.FAILED if records.problems else Exit.OK
