"""A round of runs as static pages that any file host serves: rounds, runs, and implementations over the rounds.

``site.json.gz`` keeps what the lists are made of, so that a later round is added to those before.
"""

import gzip
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from pydantic import ValidationError

from harness.dashboard.build import ensure_built, source_base
from harness.dashboard.runs import Run
from harness.dashboard.titles import machine_of
from harness.errors import StoreError
from harness.records import bounded
from harness.records.models import ImplementationInfo, Record, RunInfo
from harness.report import html
from harness.report.sentence import sentences
from harness.stats.model import Estimate, Ranking, RankInterval, Ratio, Standing
from harness.units import format_micros, format_rate

FILE = "site.json.gz"
MOST_BYTES = 64 << 20  # unpacked; a round of some hundred implementations takes less than one
POLICY = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
HEADERS = ("Round", "Possible ranks", "Requests/s", "95 %", "× reference", "CPU µs/req", "Machine")


class Point(Record):
    """An implementation's headline figures of one test type in one run."""

    run_id: str
    machine: str  # host, CPU model and count: figures of different ones do not compare
    test_type: str
    throughput: Estimate | None
    rank: RankInterval | None
    of: int  # ranked implementations in that table
    to_reference: Ratio | None
    cpu_per_request: Estimate | None
    reason: str


class PublishedRun(Record):
    """One run of a round."""

    run_id: str
    title: str
    lead: str
    facts: dict[str, str]  # implementation -> language, platform and so on
    points: tuple[tuple[str, Point], ...]  # implementation and its figures of a test type


class Round(Record):
    """A set of runs published together. The pages of its runs never change once they are published."""

    name: str
    slug: str
    published_at: float
    runs: tuple[PublishedRun, ...]


class Site(Record):
    """Everything that the lists are made from."""

    rounds: tuple[Round, ...] = ()  # oldest first

    @property
    def slugs(self) -> dict[str, str]:
        """Implementation -> its part of an address; it keeps the one that it had first."""
        found: dict[str, str] = {}
        for name in (name for one in self.rounds for run in one.runs for name in run.facts):
            base, number = _slug(name) or "implementation", 1
            while name not in found:
                slug = base if number == 1 else f"{base}-{number}"
                if slug not in found.values():
                    found[name] = slug
                number += 1
        return dict(sorted(found.items()))


def publish(runs: Sequence[Path], output: Path, *, name: str, published_at: float) -> Site:
    """Add a round of these runs to the site in ``output``. Raises StoreError: permalinks never change."""
    site, slug = read(output), _slug(name)
    if output.exists() and any(output.iterdir()) and not (output / FILE).exists():
        raise StoreError(f"{output}: holds other files than a site: choose an empty folder")
    if not slug:
        raise StoreError(f"{name!r}: a round's name needs a letter or a digit")
    if any(old.slug == slug for old in site.rounds):
        raise StoreError(f"round {name!r} is published already: choose another name with --round")
    web = ensure_built()
    known = [Run(folder) for folder in runs]
    new = Round(name=name, slug=slug, published_at=published_at, runs=tuple(map(_published, known)))
    site = Site(rounds=(*site.rounds, new))
    files = {f"rounds/{slug}/{run.info.run_id}.html": html.page(web, html.collect(run)) for run in known}
    style = next((web / "assets").glob("*.css"))
    try:
        for path, text in (files | dict(_lists(site, style.name))).items():
            (output / path).parent.mkdir(parents=True, exist_ok=True)
            (output / path).write_text(text, encoding="utf-8")
        (output / "assets").mkdir(exist_ok=True)
        shutil.copyfile(style, output / "assets" / style.name)
        (output / FILE).write_bytes(gzip.compress(site.model_dump_json().encode(), mtime=0))
    except OSError as error:
        raise StoreError(f"{output}: cannot be written: {error.strerror}") from error
    return site


def read(folder: Path) -> Site:
    """The site that a folder holds; an empty one where there is none. Raises StoreError for a broken site.json.gz."""
    path = folder / FILE
    try:
        with bounded.open_regular(path) as packed, gzip.open(packed) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise StoreError(f"{path}: larger than {MOST_BYTES >> 20} MiB unpacked")
        return Site.model_validate_json(bounded.require_few(data))
    except FileNotFoundError:
        return Site()
    except ValidationError as error:
        raise StoreError(f"{path}: not a site of this program: {error.errors()[0]['msg']}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise StoreError(f"{path}: not a site of this program: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _published(run: Run) -> PublishedRun:
    """What the site remembers of a run; single values of processes are not kept."""
    document = run.document(run.ranking(), source_base(), sentences)
    leading = next(iter(document.sentences.values()), {}).get(document.ranking.leading, ())
    return PublishedRun(
        run_id=run.info.run_id,
        title=document.title,
        lead=next(iter(leading), ""),
        facts={info.name: _facts(info) for info in run.info.implementations},
        points=tuple(_points(run.info, document.ranking)),
    )


def _facts(info: ImplementationInfo) -> str:
    """``Java · Vert.x · Micro``."""
    facts = (info.language, info.platform, info.classification, info.database, info.orm)
    return " · ".join(fact for fact in facts if fact and fact.lower() != "none")


def _points(info: RunInfo, ranking: Ranking) -> Iterator[tuple[str, Point]]:
    for test_type, test in ranking.test_types.items():
        of = sum(row.ranked for row in test.headline.rows)
        for row in test.headline.rows:
            point = Point(
                run_id=info.run_id,
                machine=machine_of(info),
                test_type=test_type,
                throughput=_slim(row.throughput),
                rank=row.throughput.rank if row.throughput else None,
                of=of,
                to_reference=row.throughput.to_reference if row.throughput else None,
                cpu_per_request=_slim(row.cpu_per_request),
                reason=row.reason,
            )
            yield row.implementation, point


def _slim(standing: Standing | None) -> Estimate | None:
    return standing.estimate.model_copy(update={"values": ()}) if standing else None


def _slug(name: str) -> str:
    """A name as a part of an address; empty for one without a letter or digit."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:60]


# ---- pages; they need no script -------------------------------------------------------------------------------------


def _lists(site: Site, style: str) -> Iterable[tuple[str, str]]:
    """The pages that grow with each round: path and text."""
    rounds = ""
    for one in reversed(site.rounds):
        day = datetime.fromtimestamp(one.published_at, UTC).strftime("%Y-%m-%d")
        rounds += f'<h2>{escape(one.name)}</h2><p class="quiet">{day}</p><ul class="runs">'
        for run in one.runs:
            link = f'<a href="rounds/{one.slug}/{run.run_id}.html">{escape(run.title)}</a>'
            rounds += (
                f'<li class="run"><div></div><div><h2>{link}</h2><p class="run-lead">{escape(run.lead)}</p></div></li>'
            )
        rounds += "</ul>"
    yield "index.html", _page("Rounds", rounds, "", style)
    members = "".join(f'<li><a href="{slug}.html">{escape(name)}</a></li>' for name, slug in site.slugs.items())
    yield "implementations/index.html", _page("Implementations", f'<ul class="checks">{members}</ul>', "../", style)
    facts = {name: told for one in site.rounds for run in one.runs for name, told in run.facts.items()}
    for name, slug in site.slugs.items():
        body = f"<p>{escape(facts[name])}</p>{_history(site, name)}"
        yield f"implementations/{slug}.html", _page(name, body, "../", style)


def _history(site: Site, name: str) -> str:
    """An implementation over the rounds, newest first, a table a test type."""
    tables: dict[str, list[str]] = {}
    for one in reversed(site.rounds):
        for point in (point for run in one.runs for mine, point in run.points if mine == name):
            link = f'<a href="../rounds/{one.slug}/{point.run_id}.html">{escape(one.name)}</a>'
            cells = (
                f"{point.rank.label} of {point.of}" if point.rank else point.reason or "–",
                format_rate(point.throughput.median if point.throughput else None),
                _interval(point.throughput),
                f"{point.to_reference.value:.2f}×" if point.to_reference else "–",
                format_micros(point.cpu_per_request.median if point.cpu_per_request else None),
                point.machine,
            )
            row = f'<tr><th scope="row">{link}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
            tables.setdefault(point.test_type, []).append(row)
    head = "".join(f'<th scope="col">{header}</th>' for header in HEADERS)
    return "".join(
        f'<h2>{escape(kind)}</h2><div class="table-frame"><table class="plain-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        for kind, rows in tables.items()
    )


def _interval(estimate: Estimate | None) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return "–"
    return f"[{format_rate(estimate.low)}, {format_rate(estimate.high)}]"


def _page(title: str, body: str, root: str, style: str) -> str:
    """A whole page; ``root`` leads from it to the site's first one."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,"><title>{escape(title)}: tfb'
        f'</title><link rel="stylesheet" href="{root}assets/{style}"></head><body>'
        f'<header class="top"><a class="brand" href="{root}index.html">tfb <span>web-framework benchmark</span></a>'
        f'<nav aria-label="Main"><a href="{root}index.html">Rounds</a>'
        f'<a href="{root}implementations/index.html">Implementations</a></nav></header>'
        f'<main id="main"><h1>{escape(title)}</h1>{body}</main></body></html>\n'
    )
