"""Formats the verdict on a change as an HTML page that works offline."""

import html
from collections.abc import Iterable

from harness.dashboard.build import WEB
from harness.dashboard.saved import csp_hash
from harness.extras.gate.judge import GateResult
from harness.extras.gate.report import draw_ratio, drawing_range, format_start, headline, remark_lines, table_rows
from harness.plain_text import inert_lines


def format_page(result: GateResult) -> str:
    """Return a page with the overall verdict and a table of all requests with their intervals."""
    style, (header, *others) = read_styles(), table_rows(result)
    ends = drawing_range([one.ratio for one in result.requests], result.threshold)
    table = [_row("th", header, "<td></td>")]
    for one, row in zip(result.requests, others, strict=True):
        drawing = f'<td class="drawn {_class(one.verdict)}" aria-hidden="true">'
        table.append(_row("td", row, f"{drawing}{draw_ratio(one.ratio, result.threshold, ends)}</td>"))
    notes = "".join(f"<li>{_escaped(line)}</li>" for line in remark_lines(result))
    title, policy = _escaped(headline(result)), f"default-src 'none'; style-src '{csp_hash(style)}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{title}: tfb</title><style>{style}</style></head>\n'
        '<body class="site"><header class="top site-top"><p class="brand">tfb <span>regression gate</span></p></header>'
        f'<main id="main"><h1 class="{_class(result.verdict)}">{title}</h1>'
        f'<p class="quiet">head <b>{_escaped(result.head)}</b> against base <b>{_escaped(result.base)}</b>, '
        f"{result.minutes:.1f} minutes, {format_start(result)} UTC</p>"
        f'<div class="table-frame"><table class="plain-table"><thead>{table[0]}</thead>'
        f"<tbody>{''.join(table[1:])}</tbody></table></div><ul>{notes}</ul></main></body></html>\n"
    )


def _row(kind: str, cells: Iterable[str], first: str) -> str:
    return f"<tr>{first}{''.join(f'<{kind}>{_escaped(cell)}</{kind}>' for cell in cells)}</tr>"


def _escaped(text: str) -> str:
    """Escape text for HTML, and show control and bidirectional characters as escapes."""
    return html.escape(inert_lines(text))


def _class(verdict: str) -> str:
    return f"verdict-{'slower' if verdict == 'failed' else verdict.replace(' ', '-')}"


PARTS = ("tokens", "base", "frame", "figures", "summary", "site", "narrow")


def read_styles() -> str:
    """Return the CSS for pages without scripts."""
    return "".join((WEB / "src" / "styles" / f"{name}.css").read_text(encoding="utf-8") for name in PARTS)
