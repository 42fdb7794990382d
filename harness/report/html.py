"""One run as one HTML file: the dashboard's page with everything that it would have asked the server for."""

import base64
import gzip
import hashlib
import html
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from harness.dashboard.baselines import relative_to_all
from harness.dashboard.build import ensure_built
from harness.dashboard.documents import CellDocument, Embedded, LatencyDocument, LogDocument, TestDocument
from harness.dashboard.runs import Run
from harness.dashboard.source import source_base
from harness.errors import StoreError
from harness.report import Report
from harness.report.sentence import sentences

MOST_BYTES = 1_900_000  # of the whole file: small enough to mail
LOG_CHARACTERS = 12_000  # of a log's end
EXACT = frozenset({"started_at", "completed_at", "measured_at", "seed", "bytes", "requests"})
DIGITS = 6  # significant digits of other numbers: more than any measurement here has


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """Something to leave out when the file would be too large, and the sentence that says so."""

    says: str
    apply: Callable[[Embedded], Embedded]


def export(report: Report, out: TextIO) -> None:
    """The run as one file that works offline, from disk. Raises StoreError when it cannot be read."""
    out.write(page(ensure_built(), collect(Run(report.folder))))


def write_html(folder: Path, target: Path) -> None:
    """Write the run of a folder as one file. Raises StoreError when it cannot be read or written."""
    text = page(ensure_built(), collect(Run(folder)))
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror}") from error


def collect(run: Run) -> Embedded:
    """Everything of a run, without the latency histograms (their percentiles are there)."""
    ranking = run.ranking()
    document = run.document(ranking, source_base(), sentences)
    tests: dict[str, TestDocument] = run.tests(ranking)
    latency: dict[str, LatencyDocument] = run.latency()
    lines = run.index()
    pairs = dict.fromkeys(
        [*lines.spans, *((verdict.implementation, name) for name, test in tests.items() for verdict in test.verdicts)]
    )
    cells = tuple(without_histograms(run.cell(implementation, kind, lines)) for implementation, kind in pairs)
    logs = {name: shortened(run.log(name), LOG_CHARACTERS) for name in run.logs()}
    ratios = relative_to_all(run, [sample for cell in cells for sample in cell.samples])
    return Embedded(document=document, tests=tests, latency=latency, cells=cells, logs=logs, baselines=ratios)


def page(web: Path, embedded: Embedded) -> str:
    """The file's text; reduced until it is small enough, and saying what was left out."""
    script = one(web, "*.js").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    style = one(web, "*.css")
    fixed = len(script.encode()) + len(style.encode()) + 4096
    data = packed(embedded)
    for reduction in REDUCTIONS:
        if fixed + len(data) <= MOST_BYTES:
            break
        embedded = reduction.apply(embedded)
        embedded = embedded.model_copy(update={"left_out": (*embedded.left_out, reduction.says)})
        data = packed(embedded)
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src blob: data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = html.escape(embedded.document.run.name or embedded.document.run.run_id)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}: tfb</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"><noscript>These results are shown by a script in this file: allow it to run.</noscript></div>\n'
        f'<script type="application/gzip" id="run-data">{data}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def packed(embedded: Embedded) -> str:
    """JSON, gzipped, in base64: no character of it means anything to HTML."""
    plain = rounded(json.loads(embedded.model_dump_json()))
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode("ascii")


def rounded(value: object, key: str = "") -> object:
    """The same with numbers to six significant digits, except counts and times of day."""
    match value:
        case float() if key not in EXACT and math.isfinite(value):
            return float(f"{value:.{DIGITS}g}")
        case dict():
            return {name: rounded(item, name) for name, item in value.items()}
        case list():
            return [rounded(item, key) for item in value]
        case _:
            return value


def digest(text: str) -> str:
    """The source of a Content-Security-Policy that allows exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def one(web: Path, pattern: str) -> str:
    """The text of the only asset of this kind."""
    paths = list((web / "assets").glob(pattern))
    if len(paths) != 1:
        raise StoreError(f"{web / 'assets'}: {len(paths)} files match {pattern}, one is needed; build the page again")
    return paths[0].read_text(encoding="utf-8")


def without_histograms(cell: CellDocument) -> CellDocument:
    """A cell without what its percentiles tell in fewer bytes."""
    samples = tuple(sample.without_histograms() for sample in cell.samples)
    return cell.model_copy(update={"samples": samples})


def without_seconds(embedded: Embedded) -> Embedded:
    """Without the second-by-second series."""
    cells = []
    for cell in embedded.cells:
        samples = [
            sample.model_copy(
                update={
                    "windows": (),
                    "warm_up": sample.warm_up.model_copy(update={"windows": ()}) if sample.warm_up else None,
                }
            )
            for sample in cell.samples
        ]
        cells.append(cell.model_copy(update={"samples": tuple(samples)}))
    return embedded.model_copy(update={"cells": tuple(cells)})


def with_short_logs(embedded: Embedded) -> Embedded:
    """With the last lines of each log only."""
    logs = {name: shortened(log, 1500) for name, log in embedded.logs.items()}
    return embedded.model_copy(update={"logs": logs})


def shortened(log: LogDocument, characters: int) -> LogDocument:
    """The end of a log."""
    cut = max(0, len(log.text) - characters)
    skipped = log.skipped + len(log.text[:cut].encode())
    return log.model_copy(update={"text": log.text[cut:], "skipped": skipped})


def without_passed_checks(embedded: Embedded) -> Embedded:
    """With the gates and checks that did not pass, only."""
    cells = []
    for cell in embedded.cells:
        samples = [
            sample.model_copy(update={"gates": tuple(gate for gate in sample.gates if gate.outcome != "pass")})
            for sample in cell.samples
        ]
        verdicts = [
            verdict.model_copy(update={"results": tuple(item for item in verdict.results if item.outcome != "pass")})
            for verdict in cell.verdicts
        ]
        cells.append(cell.model_copy(update={"samples": tuple(samples), "verdicts": tuple(verdicts)}))
    return embedded.model_copy(update={"cells": tuple(cells)})


REDUCTIONS = (
    Reduction(
        says="Ratios to baselines other than the reference are left out.",
        apply=lambda embedded: embedded.model_copy(update={"baselines": {}}),
    ),
    Reduction(says="Logs are cut to their last lines.", apply=with_short_logs),
    Reduction(says="The second-by-second series are left out.", apply=without_seconds),
    Reduction(says="Logs are left out.", apply=lambda embedded: embedded.model_copy(update={"logs": {}})),
    Reduction(says="Gates and checks that passed are left out.", apply=without_passed_checks),
    Reduction(says="Single samples are left out.", apply=lambda embedded: embedded.model_copy(update={"cells": ()})),
)
