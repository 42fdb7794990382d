"""``./tfb site``: a round of runs as static pages."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli.settings import results_folder
from harness.errors import Exit


def command(
    *run: Annotated[str, Parameter(help="run ids, their beginnings, or folders; default: the latest")],
    output: Annotated[Path, Parameter(help="the site's folder; a round is added to those in it", metavar="DIR")],
    round: Annotated[str | None, Parameter(help="the round's name; default: today's date", metavar="NAME")] = None,  # noqa: A002 - the flag
    results: Annotated[str | None, Parameter(help="another results folder", metavar="DIR")] = None,
) -> int:
    """Publish runs together, as a round, in static pages for any file host; print the page to open."""
    from harness.extras.site.publish import publish
    from harness.records import store

    folders = [store.find(results_folder(results), name) for name in run or (None,)]
    now = time.time()
    name = round or datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    publish(folders, output, name=name, published_at=now)
    print(output / "index.html")
    return Exit.OK
