"""Formats the verdict on a change as an HTML page that works offline."""

import html
from collections.abc import Iterable

from harness.dashboard.saved import csp_hash
from harness.extras.gate.judge import GateResult
from harness.extras.gate.report import draw_ratio, drawing_range, format_start, headline, remark_lines, table_rows
from harness.plain_text import inert_lines

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 90rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } th, td { text-align: left; padding: .3rem .8rem .3rem 0; white-space: nowrap }
tr + tr { border-top: 1px solid #8884 } .drawn { font-family: monospace }
.slower, .failed { color: #c33 } .faster { color: #283 }
"""


def format_page(result: GateResult) -> str:
    """Return a page with the verdict, and a table with the interval of each request."""
    header, *others = table_rows(result)
    ends = drawing_range([one.ratio for one in result.requests], result.threshold)
    table = [_row("th", header, "<td></td>")]
    for one, row in zip(result.requests, others, strict=True):
        drawing = f'<td class="drawn {_class(one.verdict)}" aria-hidden="true">'
        table.append(_row("td", row, f"{drawing}{draw_ratio(one.ratio, result.threshold, ends)}</td>"))
    notes = "".join(f"<li>{_escaped(line)}</li>" for line in remark_lines(result))
    title, policy = _escaped(headline(result)), f"default-src 'none'; style-src '{csp_hash(STYLE)}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>tfb: {title}</title><style>{STYLE}</style></head>\n"
        f'<body><h1 class="{_class(result.verdict)}">{title}</h1>'
        f"<p>head <b>{_escaped(result.head)}</b> against base <b>{_escaped(result.base)}</b>, "
        f"{result.minutes:.1f} minutes, {format_start(result)} UTC</p>"
        f"<table>{''.join(table)}</table><ul>{notes}</ul></body></html>\n"
    )


def _row(kind: str, cells: Iterable[str], first: str) -> str:
    return f"<tr>{first}{''.join(f'<{kind}>{_escaped(cell)}</{kind}>' for cell in cells)}</tr>"


def _escaped(text: str) -> str:
    """Escape text for HTML, and show control and bidirectional characters as escapes."""
    return html.escape(inert_lines(text))


def _class(verdict: str) -> str:
    return verdict.replace(" ", "-")
