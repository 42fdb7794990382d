"""A round of runs as static pages that any file host serves: rounds, runs, and implementations over the rounds.

``site.json`` keeps what the lists are made of, so that a later round is added to those before.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import quote

from harness.dashboard import saved
from harness.dashboard.build import ensure_built
from harness.dashboard.runs import Run
from harness.errors import StoreError
from harness.records import bounded, safe_write
from harness.records.models import ImplementationInfo, Moment, Record, Scenario
from harness.records.reader import first_complaint
from harness.report.tables import interval, ratio
from harness.stats.model import Row
from harness.units import format_micros, format_rate

FILE = "site.json"
MOST_BYTES = 64 << 20  # a round of some hundred implementations takes a few
NAME_CHARACTERS = 200  # of a file's name, of the most that file systems take, 255
POLICY = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
HEADERS = ("Round", "Ranks by requests/s", "by CPU", "Requests/s", "95 %", "× reference", "CPU µs/req", "Machine")


class PublishedRun(Record):
    """One run of a round."""

    run_id: str
    title: str
    lead: str
    machine: str  # host, CPU model and count: figures of different ones do not compare
    facts: dict[str, str]  # implementation -> language, platform and so on
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]  # test type, implementation, and cells of its headline table


class Round(Record):
    """A set of runs published together. The pages of its runs never change once they are published."""

    name: str
    slug: str
    published_at: Moment
    runs: tuple[PublishedRun, ...]


class Site(Record):
    """Everything that the lists are made from."""

    rounds: tuple[Round, ...] = ()  # oldest first


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
    known = [Run(folder, rank_again=True) for folder in runs]  # what is published is what the trials say
    if len({run.info.run_id for run in known}) < len(known):
        raise StoreError("two of these runs have one id, and a page is called by its run's")
    new = Round(name=name, slug=slug, published_at=published_at, runs=tuple(map(_published, known)))
    site = Site(rounds=(*site.rounds, new))
    files = {_of_run(new, run.info.run_id): saved.page(web, saved.collect(run)) for run in known}
    style = next((web / "assets").glob("*.css"))
    place = output.resolve()  # a link to the site is the user's own; links in it are not followed
    try:
        for path, text in (files | dict(_lists(site, style.name))).items():
            _write(place / path, text.encode())
        _write(place / "assets" / style.name, style.read_bytes())
        _write(place / FILE, site.model_dump_json().encode())
    except OSError as error:
        raise StoreError(f"{output}: cannot be written: {error.strerror}") from error
    return site


def _write(path: Path, data: bytes) -> None:
    """Write a file of the site. Raises OSError and UnsafePathError."""
    safe_write.make_folder(path.parent)
    safe_write.replace(path, data)


def read(folder: Path) -> Site:
    """The site that a folder holds; an empty one where there is none. Raises StoreError for a broken site.json."""
    path = folder / FILE
    try:
        return Site.model_validate_json(bounded.require_few(bounded.read(path, MOST_BYTES)))
    except FileNotFoundError:
        return Site()
    except ValueError as error:
        raise StoreError(f"{path}: not a site of this program: {first_complaint(error)}") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _published(run: Run) -> PublishedRun:
    """What the site remembers of a run."""
    document, machine = run.document(), run.info.machine
    headlines = {kind: test.headline.rows for kind, test in document.ranking.test_types.items()}
    leading = next(iter(document.sentences.values()), {}).get(document.ranking.leading, ())
    return PublishedRun(
        run_id=run.info.run_id,
        title=document.title,
        lead=next(iter(leading), ""),
        machine=f"{machine.hostname}, {' '.join(machine.cpu_model.split())}, {machine.cpus_online} CPUs",
        facts={info.name: _facts(info) for info in run.info.implementations},
        rows=tuple(
            (kind, row.implementation, cells(row, sum(each.ranked for each in rows)))
            for kind, rows in headlines.items()
            for row in rows
        ),
    )


def cells(row: Row, of: int) -> tuple[str, ...]:
    """One of so many ranked rows, as ``HEADERS`` has it; arrivals come at a rate that says nothing of who answers."""
    found, cpu = None if isinstance(row.load, Scenario) else row.throughput, row.cpu_per_request
    return (
        f"{found.rank.label} of {of}" if found else row.reason or "–",
        f"{cpu.rank.label} of {of}" if cpu else "–",
        format_rate(found.estimate.median if found else None),
        interval(found.estimate if found else None),
        ratio(found.to_reference if found else None),
        format_micros(cpu.estimate.median if cpu else None),
    )


def _facts(info: ImplementationInfo) -> str:
    """``Java · Vert.x · Micro``."""
    facts = (info.language, info.platform, info.classification, info.database, info.orm)
    return " · ".join(fact for fact in facts if fact and fact.lower() != "none")


def _slug(name: str) -> str:
    """A round's name as a part of an address; empty for one without a letter or digit."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:60]


# ---- pages; they need no script -------------------------------------------------------------------------------------


def _lists(site: Site, style: str) -> Iterable[tuple[str, str]]:
    """The pages that grow with each round: path and text."""
    rounds = ""
    for one in reversed(site.rounds):
        day = datetime.fromtimestamp(one.published_at, UTC).strftime("%Y-%m-%d")
        rounds += f'<h2>{escape(one.name)}</h2><p class="quiet">{day}</p><ul class="runs">'
        for run in one.runs:
            link = f'<a href="{quote(_of_run(one, run.run_id))}">{escape(run.title)}</a>'
            rounds += (
                f'<li class="run"><div></div><div><h2>{link}</h2><p class="run-lead">{escape(run.lead)}</p></div></li>'
            )
        rounds += "</ul>"
    yield "index.html", _page("Rounds", rounds, "", style)
    facts = {name: told for one in site.rounds for run in one.runs for name, told in run.facts.items()}
    members = "".join(f'<li><a href="{quote(_address(name))}">{escape(name)}</a></li>' for name in sorted(facts))
    yield "implementations/index.html", _page("Implementations", f'<ul class="checks">{members}</ul>', "../", style)
    for name, told in facts.items():
        body = f"<p>{escape(told)}</p>{_history(site, name)}"
        yield f"implementations/{_address(name)}", _page(name, body, "../", style)


def _address(name: str) -> str:
    """Return the file of a page about something of this name, whatever characters it has and however long it is."""
    found = quote(name, safe="")
    if len(found) > NAME_CHARACTERS or found == "index":  # which is the list of all
        found = f"{found[:NAME_CHARACTERS]}-{sha256(name.encode()).hexdigest()[:16]}"
    return f"{found}.html"


def _of_run(one: Round, run_id: str) -> str:
    """Return the path of a run's page in the site; a round's address is made again, its file may be anybody's."""
    return f"rounds/{_slug(one.slug)}/{_address(run_id)}"


def _history(site: Site, name: str) -> str:
    """An implementation over the rounds, newest first, a table a test type."""
    tables: dict[str, str] = {}
    every = ((one, run, *each) for one in reversed(site.rounds) for run in one.runs for each in run.rows)
    for one, run, kind, implementation, found in every:
        if implementation != name:
            continue
        link = f'<a href="../{quote(_of_run(one, run.run_id))}">{escape(one.name)}</a>'
        told = "".join(f"<td>{escape(cell)}</td>" for cell in (*found, run.machine))
        tables[kind] = tables.get(kind, "") + f'<tr><th scope="row">{link}</th>{told}</tr>'
    head = "".join(f'<th scope="col">{header}</th>' for header in HEADERS)
    return "".join(
        f'<h2>{escape(kind)}</h2><div class="table-frame"><table class="plain-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        for kind, lines in tables.items()
    )


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
