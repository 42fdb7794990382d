"""``./tfb list``, ``--list-tests`` and ``--list-tag``: loads no more than the configuration files."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from harness.cli import values
from harness.cli.asked import Asked, Names
from harness.cli.flags import Words
from harness.cli.settings import frameworks_folders
from harness.errors import Exit
from harness.plain_text import printable
from harness.plan.discovery import Implementation, Scan, Selection, scan, select


def command(
    *names: Names,
    test_lang: Annotated[
        Words, Parameter(help="languages: the folders of frameworks/", completer=values.languages)
    ] = (),
    tag: Annotated[Words, Parameter(help="with one of these tags", completer=values.tags)] = (),
    frameworks: Annotated[Words, Parameter(help="other folders; default: frameworks/")] = (),
    as_json: Annotated[bool, Parameter(name="--json", help="all that the configurations say")] = False,
) -> int:
    """List implementations: name, folder, test types. Broken ones are named, and the exit code is 1."""
    found = scan(*frameworks_folders(frameworks))
    chosen = Selection(test=names or (() if test_lang or tag else ("all",)), test_lang=test_lang, tag=tag)
    shown = select(found.implementations, chosen)
    if as_json:
        print(json.dumps([i.info().model_dump(mode="json") for i in shown]))
    else:
        folders = [i.folder.relative_to(i.folder.parent.parent).as_posix() for i in shown]
        name_width = max((len(i.name) for i in shown), default=0)
        folder_width = max(map(len, folders), default=0)
        for implementation, folder in zip(shown, folders, strict=True):
            print(f"{implementation.name:<{name_width}}  {folder:<{folder_width}}  {' '.join(implementation.urls)}")
    return _problems(found)


def show(asked: Asked) -> int:
    """TechEmpower's ``--list-tests``: the names alone, or with ``--json`` what the configurations say."""
    found = scan(*frameworks_folders(asked.flags.frameworks))
    tag = asked.tag
    shown = [
        i
        for i in found.implementations
        if not i.broken and (tag is None or tag.lower() in map(str.lower, i.entry.tags))
    ]
    if asked.flags.json:
        print(json.dumps([i.info().model_dump(mode="json") for i in shown]))
    else:
        for implementation in shown:
            print(implementation.name)
    status = _problems(found)
    if any(not i.own for i in found.implementations):
        print(f"tfb: {'; '.join(_counts(shown, found.implementations))}", file=sys.stderr)
    return status


def _problems(found: Scan) -> Exit:
    for line in (*found.problems, *(f"warning: {warning}" for warning in found.warnings)):
        print(f"tfb: {printable(line)}", file=sys.stderr)
    return Exit.FAILED if found.problems else Exit.OK


def _counts(shown: Sequence[Implementation], everything: Sequence[Implementation]) -> Iterator[str]:
    """How many are listed, how many are marked as broken, and how many are refused, by what they ask for."""
    yield f"{len(shown)} listed"
    if broken := sum(i.broken for i in everything):
        yield f"{broken} marked as broken, not listed and never run"
    refused = Counter(i.entry.database for i in shown if i.lacking)
    if refused:
        words = ", ".join(f"{count} for {name}" for name, count in sorted(refused.items()))
        yield f"{refused.total()} listed, refused when they are to run, since their database is not served: {words}"
