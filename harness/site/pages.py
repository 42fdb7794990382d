"""The site's own pages as HTML: the list of rounds, a round, an implementation. Pure; they need no script."""

import json
from collections.abc import Sequence

from harness.dashboard.documents import HistoryPoint, RunDocument
from harness.dashboard.plain import day, escape, interval, ratio, run_section
from harness.site.rounds import Claim, Member, Round, Site
from harness.units import format_micros, format_rate

NO_SCRIPT = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
SPARK_WIDTH, SPARK_HEIGHT = 160, 28


def page(title: str, body: str, *, root: str, style: str, policy: str = NO_SCRIPT, extra: str = "") -> str:
    """A whole page; ``root`` leads from it to the site's first one."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f'<link rel="stylesheet" href="{root}assets/{style}"></head>'
        f'<body><header class="top"><a class="brand" href="{root}index.html">tfb '
        "<span>web-framework benchmark</span></a>"
        f'<nav aria-label="Main"><a href="{root}index.html">Rounds</a>'
        f'<a href="{root}implementations/index.html">Implementations</a></nav></header>'
        f'<main id="main">{body}</main>{extra}</body></html>\n'
    )


def front(site: Site, style: str) -> str:
    """The first page: rounds, newest first."""
    items = "".join(
        f'<li class="run"><div></div><div><h2><a href="rounds/{one.slug}/index.html">{escape(one.name)}</a></h2>'
        f'<p class="quiet">{day(one.published_at)} · {len(one.runs)} run{"" if len(one.runs) == 1 else "s"}</p>'
        + "".join(f'<p class="run-lead">{escape(run.lead)}</p>' for run in one.runs)
        + "</div></li>"
        for one in reversed(site.rounds)
    )
    body = f'<h1>Rounds</h1><p>A round is a set of runs published together.</p><ul class="runs">{items}</ul>'
    return page("Rounds: tfb", body, root="", style=style)


def round_page(one: Round, documents: Sequence[RunDocument], style: str) -> str:
    """A round: the answer and tables of each run, with links to the charts."""
    parts = [f"<h1>{escape(one.name)}</h1>", f'<p class="quiet">Published {day(one.published_at)}.</p>']
    for run, document in zip(one.runs, documents, strict=True):
        parts += [
            f'<section class="round-run"><p class="quiet">{escape(run.machine)}</p>',
            f'<p><a href="{run.run_id}.html">Charts, filters and every level of this run</a></p>',
            run_section(document).replace("<h1>", "<h2>").replace("</h1>", "</h2>"),
            claims(run.claims),
            "</section>",
        ]
    return page(f"{one.name}: tfb", "\n".join(parts), root="../../", style=style)


def claims(found: Sequence[Claim]) -> str:
    """What others claim, and what the run says to it; nothing where there are no claims."""
    if not found:
        return ""
    rows = "".join(
        f"<tr><td>{escape(one.statement)}</td><td>{escape(one.source)}</td><td>{escape(one.verdict)}</td>"
        f"<td>{escape(one.measured)}</td></tr>"
        for one in found
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Claim", "Source", "Verdict", "Measured"))
    return (
        '<h3>Claims</h3><div class="table-frame"><table class="plain-table">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def members_page(site: Site, style: str) -> str:
    """All implementations by name."""
    items = "".join(
        f'<li><a href="{member.slug}.html">{escape(member.info.name)}</a> '
        f'<span class="quiet">{escape(member.info.language)}</span></li>'
        for member in site.members
    )
    return page(
        "Implementations: tfb", f'<h1>Implementations</h1><ul class="checks">{items}</ul>', root="../", style=style
    )


def member_page(member: Member, site: Site, style: str) -> str:
    """One implementation over the rounds, newest first, with its throughput as a line a test type and machine."""
    info = member.info
    names = {one.slug: one.name for one in site.rounds}
    facts = " · ".join(
        escape(fact)
        for fact in (info.language, info.platform, info.classification, info.database, info.orm)
        if fact and fact.lower() != "none"
    )
    sections = []
    for kind in dict.fromkeys(point.test_type for point in member.points):
        mine = [
            (slug, point) for slug, point in zip(member.rounds, member.points, strict=True) if point.test_type == kind
        ]
        rows = "".join(_row(slug, names.get(slug, slug), point) for slug, point in reversed(mine))
        sections.append(
            f"<h2>{escape(kind)}</h2>{spark([point for _, point in mine])}"
            '<div class="table-frame"><table class="plain-table"><thead><tr><th scope="col">Round</th>'
            '<th scope="col">Possible ranks</th><th scope="col">Requests/s</th><th scope="col">95 %</th>'
            '<th scope="col">× reference</th><th scope="col">CPU µs/req</th><th scope="col">Machine</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )
    body = f"<h1>{escape(info.name)}</h1><p>{facts}</p>{''.join(sections)}"
    return page(f"{info.name}: tfb", body, root="../", style=style)


def _row(slug: str, name: str, point: HistoryPoint) -> str:
    rank = f"{point.rank.label} of {point.of}" if point.rank else point.reason or "–"
    cpu = format_micros(point.cpu_per_request.median if point.cpu_per_request else None)
    cells = (
        escape(rank),
        format_rate(point.throughput.median if point.throughput else None),
        interval(point.throughput, micros=False),
        ratio(point.to_reference),
        cpu,
        escape(point.machine),
    )
    link = f'<a href="../rounds/{slug}/{point.run_id}.html">{escape(name)}</a>'
    return f'<tr><th scope="row">{link}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def spark(points: Sequence[HistoryPoint]) -> str:
    """Throughput over time as a small drawing, broken by machine; nothing with fewer than two points."""
    known = [(point.started_at, point.throughput.median, point.machine) for point in points if point.throughput]
    if len(known) < 2:
        return ""
    first, last = min(at for at, _, _ in known), max(at for at, _, _ in known)
    most = max(value for _, value, _ in known)
    span = (last - first) or 1.0

    def place(at: float, value: float) -> str:
        x = 4 + (at - first) / span * (SPARK_WIDTH - 8)
        y = SPARK_HEIGHT - 4 - value / most * (SPARK_HEIGHT - 8)
        return f"{x:.1f},{y:.1f}"

    lines = []
    for index, machine in enumerate(dict.fromkeys(machine for _, _, machine in known)):
        path = " ".join(place(at, value) for at, value, where in known if where == machine)
        lines.append(f'<polyline class="line series-{index % 8}" fill="none" points="{path}"/>')
    return (
        f'<svg width="{SPARK_WIDTH}" height="{SPARK_HEIGHT}" role="img" aria-label="throughput over the rounds; '
        f'the table has the figures">{"".join(lines)}</svg>'
    )


def run_data(data: str) -> str:
    """The element that the page's script reads its run from."""
    return f'<script type="application/gzip" id="run-data">{data}</script>'


def run_page(title: str, data: str, *, style: str, script: str) -> str:
    """A run with the dashboard's page over its own data: script and style are the site's, so it is small."""
    policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; base-uri 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}: tfb</title>"
        f'<link rel="stylesheet" href="../../assets/{style}"></head><body>'
        '<div id="app"><noscript><main><p>Charts need JavaScript; <a href="index.html">the tables of this round</a> do '
        f"not.</p></main></noscript></div>{run_data(data)}"
        f'<script defer src="../../assets/{script}"></script></body></html>\n'
    )


def claims_from(text: str) -> tuple[Claim, ...]:
    """Claims as a run's ``claims.json`` lists them: objects with statement, source, verdict and measured."""
    return tuple(Claim.model_validate(item) for item in json.loads(text))
