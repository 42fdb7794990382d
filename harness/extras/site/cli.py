"""``./tfb site``: a round of runs as static pages."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness.cli.arguments import Parser
from harness.cli.settings import results_folder
from harness.errors import Exit


def arguments() -> Parser:
    """The flags of ``./tfb site``."""
    p = Parser(prog="./tfb site", description="Publish runs together, as a round, in static pages for any file host.")
    p.add_argument("run", nargs="*", help="run ids, their beginnings, or folders; default: the latest")
    p.add_argument("--output", metavar="DIR", required=True, help="the site's folder; a round is added to those in it")
    p.add_argument("--round", metavar="NAME", help="the round's name; default: today's date")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    return p


def main(argv: Sequence[str]) -> int:
    """Publish; prints the page to open."""
    from harness.records import store

    options = arguments().parse_args(list(argv))
    from harness.extras.site.publish import publish

    results = results_folder(options.results)
    folders = [store.find(results, run) for run in options.run or [None]]
    now = time.time()
    name = options.round or datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    output = Path(options.output)
    publish(folders, output, name=name, published_at=now)
    print(output / "index.html")
    return Exit.OK
