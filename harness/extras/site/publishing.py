"""Publishes rounds of runs as a static site with pages for rounds, runs and implementations.

``site.json`` contains the data of the overview pages, which allows adding further rounds.
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
from harness.dashboard.run_documents import DashboardRun
from harness.errors import StoreError
from harness.records import safe_read, safe_write
from harness.records.loads import Scenario
from harness.records.reader import first_error
from harness.records.record import EpochSeconds, Record
from harness.records.run_info import ImplementationInfo
from harness.report.tables import format_interval, format_ratio
from harness.stats.ranking_model import Row
from harness.units import format_micros, format_rate

FILE = "site.json"
MOST_BYTES = 64 << 20  # maximum size of site.json; a round with a few hundred implementations takes a few MiB
NAME_CHARACTERS = 200  # maximum number of characters of an encoded name in a file name; file systems permit 255
POLICY = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
HEADERS = ("Round", "Ranks by requests/s", "by CPU", "Requests/s", "95 %", "× reference", "CPU µs/req", "Machine")


class PublishedRun(Record):
    """A run of a round."""

    run_id: str
    title: str
    lead: str
    machine: str  # host, CPU model and number of CPUs, because results of different machines cannot be compared
    facts: dict[str, str]  # implementation -> facts such as language and platform
    # (test type, implementation, cells) for each row of a headline table.
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]


class SiteRound(Record):
    """A set of runs that are published together. Published pages of runs never change."""

    name: str
    slug: str
    published_at: EpochSeconds
    runs: tuple[PublishedRun, ...]


class Site(Record):
    """The content of ``site.json``: the data of all overview pages."""

    rounds: tuple[SiteRound, ...] = ()  # in chronological order


def publish(runs: Sequence[Path], output: Path, *, name: str, published_at: float) -> Site:
    """Add a round to a site.

    Args:
        runs: Folders of the runs.
        output: Folder of the site.
        name: Name of the round.
        published_at: Epoch seconds.

    Raises:
        StoreError: The round is already published, or the site cannot be written.
    """
    site, slug = read(output), _slug(name)
    if output.exists() and any(output.iterdir()) and not (output / FILE).exists():
        raise StoreError(f"{output}: contains files that do not belong to a site: choose an empty folder")
    if not slug:
        raise StoreError(f"--round {name!r}: the name must contain a letter or a digit")
    if any(old.slug == slug for old in site.rounds):
        raise StoreError(f"round {name!r} is already published: choose a different name with --round")
    web = ensure_built()
    # Rank the trials again instead of trusting ranking.json.
    known = [DashboardRun(folder, rank_again=True) for folder in runs]
    if len({run.info.run_id for run in known}) < len(known):
        raise StoreError("two of these runs have the same id, but each page needs a different id: name each run once")
    new = SiteRound(name=name, slug=slug, published_at=published_at, runs=tuple(map(_published, known)))
    site = Site(rounds=(*site.rounds, new))
    files = {_of_run(new, run.info.run_id): saved.render_page(web, saved.collect_documents(run)) for run in known}
    style = next((web / "assets").glob("*.css"))
    place = output.resolve()  # the path of the site may be a link, but links within the site are not followed
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
    """Return the site in a folder, or an empty site without site.json. Raises StoreError for a broken file."""
    path = folder / FILE
    try:
        return Site.model_validate_json(safe_read.require_bounded_json(safe_read.read(path, MOST_BYTES)))
    except FileNotFoundError:
        return Site()
    except ValueError as error:
        raise StoreError(f"{path}: is not a site of tfb: {first_error(error)}") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _published(run: DashboardRun) -> PublishedRun:
    """Return the data of a run that ``site.json`` contains."""
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
    """Format a row for the columns of ``HEADERS``; ``of`` is the number of ranked rows.

    In a scenario, requests/s are not ranked, because the scenario determines the arrival rate.
    """
    found, cpu = None if isinstance(row.load, Scenario) else row.throughput, row.cpu_per_request
    return (
        f"{found.rank.label} of {of}" if found else row.reason or "–",
        f"{cpu.rank.label} of {of}" if cpu else "–",
        format_rate(found.estimate.median if found else None),
        format_interval(found.estimate if found else None),
        format_ratio(found.to_reference if found else None),
        format_micros(cpu.estimate.median if cpu else None),
    )


def _facts(info: ImplementationInfo) -> str:
    """Format the facts of an implementation, for example ``Java · Vert.x · Micro``."""
    facts = (info.language, info.platform, info.classification, info.database, info.orm)
    return " · ".join(fact for fact in facts if fact and fact.lower() != "none")


def _slug(name: str) -> str:
    """Convert the name of a round to a part of a URL. Return an empty string if the name has no letters or digits."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:60]


# ---- pages, without scripts -----------------------------------------------------------------------------------------


def _lists(site: Site, style: str) -> Iterable[tuple[str, str]]:
    """Yield path and HTML of the overview pages."""
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
    """Return a safe file name for the page of an implementation. Shorten a long name, and add a hash."""
    found = quote(name, safe="")
    if len(found) > NAME_CHARACTERS or found == "index":  # the page "index" lists all implementations
        found = f"{found[:NAME_CHARACTERS]}-{sha256(name.encode()).hexdigest()[:16]}"
    return f"{found}.html"


def _of_run(one: SiteRound, run_id: str) -> str:
    """Return the path of a run's page. Sanitise the slug again, because site.json is untrusted."""
    return f"rounds/{_slug(one.slug)}/{_address(run_id)}"


def _history(site: Site, name: str) -> str:
    """Return tables with an implementation's results in all rounds, newest first, with a table for each test type."""
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
    """Return an HTML page; ``root`` is the relative path to the site's root."""
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
