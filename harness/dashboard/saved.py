"""Saves a run as a single HTML file with the dashboard's page and all documents of the run."""

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.dashboard.build import ensure_built
from harness.dashboard.documents import Embedded, LogDocument
from harness.dashboard.run_documents import DashboardRun
from harness.errors import StoreError
from harness.records.trial_record import Trial

MAX_PAGE_BYTES = 1_900_000  # maximum size of the file, small enough to send by email
MAX_LOG_CHARACTERS = 12_000  # only the last characters of a longer log are saved


def render_run(folder: Path) -> str:
    """Return a run as a page that works offline. Rank the trials again, because ranking.json may be forged.

    Raises StoreError if the run is unreadable.
    """
    return render_page(ensure_built(), collect_documents(DashboardRun(folder, rank_again=True)))


def collect_documents(run: DashboardRun) -> Embedded:
    """Return all documents of a run, without latency histograms."""
    return Embedded(
        document=run.document(),
        tests=run.tests(),
        latency={kind: latency for kind in run.info.loads if (latency := run.latency(kind)).cells},
        cells=tuple(run.cells()),
        logs={name: truncate_log(run.log(name)) for name in run.logs()},
    )


def render_page(web: Path, embedded: Embedded, head: str = "") -> str:
    """Return the page as HTML.

    If the page exceeds ``MAX_PAGE_BYTES``, apply ``REDUCTIONS`` in order until it fits. The page lists the omitted
    data. ``head`` is additional HTML for the ``<head>`` element.
    """
    script = read_asset(web, "*.js").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    style = read_asset(web, "*.css")
    fixed = len(script.encode()) + len(style.encode()) + 4096
    data = compress(embedded)
    for omission, reduce in REDUCTIONS.items():
        if fixed + len(data) <= MAX_PAGE_BYTES:
            break
        embedded = reduce(embedded)
        embedded = embedded.model_copy(update={"left_out": (*embedded.left_out, omission)})
        data = compress(embedded)
    policy = (
        f"default-src 'none'; script-src '{csp_hash(script)}'; style-src '{csp_hash(style)}'; img-src blob: data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = html.escape(embedded.document.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}: tfb</title>\n{head}<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"><noscript>This page needs JavaScript to show the results.</noscript></div>\n'
        f'<script type="application/gzip" id="run-data">{data}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def compress(embedded: Embedded) -> str:
    """Return the documents, with rounded numbers, as gzipped JSON in base64, which needs no escaping in HTML."""
    plain = json.loads(embedded.model_dump_json(), parse_float=round_number)
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode("ascii")


def round_number(text: str) -> float:
    """Round a number to six significant digits, unless it exceeds 1e9, as times in seconds since 1970 do."""
    return float(text) if float(text) > 1e9 else float(f"{float(text):.6g}")


def csp_hash(text: str) -> str:
    """Return the Content-Security-Policy source expression that allows exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def read_asset(web: Path, pattern: str) -> str:
    """Return the text of the only asset that matches a pattern. Raises StoreError unless a single asset matches."""
    paths = list((web / "assets").glob(pattern))
    if len(paths) != 1:
        raise StoreError(
            f"{web / 'assets'}: {len(paths)} files match {pattern}, expected one. Delete {web} to build the page again"
        )
    return paths[0].read_text(encoding="utf-8")


def truncate_log(log: LogDocument) -> LogDocument:
    """Return the document with only the last MAX_LOG_CHARACTERS characters of the log."""
    cut = max(0, len(log.text) - MAX_LOG_CHARACTERS)
    skipped = log.skipped + len(log.text[:cut].encode())
    return log.model_copy(update={"text": log.text[cut:], "skipped": skipped})


def drop_windows(embedded: Embedded) -> Embedded:
    """Return the documents without the trials' time series."""

    def slim(trial: Trial) -> Trial:
        warm_up = trial.warm_up and trial.warm_up.model_copy(update={"windows": ()})
        return trial.model_copy(update={"windows": (), "warm_up": warm_up})

    cells = (cell.model_copy(update={"trials": tuple(map(slim, cell.trials))}) for cell in embedded.cells)
    return embedded.model_copy(update={"cells": tuple(cells)})


# Reductions for a page that is too large, in the order in which they are applied. Each key is a message on the page.
REDUCTIONS: Mapping[str, Callable[[Embedded], Embedded]] = {
    "The trials' second-by-second time series are omitted.": drop_windows,
    "Logs are omitted.": lambda e: e.model_copy(update={"logs": {}}),
    "Individual trials are omitted.": lambda e: e.model_copy(update={"cells": ()}),
    "Tables for individual loads are omitted.": lambda e: e.model_copy(update={"tests": {}, "latency": {}}),
}
