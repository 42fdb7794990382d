"""The site's own pages as HTML: the list of rounds, a round, an implementation. Pure; they need no script."""

from collections.abc import Iterable, Sequence
from typing import Any

from harness.dashboard.documents import HistoryPoint, RunDocument
from harness.extras.site.plain import day, escape, interval, ratio, run_section
from harness.extras.site.rounds import Round, Site
from harness.units import format_micros, format_rate

POLICY = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
WITH_SCRIPT = f"script-src 'self'; {POLICY}".replace("img-src data:", "img-src 'self' blob: data:")
HISTORY_HEADERS = ("Round", "Possible ranks", "Requests/s", "95 %", "× reference", "CPU µs/req", "Machine")
SPARK_WIDTH, SPARK_HEIGHT = 160, 28


def page(title: str, body: str, *, root: str, style: str, policy: str = POLICY) -> str:
    """A whole page; ``root`` leads from it to the site's first one."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,"><title>{escape(title)}: tfb'
        f'</title><link rel="stylesheet" href="{root}assets/{style}"></head><body>{body}</body></html>\n'
    )


def framed(title: str, body: str, *, root: str, style: str) -> str:
    """A page with the site's header."""
    header = (
        f'<header class="top"><a class="brand" href="{root}index.html">tfb <span>web-framework benchmark</span></a>'
        f'<nav aria-label="Main"><a href="{root}index.html">Rounds</a>'
        f'<a href="{root}implementations/index.html">Implementations</a></nav></header>'
    )
    return page(title, f'{header}<main id="main"><h1>{escape(title)}</h1>{body}</main>', root=root, style=style)


def front(site: Site, style: str) -> str:
    """The first page: rounds, newest first."""
    items = "".join(
        f'<li class="run"><div></div><div><h2><a href="rounds/{one.slug}/index.html">{escape(one.name)}</a></h2>'
        f'<p class="quiet">{day(one.published_at)} · {len(one.runs)} run{"" if len(one.runs) == 1 else "s"}</p>'
        + "".join(f'<p class="run-lead">{escape(run.lead)}</p>' for run in one.runs)
        + "</div></li>"
        for one in reversed(site.rounds)
    )
    body = f'<p>A round is a set of runs published together.</p><ul class="runs">{items}</ul>'
    return framed("Rounds", body, root="", style=style)


def round_page(
    one: Round, documents: Sequence[RunDocument], claims: Sequence[Sequence[Sequence[str]]], style: str
) -> str:
    """A round: the answer and tables of each run, with links to the charts, and the claims that it was made for."""
    parts = [f'<p class="quiet">Published {day(one.published_at)}.</p>']
    for run, document, rows in zip(one.runs, documents, claims, strict=True):
        section = run_section(document).replace("<h1>", "<h2>").replace("</h1>", "</h2>")
        told = f"<h3>Claims</h3>{table(('Claim', 'Source', 'Verdict', 'Measured'), rows)}" if rows else ""
        parts.append(
            f'<section class="round-run"><p class="quiet">{escape(run.machine)}</p><p><a href="{run.run_id}.html">'
            f"Charts, filters and every load of this run</a></p>{section}{told}</section>"
        )
    return framed(one.name, "\n".join(parts), root="../../", style=style)


def table(headers: Iterable[str], rows: Iterable[Sequence[str]], links: Sequence[str] = ()) -> str:
    """A table of texts; ``links`` are those of its first column."""
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header in headers)
    body = ""
    for number, (first, *others) in enumerate(rows):
        name = f'<a href="{links[number]}">{escape(first)}</a>' if links else escape(first)
        body += f'<tr><th scope="row">{name}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in others)}</tr>'
    return (
        f'<div class="table-frame"><table class="plain-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def members_page(site: Site, style: str) -> str:
    """All implementations by name."""
    items = "".join(f'<li><a href="{slug}.html">{escape(name)}</a></li>' for name, slug in site.slugs.items())
    return framed("Implementations", f'<ul class="checks">{items}</ul>', root="../", style=style)


def member_page(name: str, facts: str, history: Sequence[tuple[Round, HistoryPoint]], style: str) -> str:
    """One implementation over the rounds, newest first, with its throughput as a line a test type and machine."""
    sections = [f"<p>{escape(facts)}</p>"]
    for kind in dict.fromkeys(point.test_type for _, point in history):
        mine = [(one, point) for one, point in history if point.test_type == kind]
        links = [f"../rounds/{one.slug}/{point.run_id}.html" for one, point in reversed(mine)]
        rows = [_row(one.name, point) for one, point in reversed(mine)]
        line = spark([point for _, point in mine])
        sections.append(f"<h2>{escape(kind)}</h2>{line}{table(HISTORY_HEADERS, rows, links)}")
    return framed(name, "".join(sections), root="../", style=style)


def _row(name: str, point: HistoryPoint) -> tuple[str, ...]:
    return (
        name,
        f"{point.rank.label} of {point.of}" if point.rank else point.reason or "–",
        format_rate(point.throughput.median if point.throughput else None),
        interval(point.throughput, micros=False),
        ratio(point.to_reference),
        format_micros(point.cpu_per_request.median if point.cpu_per_request else None),
        point.machine,
    )


def spark(points: Sequence[HistoryPoint]) -> str:
    """Throughput over time as a small drawing, broken by machine; nothing with fewer than two points."""
    known = [(point.started_at, point.throughput.median, point.machine) for point in points if point.throughput]
    if len(known) < 2:
        return ""
    first, last = min(at for at, _, _ in known), max(at for at, _, _ in known)
    most = max(value for _, value, _ in known)

    def place(at: float, value: float) -> str:
        x = 4 + (at - first) / ((last - first) or 1.0) * (SPARK_WIDTH - 8)
        return f"{x:.1f},{SPARK_HEIGHT - 4 - value / most * (SPARK_HEIGHT - 8):.1f}"

    lines = ""
    for index, machine in enumerate(dict.fromkeys(machine for _, _, machine in known)):
        path = " ".join(place(at, value) for at, value, where in known if where == machine)
        lines += f'<polyline class="line series-{index % 8}" fill="none" points="{path}"/>'
    return (
        f'<svg width="{SPARK_WIDTH}" height="{SPARK_HEIGHT}" role="img" aria-label="throughput over the rounds; '
        f'the table has the figures">{lines}</svg>'
    )


def run_page(title: str, data: str, *, style: str, script: str) -> str:
    """A run with the dashboard's page over its own data: script and style are the site's, so it is small."""
    body = (
        '<div id="app"><noscript><main><p>Charts need JavaScript; <a href="index.html">the tables of this round</a> do '
        f'not.</p></main></noscript></div><script type="application/gzip" id="run-data">{data}</script>'
        f'<script defer src="../../assets/{script}"></script>'
    )
    return page(title, body, root="../../", style=style, policy=WITH_SCRIPT)


def claims_of(recorded: Any, run_id: str) -> list[tuple[str, ...]]:  # noqa: ANN401 - JSON of another package
    """The statements that a run judged, of a results folder's claims.json. Raises KeyError, TypeError for another."""
    return [
        (f"{claim['title']}: {each['name']}", f"{claim['talk']}, {claim['page']}", each["verdict"], _ratio(each))
        for claim in recorded["verdicts"].values()
        if run_id in claim["runs"]
        for each in claim["statements"]
    ]


def _ratio(statement: Any) -> str:  # noqa: ANN401 - JSON of another package
    value, low, high = (statement.get(key) for key in ("value", "low", "high"))
    if value is None:
        return "–"
    return f"{value:,.2f}" if low is None or high is None else f"{value:,.2f} [{low:,.2f}, {high:,.2f}]"
