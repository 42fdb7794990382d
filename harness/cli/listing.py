"""The command ``./tfb list``, and TechEmpower's flags ``--list-tests`` and ``--list-tag``."""

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from harness.cli import flags
from harness.cli.flags import Strings, frameworks_folders
from harness.cli.verbs import ImplementationNames
from harness.errors import Exit
from harness.plain_text import json_text, printable
from harness.plan.discovery import ScanResult, Selection, scan_folders, select_implementations
from harness.plan.implementation import CORE_TAG, Implementation


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
    scan = scan_folders(*frameworks_folders(frameworks))
    selection = Selection(test=names or (() if test_lang or tag else ("all",)), test_lang=test_lang, tag=tag)
    selected = select_implementations(scan, selection)
    if as_json:
        print(_as_json(selected))
    else:
        _print_groups(selected)
    return _print_problems(scan, warnings=not names)


def _remarks(implementation: Implementation) -> Sequence[str]:
    """Return an implementation's restrictions as remarks, for example ``(Docker)``."""
    if implementation.unsupported_reason:
        return (f"(needs {implementation.entry.database}, which tfb does not run)",)
    return () if implementation.local else ("(Docker)",)


def _print_groups(implementations: Sequence[Implementation]) -> None:
    """Print each language's implementations with platforms and test types. Truncate lines to the terminal's width."""
    from harness.report import terminal

    letters = initials(dict.fromkeys(kind for i in implementations for kind in i.urls))
    name_width, platform_width = (
        max((len(text) for text in texts), default=0)
        for texts in ([i.name for i in implementations], [i.entry.platform or "" for i in implementations])
    )
    console = terminal.make_console()
    for language, group in groupby(sorted(implementations, key=_language), key=_language):
        console.print(Text(f"\n{printable(language)}", style="bold"))
        for i in sorted(group, key=lambda each: each.name):
            mark = "*" if CORE_TAG in map(str.lower, i.entry.tags) else " "
            types = "".join(letter if kind in i.urls else "·" for kind, letter in letters.items())
            line = f"{mark} {i.name:<{name_width}}  {i.entry.platform or '':<{platform_width}}  {types}"
            console.print(" ".join((line, *_remarks(i))), no_wrap=True, overflow="ellipsis")
    legend = ", ".join(f"{letter} {kind}" for kind, letter in letters.items())
    console.print(f"\n*  core: measured if no names are given\n{legend}", soft_wrap=False)


def _language(implementation: Implementation) -> str:
    return implementation.folder.parent.name


def initials(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct character for each name: the name's first unused letter, or else any unused letter or digit."""
    letters: dict[str, str] = {}
    for name in names:
        candidates = (*filter(str.isalpha, name.upper()), *ascii_uppercase, *ascii_lowercase, *digits)
        letters[name] = next((letter for letter in candidates if letter not in letters.values()), "?")
    return letters


def list_tests(parsed_flags: flags.CommonFlags, tag: str | None) -> int:
    """Print the names of the implementations that are not tagged as broken. If ``tag`` is set, require this tag.

    With ``--json``, print their configurations instead.
    """
    scan = scan_folders(*frameworks_folders(parsed_flags.frameworks))
    sound = [i for i in scan.implementations if not i.is_broken]
    selected = [i for i in sound if tag is None or tag.lower() in map(str.lower, i.entry.tags)]
    for line in [_as_json(selected)] if parsed_flags.json else [i.name for i in selected]:
        print(line)
    return _print_problems(scan)


def _as_json(implementations: Sequence[Implementation]) -> str:
    return json_text(json.dumps([i.info().model_dump(mode="json") for i in implementations]))


def _print_problems(scan: ScanResult, *, warnings: bool = True) -> Exit:
    """Print configuration problems to stderr and return the exit code."""
    for line in (*scan.problems, *(f"warning: {warning}" for warning in scan.warnings if warnings)):
        print(f"tfb: {printable(line)}", file=sys.stderr)
    return Exit.FAILED if scan.problems else Exit.OK
