"""Draws a site's SVG images: rank badges for READMEs, and trend charts."""

import json
from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote

from harness.extras.site.site_records import Site, SiteResult, badge_path, implementation_path, standing_of
from harness.plain_text import printable
from harness.report.summary import OVERALL
from harness.units import format_micros

COLOURS = ("#10312f", "#0a5c66")  # backgrounds of label and rank; white text on them meets WCAG AA contrast
NARROW = frozenset("fijlrtI1.,:;'|!()[]/– ")  # about 4.5 px wide; all other characters count as 7 px
SHIELDS = "https://img.shields.io/endpoint?url="
UNKNOWN_ADDRESS = "https://SITE"  # used in badge Markdown if the site's address is unknown


def newest_results(site: Site) -> dict[tuple[str, str], SiteResult]:
    """Return the newest ranked result for each pair of implementation and test type."""
    return {
        (row.implementation, table.test_type): (site_round, run, table, row)
        for site_round, run, table, row in site.results()
        if run.ranked and standing_of(row, run.leading)
    }


def badge_texts(result: SiteResult) -> tuple[str, str]:
    """Return a badge's label and text, for example ``tfb json`` and ``rank 2–4 of 20 by CPU, Round 1``."""
    site_round, run, table, row = result
    standing = standing_of(row, run.leading)
    label = standing.rank.label if standing else "–"
    metric = "CPU" if run.leading == "cpu" else "req/s"
    return f"tfb {table.test_type}", f"rank {label} of {table.ranked(run.leading)} by {metric}, {site_round.name}"


def badge_files(site: Site) -> Iterator[tuple[str, str]]:
    """Yield (path, content) of every badge file: an SVG image and a JSON endpoint for shields.io."""
    for (name, kind), result in newest_results(site).items():
        label, message = badge_texts(result)
        yield badge_path(name, kind, "svg"), draw_badge(label, message)
        endpoint = {"schemaVersion": 1, "label": label, "message": message, "color": COLOURS[1].lstrip("#")}
        yield badge_path(name, kind, "json"), json.dumps(endpoint)


def draw_badge(label: str, message: str) -> str:
    """Return a badge as a self-contained SVG, without external fonts or styles."""
    label, message = printable(label), printable(message)
    widths = [12 + round(sum(4.5 if one in NARROW else 7.0 for one in text)) for text in (label, message)]
    parts, left = "", 0
    for text, width, colour in zip((label, message), widths, COLOURS, strict=True):
        parts += (
            f'<rect x="{left}" width="{width}" height="20" fill="{colour}"/>'
            f'<text x="{left + 6}" y="14" textLength="{width - 12}">{escape(text)}</text>'
        )
        left += width
    title = escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="20" role="img" aria-label="{title}">'
        f'<title>{title}</title><g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{parts}'
        "</g></svg>\n"
    )


def embedding_lines(site: Site, name: str, kind: str) -> tuple[str, str]:
    """Return two alternative Markdown lines that embed a badge: as this site's SVG file, or through shields.io."""
    root = (site.url or UNKNOWN_ADDRESS).rstrip("/")
    page, svg, endpoint = (
        f"{root}/{quote(path)}"
        for path in (implementation_path(name), badge_path(name, kind, "svg"), badge_path(name, kind, "json"))
    )
    return f"[![tfb]({svg})]({page})", f"[![tfb]({SHIELDS}{quote(endpoint, safe='')})]({page})"


STEP, HEIGHT, TOP, BOTTOM = 72, 170, 24, 26  # px; STEP is the horizontal distance between rounds


def draw_trend(name: str, kind: str, results: Sequence[SiteResult]) -> str:
    """Return an HTML figure with an SVG chart, or an empty string if there are fewer than two points.

    A line connects neighbouring points only if both were measured on the same machine. For overall scores,
    both must also have the same baseline. ``results`` is in chronological order.
    """
    points = [(one, run, row.cpu.estimate) for one, run, _, row in results if row.cpu and row.cpu.estimate.median > 0]
    points = points[-12:]  # the chart shows at most the 12 newest rounds
    if len(points) < 2:
        return ""
    maximum = max(max(each.median, each.high or 0.0) for *_, each in points)
    width = STEP * len(points)
    show = "{:.2f}".format if kind == OVERALL else format_micros

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(value / maximum, 0.0), 1.0)), 1)

    parts = f'<line class="base" x1="0" x2="{width}" y1="{y(0)}" y2="{y(0)}"/>'
    earlier = None
    for number, (site_round, run, estimate) in enumerate(points):
        x, middle = STEP * number + STEP // 2, y(estimate.median)
        conditions = (run.machine, run.reference if kind == OVERALL else None)
        if earlier and earlier[2] == conditions:
            parts += f'<line class="line" x1="{earlier[0]}" y1="{earlier[1]}" x2="{x}" y2="{middle}"/>'
        highest = middle
        if estimate.low is not None and estimate.high is not None:
            highest = y(estimate.high)
            parts += f'<line class="error" x1="{x}" x2="{x}" y1="{y(estimate.low)}" y2="{highest}"/>'
        label = escape(printable(site_round.name)[:11])
        parts += (
            f'<circle class="point" cx="{x}" cy="{middle}" r="4.5"/>'
            f'<text class="tick" x="{x}" y="{highest - 8}" text-anchor="middle">{show(estimate.median)}</text>'
            f'<text class="tick" x="{x}" y="{HEIGHT - 8}" text-anchor="middle">{label}</text>'
        )
        earlier = (x, middle, conditions)
    unit = "Score by CPU per request" if kind == OVERALL else "CPU µs per request"
    title = escape(printable(f"{unit} of {name} in {kind} over the rounds"))
    caption = f"{unit} by round, with 95 % intervals. A line connects rounds measured on the same machine."
    return (
        f'<figure class="chart"><div class="table-frame"><svg class="series-0" width="{width}" height="{HEIGHT}" '
        f'role="img" aria-label="{title}">{parts}</svg></div>'
        f'<figcaption class="note quiet">{caption}</figcaption></figure>'
    )
