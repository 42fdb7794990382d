"""One session, or a history, as a page that works offline: a table, and each interval drawn."""

import html
from collections.abc import Iterable, Sequence

from harness.dashboard.saved import digest
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.words import headline, remarks, rows, scale, when
from harness.stats.model import Ratio

WIDTH, HEIGHT = 360, 20
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 90rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } th, td { text-align: left }
th, td { padding: .3rem .8rem .3rem 0; white-space: nowrap }
tr + tr { border-top: 1px solid #8884 } svg { display: block }
.axis { stroke: #888 } .margin { fill: #8883 } .bar { stroke: currentColor; stroke-width: 2 }
.dot { fill: currentColor }
.slower, .failed { color: #c33 } .faster { color: #283 }
"""


def of_session(result: GateResult) -> str:
    """The verdict, each request's interval, and what stands beside it."""
    header, *others = rows(result)
    drawn = drawings(result.requests, [one.ratio for one in result.requests], result.fail_over)
    table = [_row("th", ("head ÷ base", *header))]
    table += [_row("td", row, first=svg) for svg, row in zip(drawn, others, strict=True)]
    notes = "".join(f"<li>{html.escape(line)}</li>" for line in remarks(result))
    sides = f"head <b>{html.escape(result.head)}</b> against base <b>{html.escape(result.base)}</b>"
    body = f"<p>{sides}, {result.minutes:.1f} minutes, {when(result)} UTC</p><table>{''.join(table)}</table>"
    return _page(headline(result), f"{body}<ul>{notes}</ul>", result.verdict)


def of_history(found: Sequence[GateResult]) -> str:
    """Of each request a table with every session's interval, to one scale."""
    parts = []
    for name in dict.fromkeys(one.request for result in found for one in result.requests):
        of = [(result, one) for result in found for one in result.requests if one.request == name]
        drawn = drawings([one for _, one in of], [one.ratio for _, one in of], of[-1][0].fail_over)
        table = [
            _row("td", (when(result), result.head, one.verdict), first=svg)
            for svg, (result, one) in zip(drawn, of, strict=True)
        ]
        parts.append(f"<h2>{html.escape(name)}</h2><table>{''.join(table)}</table>")
    last = found[-1] if found else None
    return _page(f"{len(found)} sessions", "".join(parts), last.verdict if last else "")


def drawings(of: Sequence[RequestVerdict], ratios: Sequence[Ratio | None], margin: float) -> list[str]:
    """An interval each, all to one scale: the grey band is what counts as the same."""
    low, high = scale(ratios, margin)

    def x(value: float) -> float:
        return round((value - low) / (high - low) * WIDTH, 1)

    found = []
    for one, ratio in zip(of, ratios, strict=True):
        left, right = x(1 / (1 + margin)), x(1 + margin)
        parts = [
            f'<rect class="margin" x="{left}" width="{round(right - left, 1)}" height="{HEIGHT}"/>',
            f'<line class="axis" x1="{x(1.0)}" x2="{x(1.0)}" y1="0" y2="{HEIGHT}"/>',
        ]
        said = "no figure"
        if ratio and ratio.low and ratio.high:
            said = f"{ratio.value:.3f}, from {ratio.low:.3f} to {ratio.high:.3f}"
            parts.append(f'<line class="bar" x1="{x(ratio.low)}" x2="{x(ratio.high)}" y1="10" y2="10"/>')
            parts.append(f'<circle class="dot" cx="{x(ratio.value)}" cy="10" r="4"/>')
        label = html.escape(f"{one.request}: {said}")
        found.append(
            f'<svg class="{one.verdict.replace(" ", "-")}" role="img" aria-label="{label}" width="{WIDTH}" '
            f'height="{HEIGHT}"><title>{label}</title>{"".join(parts)}</svg>'
        )
    return found


def _row(kind: str, cells: Iterable[str], *, first: str = "") -> str:
    inner = "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells)
    return f"<tr>{f'<td>{first}</td>' if first else ''}{inner}</tr>"


def _page(title: str, body: str, verdict: str) -> str:
    policy = f"default-src 'none'; style-src '{digest(STYLE)}'"
    said = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>tfb: {said}</title><style>{STYLE}</style></head>\n"
        f'<body><h1 class="{verdict.replace(" ", "-")}">{said}</h1>{body}</body></html>\n'
    )
