"""``./tfb list``, and TechEmpower's ``--list-tests`` and ``--list-tag``."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from harness.cli import flags
from harness.cli.flags import Strings, frameworks_folders
from harness.cli.verbs import ImplementationNames
from harness.errors import Exit
from harness.plain_text import json_text, printable
from harness.plan.discovery import Implementation, ScanResult, Selection, scan_folders, select_implementations


def command(
    *names: ImplementationNames,
    test_lang: Annotated[
        Strings,
        Parameter(
            help="only implementations in these languages (folder names in frameworks/)",
            completer=flags.complete_languages,
        ),
    ] = (),
    tag: Annotated[Strings, Parameter(help="only implementations with any of these tags")] = (),
    frameworks: Annotated[Strings, Parameter(help="folders of implementations; default: frameworks/")] = (),
    as_json: Annotated[bool, Parameter(name="--json", help="print the complete configurations as JSON")] = False,
) -> int:
    """List implementations with their folders and test types.

    The exit code is 1 if a configuration is broken.
    """
    known = scan_folders(*frameworks_folders(frameworks))
    selection = Selection(test=names or (() if test_lang or tag else ("all",)), test_lang=test_lang, tag=tag)
    selected = select_implementations(known, selection)
    if as_json:
        print(_as_json(selected))
    else:
        _print_table([(i.name, "/".join(i.folder.parts[-2:]), " ".join((*i.urls, *_remarks(i)))) for i in selected])
    return _print_problems(known, warnings=not names)


def _remarks(implementation: Implementation) -> Sequence[str]:
    """Return the restrictions on an implementation in parentheses."""
    if implementation.unsupported_reason:
        return (f"(needs {implementation.entry.database}, which tfb does not run)",)
    return () if implementation.local else ("(Docker)",)


def _print_table(rows: Sequence[tuple[str, str, str]]) -> None:
    """Print a header and a line for each row. On a terminal, truncate long lines."""
    from harness.report import terminal

    lines = [("implementation", "folder", "test types"), *rows]
    first, second = (max(len(line[column]) for line in lines) for column in (0, 1))
    console = terminal.make_console()
    for name, folder, test_types in lines:
        console.print(f"{name:<{first}}  {folder:<{second}}  {test_types}", no_wrap=True, overflow="ellipsis")


def list_tests(parsed_flags: flags.CommonFlags, tag: str | None) -> int:
    """Print the names of all implementations, or of those with a tag; with ``--json``, print the configurations."""
    known = scan_folders(*frameworks_folders(parsed_flags.frameworks))
    sound = [i for i in known.implementations if not i.is_broken]
    selected = [i for i in sound if tag is None or tag.lower() in map(str.lower, i.entry.tags)]
    for line in [_as_json(selected)] if parsed_flags.json else [i.name for i in selected]:
        print(line)
    return _print_problems(known)


def _as_json(implementations: Sequence[Implementation]) -> str:
    return json_text(json.dumps([i.info().model_dump(mode="json") for i in implementations]))


def _print_problems(known: ScanResult, *, warnings: bool = True) -> Exit:
    """Print the problems of the folders to stderr, and return the exit code of the listing."""
    for line in (*known.problems, *(f"warning: {warning}" for warning in known.warnings if warnings)):
        print(f"tfb: {printable(line)}", file=sys.stderr)
    return Exit.FAILED if known.problems else Exit.OK
