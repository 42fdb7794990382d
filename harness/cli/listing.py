"""``./tfb list``, ``--list-tests`` and ``--list-tag``: loads no more than the configuration files."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.cli.arguments import Parser
from harness.cli.settings import frameworks_folders
from harness.errors import Exit
from harness.plain_text import printable

if TYPE_CHECKING:  # what a quick start does without
    from harness.plan.discovery import Implementation, Scan


def arguments() -> Parser:
    """The flags of ``./tfb list``."""
    p = Parser(prog="./tfb list", description="List implementations: name, folder, test types. Broken ones are named.")
    p.add_argument("names", nargs="*", metavar="NAME", help="these; run: the core ones; default: all")
    p.add_argument("--test-lang", nargs="+", default=[], metavar="LANG", help="languages: the folders of frameworks/")
    p.add_argument("--tag", nargs="+", default=[], help="with one of these tags")
    p.add_argument("--frameworks", nargs="+", default=[], metavar="DIR", help="other folders; default: frameworks/")
    p.add_argument("--json", action="store_true", help="all that the configurations say")
    return p


def main(argv: Sequence[str]) -> int:
    """Print a line an implementation; exit code 1 when a configuration cannot be read."""
    from harness.plan.discovery import Selection, scan, select

    options = arguments().parse_intermixed_args(list(argv))
    found = scan(*frameworks_folders(options.frameworks))
    names = options.names or ([] if options.test_lang or options.tag else ["all"])
    shown = select(
        found.implementations,
        Selection(test=tuple(names), test_lang=tuple(options.test_lang), tag=tuple(options.tag)),
    )
    if options.json:
        print(json.dumps([i.info().model_dump(mode="json") for i in shown]))
    else:
        folders = [i.folder.relative_to(i.folder.parent.parent).as_posix() for i in shown]
        name_width = max((len(i.name) for i in shown), default=0)
        folder_width = max(map(len, folders), default=0)
        for implementation, folder in zip(shown, folders, strict=True):
            print(f"{implementation.name:<{name_width}}  {folder:<{folder_width}}  {' '.join(implementation.urls)}")
    return _problems(found)


def show(options: argparse.Namespace) -> int:
    """TechEmpower's ``--list-tests``: the names alone, or with ``--json`` what the configurations say."""
    from harness.plan.discovery import scan

    found = scan(*frameworks_folders(options.frameworks))
    tag = options.list_tag
    shown = [
        i
        for i in found.implementations
        if not i.broken and (tag is None or tag.lower() in map(str.lower, i.entry.tags))
    ]
    if options.json:
        print(json.dumps([i.info().model_dump(mode="json") for i in shown]))
    else:
        for implementation in shown:
            print(implementation.name)
    status = _problems(found)
    if any(not i.own for i in found.implementations):
        print(f"tfb: {'; '.join(_counts(shown, found.implementations))}", file=sys.stderr)
    return status


def _problems(found: "Scan") -> Exit:
    for line in (*found.problems, *(f"warning: {warning}" for warning in found.warnings)):
        print(f"tfb: {printable(line)}", file=sys.stderr)
    return Exit.FAILED if found.problems else Exit.OK


def _counts(shown: "Sequence[Implementation]", everything: "Sequence[Implementation]") -> Iterator[str]:
    """How many are listed, how many are marked as broken, and how many are refused, by what they ask for."""
    yield f"{len(shown)} listed"
    if broken := sum(i.broken for i in everything):
        yield f"{broken} marked as broken, not listed and never run"
    refused = Counter(i.entry.database for i in shown if i.lacking)
    if refused:
        words = ", ".join(f"{count} for {name}" for name, count in sorted(refused.items()))
        yield f"{refused.total()} listed, refused when they are to run, since their database is not served: {words}"
