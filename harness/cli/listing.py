"""``./tfb --list-tests`` and ``--list-tag``: loads no more than the configuration files."""

import argparse
import json
import sys

from harness.cli.arguments import frameworks_folder
from harness.errors import Exit
from harness.request.discovery import Implementation, scan


def show(options: argparse.Namespace) -> int:
    """Print the names, or with ``--json`` what the configurations say; exit code 1 when one cannot be read."""
    found = scan(frameworks_folder(options.frameworks))
    tag = options.list_tag
    shown = [i for i in found.implementations if not i.broken and (tag is None or _tagged(i, tag))]
    if options.json:
        print(json.dumps([i.info().model_dump(mode="json") for i in shown]))
    else:
        for implementation in shown:
            print(implementation.name)
    for problem in found.problems:
        print(f"tfb: {problem}", file=sys.stderr)
    return Exit.FAILED if found.problems else Exit.OK


def _tagged(implementation: Implementation, tag: str) -> bool:
    return tag.lower() in (known.lower() for known in implementation.entry.tags)
