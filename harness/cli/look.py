"""Verbs that look at what is there: ``./tfb list`` (and ``--list-tests``), ``report`` and ``dashboard``."""

import io
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli import flags
from harness.cli.flags import Strings, frameworks_folders, results_folder
from harness.cli.output import print_problems, write_file, write_managed_file
from harness.cli.verbs import ImplementationNames
from harness.errors import Exit, UsageError
from harness.host import interruption
from harness.plain_text import json_text, printable
from harness.plan.discovery import Implementation, Scan, Selection, scan, select
from harness.plan.suggestions import suggest
from harness.plugins import Hook

MERGE_DEPLOYMENTS: Hook[Callable[[Mapping[str, Path], Path], Path]] = Hook(
    name="merge_deployments", purpose="report --deployments"
)
PUBLISH_SITE: Hook[Callable[..., object]] = Hook(name="publish_site", purpose="report --site")
Results = Annotated[str | None, Parameter(help="another results folder", metavar="DIR")]


def listing(
    *names: ImplementationNames,
    test_lang: Annotated[
        Strings, Parameter(help="languages: folders of frameworks/", completer=flags.complete_languages)
    ] = (),
    tag: Annotated[Strings, Parameter(help="with one of these tags")] = (),
    frameworks: Annotated[Strings, Parameter(help="other folders; default: frameworks/")] = (),
    as_json: Annotated[bool, Parameter(name="--json", help="all that the configurations say")] = False,
) -> int:
    """List implementations: name, folder, test types. Broken ones are named, and the exit code is 1."""
    found = scan(*frameworks_folders(frameworks))
    chosen = Selection(test=names or (() if test_lang or tag else ("all",)), test_lang=test_lang, tag=tag)
    shown = select(found, chosen)
    if as_json:
        print(_as_json(shown))
    else:
        _print_list([(i.name, "/".join(i.folder.parts[-2:]), " ".join((*i.urls, *_limit(i)))) for i in shown])
    return _problems(found, warnings=not names)


def _limit(implementation: Implementation) -> Sequence[str]:
    """What it takes to run it, in parentheses."""
    if implementation.lacking:
        return (f"({implementation.entry.database}: not run here)",)
    return () if implementation.local else ("(Docker)",)


def _print_list(rows: Sequence[tuple[str, str, str]]) -> None:
    """A header and a line each, which a terminal cuts at its edge rather than wrap."""
    from harness.report import terminal

    lines = [("implementation", "folder", "test types"), *rows]
    first, second = (max(len(line[column]) for line in lines) for column in (0, 1))
    console = terminal.make_console()
    for name, folder, test_types in lines:
        console.print(f"{name:<{first}}  {folder:<{second}}  {test_types}", no_wrap=True, overflow="ellipsis")


def list_tests(asked: flags.CommonFlags, tag: str | None) -> int:
    """TechEmpower's ``--list-tests``: the names alone, or with ``--json`` what the configurations say."""
    found = scan(*frameworks_folders(asked.frameworks))
    known = [i for i in found.implementations if not i.broken]
    shown = [i for i in known if tag is None or tag.lower() in map(str.lower, i.entry.tags)]
    for line in [_as_json(shown)] if asked.json else [i.name for i in shown]:
        print(line)
    return _problems(found)


def _as_json(shown: Sequence[Implementation]) -> str:
    return json_text(json.dumps([i.info().model_dump(mode="json") for i in shown]))


def _problems(found: Scan, *, warnings: bool = True) -> Exit:
    """Print what is wrong with the folders; return the exit code of a listing."""
    for line in (*found.problems, *(f"warning: {warning}" for warning in found.warnings if warnings)):
        print(f"tfb: {printable(line)}", file=sys.stderr)
    return Exit.FAILED if found.problems else Exit.OK


def report(
    *run: Annotated[
        str,
        Parameter(help="its id, the beginning of it, or a folder; default: the latest", completer=flags.complete_runs),
    ],
    format: Annotated[str, Parameter(help="text markdown json techempower")] = "text",  # noqa: A002 - the flag
    html: Annotated[bool, Parameter(help="write one HTML file that works offline, into the run's folder")] = False,
    levels: Annotated[bool, Parameter(help="text: every load's table, not the headline alone")] = False,
    output: Annotated[Path | None, Parameter(help="write there instead of stdout", metavar="FILE")] = None,
    site: Annotated[
        Path | None, Parameter(help="publish these runs as a round of static pages in this folder", metavar="DIR")
    ] = None,
    round: Annotated[str | None, Parameter(help="its name; default: today's date", metavar="NAME")] = None,  # noqa: A002 - the flag
    deployments: Annotated[bool, Parameter(help="of the same run on each deployment: they are made one run")] = False,
    results: Results = None,
) -> int:
    """Print or write the ranking of a run again; exit code 1 when a file of the run could not be read."""
    with interruption.held_while_loading():
        from harness.dashboard import saved
        from harness.records import store
        from harness.report import Report
        from harness.report.exporters import EXPORTERS
        from harness.stats.ranking import rank

    place = results_folder(results)
    folders = [store.find(place, name) for name in run or (None,)]
    if deployments:
        folders = [MERGE_DEPLOYMENTS.load()(dict(zip(run, folders, strict=False)), place)]
        print(f"{len(run)} deployments are one run: {folders[0]}", file=sys.stderr)
    if site:
        now = time.time()
        name = round or time.strftime("%Y-%m-%d", time.gmtime(now))
        PUBLISH_SITE.load()(folders, site, name=name, published_at=now)
        print(site / "index.html")
        return Exit.OK
    if len(folders) > 1 or round:
        raise UsageError("report is of one run; of several: --deployments, or pages by --site DIR --round NAME")
    if format not in EXPORTERS:
        raise UsageError(f"--format: no format {format!r}; {suggest(format, EXPORTERS)}")
    (folder,) = folders
    records = store.read(folder)
    if html:
        text = saved.render_run(folder)
        if output:
            write_file(output, text)
        print(output or write_managed_file(folder, "report.html", text))
    else:
        ranking = rank(records.info, records.trials, records.processes, records.verdicts)
        out = io.StringIO() if output else sys.stdout
        EXPORTERS[format](Report(records=records, ranking=ranking, every_load=levels), out)
        if output and isinstance(out, io.StringIO):
            write_file(output, out.getvalue())
    return Exit.FAILED if print_problems(records.problems) else Exit.OK


def dashboard(
    *,
    bind: Annotated[str, Parameter(help="default 127.0.0.1: this machine only", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[
        int,
        Parameter(
            help="default 8000; 0: a free one", converter=flags.parse_integer, validator=Number(gte=0, lte=65535)
        ),
    ] = 8000,
    results: Results = None,
) -> int:
    """Serve the results to a browser, live while a run goes on; Ctrl-C ends."""
    from harness.dashboard.server import serve

    serve(results_folder(results), bind=bind, port=port)
    return Exit.OK
