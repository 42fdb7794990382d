"""The commands ``./tfb report`` and ``./tfb dashboard``, which show recorded runs."""

import io
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli import flags
from harness.cli.flags import results_folder
from harness.cli.output import print_problems, write_file, write_managed_file
from harness.errors import Exit, UsageError
from harness.host import interruption
from harness.plan.suggestions import suggest
from harness.plugins import Hook

MERGE_RUNS: Hook[Callable[..., Path]] = Hook(name="merge_runs", purpose="reports on several runs")
PUBLISH_SITE: Hook[Callable[..., object]] = Hook(name="publish_site", purpose="report --site")
Results = Annotated[str | None, Parameter(help="results folder; default: results/", metavar="DIR")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FormatFlags:
    """Flags for the format and the destination of a report."""

    format: Annotated[str, Parameter(help="text, markdown, csv, json or techempower")] = "text"
    html: Annotated[bool, Parameter(help="write a self-contained HTML file to the run's folder")] = False
    levels: Annotated[bool, Parameter(help="print a table for every load, not only for the headline loads")] = False
    output: Annotated[Path | None, Parameter(help="write to this file instead of stdout", metavar="FILE")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PublishFlags:
    """Flags for merging or publishing several runs."""

    site: Annotated[
        Path | None, Parameter(help="publish the runs as a round: write static pages to this folder", metavar="DIR")
    ] = None
    round: Annotated[
        str | None, Parameter(help="with --site: name of the round; default: today's date", metavar="NAME")
    ] = None
    url: Annotated[
        str | None,
        Parameter(help="with --site: address of the served site, for badges and link previews", metavar="URL"),
    ] = None
    deployments: Annotated[
        bool, Parameter(help="merge runs of the same implementations on several deployments into one run")
    ] = False
    across: Annotated[bool, Parameter(help="merge parts (run --part) even if their commits or machines differ")] = False


def report(
    *run: Annotated[
        str,
        Parameter(
            help="id of a run, unique prefix of an id, or folder; default: the latest run",
            completer=flags.complete_runs,
        ),
    ],
    formatting: FormatFlags = FormatFlags(),
    publishing: PublishFlags = PublishFlags(),
    results: Results = None,
) -> int:
    """Print a run's ranking, or write it to a file.

    Several runs are merged if --deployments is given, or if they are parts of a selection (run --part).
    The exit code is 1 if a file of the run could not be read.
    """
    if publishing.site and formatting != FormatFlags():
        raise UsageError("--site writes pages: remove --format, --html, --levels and --output")
    if not publishing.site and (publishing.round or publishing.url):
        raise UsageError("--round and --url need --site DIR")
    folders = _find_runs(run, results_folder(results), publishing)
    if publishing.site:
        return _publish(folders, publishing.site, publishing)
    (folder,) = folders
    return _write_report(folder, formatting)


def _find_runs(names: tuple[str, ...], results: Path, flags: PublishFlags) -> list[Path]:
    """Return the folders of the named runs. Merge parts of a selection or, with --deployments, all runs into one."""
    with interruption.held_while_loading():
        from harness.records import store
        from harness.records.run_folders import find_run

    folders = [find_run(results, name) for name in names or (None,)]
    are_parts = len(folders) > 1 and any(store.read_info(folder).part for folder in folders)
    if flags.deployments and are_parts:
        raise UsageError(
            "--deployments: at least one run is a part of a selection (run --part). Remove the flag, and name all parts"
        )
    if flags.across and not are_parts:
        raise UsageError(
            "--across works only with the parts of a selection (run --part): remove the flag, or name all parts"
        )
    if len(folders) > 1 and not (are_parts or flags.deployments or flags.site):
        raise UsageError(
            "report takes a single run, or all parts of a selection (run --part). To combine other runs, "
            "add --deployments, or --site DIR --round NAME"
        )
    if not (are_parts or flags.deployments):
        return folders
    merged = MERGE_RUNS.load()(dict(zip(names, folders, strict=False)), results, across=flags.across)
    print(f"merged {len(names)} {'parts' if are_parts else 'deployments'} into {merged}", file=sys.stderr)
    return [merged]


def _publish(folders: list[Path], site: Path, flags: PublishFlags) -> int:
    """Write the static pages of a round that consists of the runs, and print the path of index.html."""
    now = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())  # reproducible-builds.org
    round_name = flags.round or time.strftime("%Y-%m-%d", time.gmtime(now))
    PUBLISH_SITE.load()(folders, site, name=round_name, published_at=now, url=flags.url or "")
    print(site / "index.html")
    return Exit.OK


def _write_report(folder: Path, formatting: FormatFlags) -> int:
    """Write a run's report in the chosen format. Return the exit code."""
    with interruption.held_while_loading():
        from harness.dashboard import saved
        from harness.records import store
        from harness.report import Report
        from harness.report.exporters import EXPORTERS
        from harness.stats.ranking import rank

    if formatting.format not in EXPORTERS:
        raise UsageError(f"--format: unknown format {formatting.format!r}; {suggest(formatting.format, EXPORTERS)}")
    records, output = store.read_run(folder), formatting.output
    if formatting.html:
        text = saved.render_run(folder)
        if output:
            write_file(output, text)
        print(output or write_managed_file(folder, "report.html", text))
    else:
        ranking = rank(records.info, records.trials, records.processes, records.verdicts)
        buffer = io.StringIO() if output else sys.stdout
        EXPORTERS[formatting.format](Report(records=records, ranking=ranking, every_load=formatting.levels), buffer)
        if output and isinstance(buffer, io.StringIO):
            write_file(output, buffer.getvalue())
    return Exit.FAILED if print_problems(records.problems) else Exit.OK


def dashboard(
    *,
    bind: Annotated[
        str, Parameter(help="address to listen on; default: 127.0.0.1, this machine only", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        Parameter(
            help="port to listen on; 0: any free port; default: 8000",
            converter=flags.parse_integer,
            validator=Number(gte=0, lte=65535),
        ),
    ] = 8000,
    results: Results = None,
) -> int:
    """Show results and runs in progress in a browser; press Ctrl-C to stop."""
    from harness.dashboard.server import serve

    serve(results_folder(results), bind=bind, port=port)
    return Exit.OK
