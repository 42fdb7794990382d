"""Publishes rounds as a static site. The overview pages work offline and without JavaScript."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from urllib.parse import quote

from harness.dashboard import saved
from harness.dashboard.build import ensure_built
from harness.dashboard.run_documents import DashboardRun
from harness.errors import StoreError, UsageError
from harness.extras.site.badges import badge_files, badge_texts, draw_trend, embedding_lines, newest_results
from harness.extras.site.preview import draw_preview
from harness.extras.site.site_records import (
    ADDRESS,
    FILE,
    PublishedRun,
    Site,
    SiteResult,
    SiteRound,
    SiteRow,
    SiteTable,
    badge_path,
    implementation_path,
    make_slug,
    preview_path,
    read_site,
    run_path,
    standing_of,
    summarize_run,
)
from harness.plain_text import printable
from harness.plan.testtypes.registry import display_name
from harness.records import safe_write
from harness.report.summary import OVERALL
from harness.report.tables import TableRows, format_interval, format_ratio
from harness.stats.ranking_model import Quantity, Ratio, Standing
from harness.units import format_micros, format_rate

POLICY = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
STYLE = "assets/site.css"  # fixed name, so that each publication replaces the style sheet
PAGES = {"index.html": "Newest ranking", "rounds/index.html": "Rounds", "implementations/index.html": "Implementations"}
HISTORY = ("Round", "Measured", "Rank by CPU", "CPU µs/req", "× baseline", "Rank by req/s", "Requests/s", "Machine")
OVERALL_HISTORY = (*HISTORY[:3], "Score by CPU", "", HISTORY[5], "Score by requests/s", HISTORY[7])
HEADERS: dict[Quantity, str] = {"cpu": "CPU µs/req", "throughput": "Requests/s"}


def _navigation(root: str, current: str) -> str:
    """Return the page header with the navigation links.

    ``root`` is the relative path to the site's root, and ``current`` is the page's path within the site.
    """
    links = (
        f'<a href="{root}{path}"{" aria-current=page" * (path == current)}>{title}</a>' for path, title in PAGES.items()
    )
    return (
        f'<header class="top site-top"><a class="brand" href="{root}index.html">tfb <span>web-framework benchmark'
        f'</span></a><nav aria-label="Site">{"".join(links)}</nav></header>'
    )


def metadata(site: Site, path: str, title: str, description: str, image: str) -> str:
    """Return the ``<meta>`` elements for link previews (Open Graph). Omit URLs if the site's address is unknown.

    ``path`` is the page's path, and ``image`` is the path of the preview image.
    """
    root = site.url.rstrip("/")
    addresses = {"og:url": f"{root}/{quote(path)}", "og:image": f"{root}/{quote(image)}"}
    values = {
        "og:site_name": "tfb web-framework benchmark",
        "og:type": "website",
        "og:title": title,
        "og:description": description,
        "twitter:card": "summary_large_image",
        **(addresses if root else {}),
    }
    return f'<meta name="description" content="{_text(description)}">' + "".join(
        f'<meta property="{name}" content="{_text(value)}">' for name, value in values.items()
    )


def overview_pages(site: Site) -> Iterator[tuple[str, str]]:
    """Yield (path, HTML) of the overview pages.

    These are the landing page, the lists of rounds and implementations, and a page for each implementation.
    """
    newest = site.rounds[-1]
    image = preview_path(newest, newest.runs[0].run_id) if newest.runs else ""

    def page(path: str, title: str, description: str, body: str) -> tuple[str, str]:
        root = "../" * path.count("/")
        return path, (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
            f"<title>{_text(title)}: tfb</title>{metadata(site, path, title, description, image)}"
            f'<link rel="stylesheet" href="{root}{STYLE}"></head><body class="site">{_navigation(root, path)}'
            f'<main id="main"><h1>{_text(title)}</h1>{body}</main></body></html>\n'
        )

    yield page("index.html", f"{newest.name}: ranking", newest.runs[0].lead if newest.runs else "", _landing(site))
    yield page("rounds/index.html", "Rounds", "All published rounds", _rounds(site))
    facts, badges = site.facts, newest_results(site)
    names, by_name = sorted(facts), defaultdict[str, list[SiteResult]](list)
    for result in site.results():
        by_name[result[3].implementation].append(result)
    rows = [
        (f'<a href="../{quote(implementation_path(name))}">{_text(name)}</a>', _text(facts[name])) for name in names
    ]
    listing = _table(("Implementation", "Platform"), rows)
    yield page("implementations/index.html", "Implementations", ", ".join(names), listing)
    for name in names:
        body = f'<p class="quiet">{_text(facts[name])}</p>{_implementation(site, name, by_name[name], badges)}'
        yield page(implementation_path(name), name, facts[name], body)


def _landing(site: Site) -> str:
    """Return the newest round's ranking. Show the first table of each run, and collapse the other tables."""
    newest, body = site.rounds[-1], ""
    for run in newest.runs:
        link = f'<a href="{quote(run_path(newest, run.run_id))}">All figures, charts and logs of this run</a>'
        body += (
            f'<section class="summary"><h2>{_text(run.title)}</h2><p class="summary-lead">{_text(run.lead)}</p>'
            f'<p class="summary-rest">{_text(run.figures)} {_provenance(run)} {link}.</p></section>'
        )
        for number, table in enumerate(run.tables):
            title, frame = _text(_test_name(table.test_type)), _ranking(run, table)
            body += f"<details><summary>{title}</summary>{frame}</details>" if number else f"<h2>{title}</h2>{frame}"
    published = f'<p class="quiet">Published {_day(newest.published_at)}. '
    earlier = len(site.rounds) - 1
    rounds = f'<a href="rounds/index.html">{earlier} earlier round{"s" * (earlier > 1)}</a>.' if earlier else ""
    return f"{published}{rounds}</p>{body}"


def _provenance(run: PublishedRun) -> str:
    return f"Measured {_day(run.measured_at)} on {_text(run.machine)}."


def _ranking(run: PublishedRun, table: SiteTable) -> str:
    """Return a ranking table with the main columns of the terminal report."""
    leading = run.leading
    second: Quantity = "throughput" if leading == "cpu" else "cpu"
    places = TableRows(table.rows, lambda row: standing_of(row, leading) if run.ranked else None)
    ranks = {column.header: column.cells for column in places.ranks()}
    header = ["Rank", "Tie", "Implementation", *_headers(run, table, leading), _headers(run, table, second)[0]]
    rows = [
        (
            _text(rank),
            tie,
            f'<a href="{quote(implementation_path(row.implementation))}">{_text(row.implementation)}</a>',
            *(_figures(table, row, leading) if standing_of(row, leading) else (_text(row.reason or "–"), "")),
            _figures(table, row, second)[0],
        )
        for rank, tie, row in zip(ranks["rank"], ranks.get("tie", [""] * len(table.rows)), table.rows, strict=True)
    ]
    return _table(header, rows, row_header=2, ranks=True)


def _headers(run: PublishedRun, table: SiteTable, quantity: Quantity) -> tuple[str, str]:
    """Return the headers of the two columns that ``_figures`` fills."""
    if table.test_type == OVERALL:
        return ("Score by CPU" if quantity == "cpu" else "Score by requests/s"), ""
    return f"{HEADERS[quantity]} [95 %]", f"× {run.reference}" if run.reference else ""


def _figures(table: SiteTable, row: SiteRow, quantity: Quantity) -> tuple[str, str]:
    """Return two table cells: the value with its interval, and the ratio to the baseline."""
    standing = standing_of(row, quantity)
    if standing is None:
        return "–", "–"
    estimate = standing.estimate
    if table.test_type == OVERALL:
        return _joined(format_ratio(Ratio(value=estimate.median, low=estimate.low, high=estimate.high))), ""
    figure = format_micros(estimate.median) if quantity == "cpu" else format_rate(estimate.median)
    interval = format_interval(estimate, 1e6 if quantity == "cpu" else 1.0)
    return f"{figure} {_joined(interval)}" if interval != "–" else figure, _joined(format_ratio(standing.to_reference))


def _joined(interval: str) -> str:
    """Replace an interval's spaces with non-breaking spaces, so that browsers do not break the interval."""
    return interval.replace(", ", ",&nbsp;")


def _rounds(site: Site) -> str:
    """Return HTML that lists all rounds, newest first, with a summary of each run."""
    body = ""
    for site_round in reversed(site.rounds):
        body += f'<h2>{_text(site_round.name)}</h2><p class="quiet">Published {_day(site_round.published_at)}</p>'
        for run in site_round.runs:
            link = f'<a href="../{quote(run_path(site_round, run.run_id))}">{_text(run.title)}</a>'
            body += f'<h3>{link}</h3><p>{_text(run.lead)}</p><p class="quiet">{_provenance(run)}</p>'
    return body


def _implementation(
    site: Site, name: str, results: Sequence[SiteResult], badges: Mapping[tuple[str, str], SiteResult]
) -> str:
    """Return HTML with an implementation's results in all rounds: a trend, a table and a badge for each test type."""
    body = ""
    for kind in dict.fromkeys(result[2].test_type for result in results):
        of_kind = [result for result in results if result[2].test_type == kind]
        body += f"<h2>{_text(_test_name(kind))}</h2>{draw_trend(name, kind, of_kind)}"
        body += _table(OVERALL_HISTORY if kind == OVERALL else HISTORY, map(_history_row, reversed(of_kind)))
        if badge := badges.get((name, kind)):
            image = quote(badge_path(name, kind, "svg"))
            lines = "\n".join(embedding_lines(site, name, kind))
            body += (
                f'<p><img src="../{image}" alt="{_text(": ".join(badge_texts(badge)))}" height="20"></p>'
                "<details><summary>Show this badge in a README</summary><p>Copy either line. The first loads "
                f"the image from this site, the second from shields.io.</p><pre>{_text(lines)}</pre></details>"
            )
    return body


def _history_row(result: SiteResult) -> list[str]:
    site_round, run, table, row = result
    link = f'<a href="../{quote(run_path(site_round, run.run_id))}">{_text(site_round.name)}</a>'
    cpu, to_baseline = _figures(table, row, "cpu")
    rate, _ = _figures(table, row, "throughput")
    ranks = [_rank(table.ranked(of), standing_of(row, of) if run.ranked else None) for of in HEADERS]
    return [
        link,
        _day(run.measured_at),
        ranks[0],
        cpu,
        to_baseline,
        _text(row.reason) if row.reason and not row.throughput else ranks[1],
        rate,
        _text(run.machine),
    ]


def _rank(ranked: int, standing: Standing | None) -> str:
    return f"{standing.rank.label} of {ranked}" if standing else "–"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], row_header: int = 0, *, ranks: bool = False) -> str:
    """Return an HTML table. ``rows`` contain HTML. Columns with an empty header are omitted.

    ``row_header`` is the index of the column with the row headers. If ``ranks`` is true, narrow screens hide the last
    column.
    """
    last = len(header) - 1 if ranks else None

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f'<th scope="row">{cell}</th>' if number == row_header and tag == "td"
            else f'<{tag}{" class=wide-only" * (number == last)}{" scope=col" * (tag == "th")}>{cell}</{tag}>'
            for number, cell in enumerate(cells) if header[number]
        )  # fmt: skip

    head, body = line([*map(_text, header)], "th"), "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    rows_html = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="table-frame"><table class="plain-table{" ranks" * ranks}">{rows_html}</table></div>'


def _test_name(kind: str) -> str:
    return "Overall" if kind == OVERALL else display_name(kind)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _text(text: str) -> str:
    """Escape text for HTML, and show control and bidirectional characters as escapes."""
    return escape(printable(text))


def publish(runs: Sequence[Path], output: Path, *, name: str, published_at: float, url: str = "") -> Site:
    """Add a round to a site. Return the site's new data.

    Args:
        runs: Run folders.
        output: Site folder.
        name: Name of the round.
        published_at: Time of publication in epoch seconds.
        url: Public address of the site. If empty, keep the previous round's address.

    Raises:
        UsageError: The address is not valid.
        StoreError: The round is already published, or the site cannot be written.
    """
    if not re.fullmatch(ADDRESS, url):
        raise UsageError(f"--url {url}: not a valid site address. Use an address such as https://example.org/tfb")
    site, slug = read_site(output), make_slug(name)
    if output.exists() and any(output.iterdir()) and not (output / FILE).exists():
        raise StoreError(f"{output} contains files that do not belong to a site. Choose an empty folder")
    if not slug:
        raise StoreError(f"--round {name!r}: the name must contain a letter or a digit")
    if any(old.slug == slug for old in site.rounds):
        raise StoreError(f"round {name!r} is already published: choose a different name with --round")
    web = ensure_built()
    # Rank the trials again instead of trusting ranking.json.
    dashboard_runs = [DashboardRun(folder, rank_again=True) for folder in runs]
    if len({run.info.run_id for run in dashboard_runs}) < len(dashboard_runs):
        raise StoreError("two of these runs have the same id. Pass each run only once")
    new_round = SiteRound(
        name=name, slug=slug, published_at=published_at, runs=tuple(map(summarize_run, dashboard_runs))
    )
    site = Site(url=url or site.url, rounds=(*site.rounds, new_round))
    files: dict[str, bytes] = {}
    for run, summary in zip(dashboard_runs, new_round.runs, strict=True):
        path, image = run_path(new_round, summary.run_id), preview_path(new_round, summary.run_id)
        links = {title: f"../../{page}" for page, title in PAGES.items()}
        documents = saved.collect_documents(run).model_copy(update={"links": links})
        head = metadata(site, path, summary.title, summary.lead, image)
        files |= {path: saved.render_page(web, documents, head).encode(), image: draw_preview(summary)}
    files |= {path: text.encode() for path, text in (*overview_pages(site), *badge_files(site))}
    files[STYLE] = saved.read_asset(web, "*.css").encode()
    root = output.resolve()  # the path to the site may contain symbolic links, but tfb follows no links inside the site
    try:
        # Write site.json first, so that tfb recognises the folder as a site after an interruption.
        if not (root / FILE).exists():
            _write(root / FILE, Site(url=url).model_dump_json().encode())
        for path, data in files.items():
            _write(root / path, data)
        _write(root / FILE, site.model_dump_json().encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {output}: {error.strerror}. Free up space or choose another folder, then repeat the command"
        ) from error
    return site


def _write(path: Path, data: bytes) -> None:
    """Write a file to the site. Raises OSError or UnsafePathError."""
    safe_write.make_folder(path.parent)
    safe_write.replace(path, data)
