"""One session as a page that works offline: a table, and each request's interval drawn."""

import html
from collections.abc import Iterable

from harness.dashboard.saved import digest
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.words import headline, remarks, rows, scale, when

WIDTH, HEIGHT = 360, 20
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 90rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } th, td { text-align: left; padding: .3rem .8rem .3rem 0; white-space: nowrap }
tr + tr { border-top: 1px solid #8884 } svg { display: block }
.axis { stroke: #888 } .margin { fill: #8883 } .bar { stroke: currentColor; stroke-width: 2 }
.dot { fill: currentColor } .slower, .failed { color: #c33 } .faster { color: #283 }
"""


def page(result: GateResult) -> str:
    """The verdict, each request's interval to one scale, and what stands beside it."""
    header, *others = rows(result)
    low, high = scale([one.ratio for one in result.requests], result.fail_over)
    table = [_row("th", ("head ÷ base", *header))]
    for one, row in zip(result.requests, others, strict=True):
        table.append(_row("td", row, f"<td>{_drawing(one, result.fail_over, low, high)}</td>"))
    notes = "".join(f"<li>{html.escape(line)}</li>" for line in remarks(result))
    said, policy = html.escape(headline(result)), f"default-src 'none'; style-src '{digest(STYLE)}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>tfb: {said}</title><style>{STYLE}</style></head>\n"
        f'<body><h1 class="{result.verdict.replace(" ", "-")}">{said}</h1>'
        f"<p>head <b>{html.escape(result.head)}</b> against base <b>{html.escape(result.base)}</b>, "
        f"{result.minutes:.1f} minutes, {when(result)} UTC</p>"
        f"<table>{''.join(table)}</table><ul>{notes}</ul></body></html>\n"
    )


def _row(kind: str, cells: Iterable[str], first: str = "") -> str:
    return f"<tr>{first}{''.join(f'<{kind}>{html.escape(cell)}</{kind}>' for cell in cells)}</tr>"


def _drawing(one: RequestVerdict, margin: float, low: float, high: float) -> str:
    """An interval; the grey band is what counts as the same."""

    def x(value: float) -> float:
        return round((value - low) / (high - low) * WIDTH, 1)

    left, right, said, ratio = x(1 / (1 + margin)), x(1 + margin), "no figure", one.ratio
    parts = [
        f'<rect class="margin" x="{left}" width="{round(right - left, 1)}" height="{HEIGHT}"/>',
        f'<line class="axis" x1="{x(1.0)}" x2="{x(1.0)}" y1="0" y2="{HEIGHT}"/>',
    ]
    if ratio and ratio.low and ratio.high:
        said = f"{ratio.value:.3f}, from {ratio.low:.3f} to {ratio.high:.3f}"
        parts.append(f'<line class="bar" x1="{x(ratio.low)}" x2="{x(ratio.high)}" y1="10" y2="10"/>')
        parts.append(f'<circle class="dot" cx="{x(ratio.value)}" cy="10" r="4"/>')
    label = html.escape(f"{one.request}: {said}")
    return (
        f'<svg class="{one.verdict.replace(" ", "-")}" role="img" aria-label="{label}" width="{WIDTH}" '
        f'height="{HEIGHT}"><title>{label}</title>{"".join(parts)}</svg>'
    )
