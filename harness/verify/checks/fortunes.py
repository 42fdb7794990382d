"""The fortune page, parsed as browsers do: rows in order, escaped, nothing executable, nothing that matters added."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from selectolax.lexbor import LexborHTMLParser, LexborNode

from harness.verify.checks import Finding, check, each, shown
from harness.verify.checks.evidence import Evidence, Exchange

FORTUNE = frozenset({"fortune"})
ADDED = "Additional fortune added at request time."

# What a page of fortunes may consist of. <meta> carries nothing but a charset or a viewport, and thead, tbody and
# attributes like class change nothing of what is rendered.
# A page of fortunes has some 80 tags in 1.5 kB. Parsers take quadratic time for more.
MOST_BYTES, MOST_TAGS = 16 * 1024, 1_000
ELEMENTS = frozenset({"html", "head", "meta", "title", "body", "table", "thead", "tbody", "tr", "th", "td"})
OVERLOOKED = frozenset({"script", "link"})  # by TechEmpower's verification, and all attributes that run or load
_DOCTYPE = re.compile(rb"(?:\s|<!--(?>.*?-->))*+<!doctype\s+html\s*>", re.IGNORECASE | re.DOTALL)
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A parsed fortune page."""

    rows: tuple[tuple[str, ...], ...]  # text of the cells, header first
    elements: tuple[str, ...]
    attributes: tuple[tuple[str, str, str], ...]  # element, name, value
    title: str
    loose_text: str  # text of the body outside of cells


@each("fortune.1", FORTUNE)
def page_is_html(exchange: Exchange) -> Iterator[Finding]:
    """An HTML5 page in UTF-8 with the doctype and the title."""
    if _is_oversized(exchange.body):
        expected = f"at most {MOST_BYTES // 1024} kB and {MOST_TAGS:,} tags"
        actual = f"{len(exchange.body)} bytes, {exchange.body.count(b'<')} tags"
        yield Finding("the page is too large to be a page of fortunes", expected=expected, actual=actual)
        return
    try:
        exchange.body.decode("utf-8")
    except UnicodeDecodeError as error:
        yield Finding(f"the page is not UTF-8: {error.reason} at byte {error.start}", expected="UTF-8")
        return
    if not _DOCTYPE.match(exchange.body) or parse(exchange.body).title != "Fortunes":
        expected = "<!DOCTYPE html>…<title>Fortunes</title>"
        yield Finding("the page lacks the doctype or the title", expected=expected, actual=shown(exchange.body, 100))


@check("fortune.2", FORTUNE, lambda evidence: bool(evidence.fortunes))
def fortunes_in_order(evidence: Evidence) -> Iterator[Finding]:
    """One table: a header, then every row of the database and the added one, sorted by message."""
    for exchange in evidence.good:
        page = parse(exchange.body)
        # Where a clock was set back, no version may be of the time: each of them would be right then.
        held = [version for version in evidence.fortunes if version.may_answer(exchange)] or evidence.fortunes
        yield from min((list(_compare(page, version.rows)) for version in held), key=len)


@each("fortune.3", FORTUNE)
def nothing_else_on_the_page(exchange: Exchange) -> Iterator[Finding]:
    """Nothing is shown beside the table, hidden, run or loaded from elsewhere: messages are text."""
    page = parse(exchange.body)
    for name in page.elements:
        if name not in ELEMENTS:
            message, accepted = f"the page holds a <{name}> element", name in OVERLOOKED
            expected = "a table of fortunes whose messages are escaped: &lt; for <"
            yield Finding(message, expected=expected, actual=f"<{name}>", accepted=accepted)
    for element, name, value in page.attributes:
        target = re.sub(r"[\s\x00-\x1f]", "", value).lower()
        refresh = name == "http-equiv" and target == "refresh"
        runs = name.startswith("on") or name in {"src", "href", "srcdoc"} or "javascript:" in target or refresh
        if runs or name == "hidden" or (name == "style" and _HIDING.search(value)):
            message = f"the page runs, loads or hides something: <{element} {name}>"
            yield Finding(message, expected="no such attribute", actual=shown(f'{name}="{value}"', 80), accepted=runs)
    if page.loose_text:
        message, actual = "the page shows more than the fortunes", shown(page.loose_text, 80)
        yield Finding(message, expected="a table of fortunes", actual=actual)


@lru_cache(maxsize=64)  # the thousands of pages of an audit are the same but for a change of the table
def parse(body: bytes) -> Page:
    """Parse as an HTML5 browser does; an oversized page counts as empty."""
    if _is_oversized(body):
        return Page(rows=(), elements=(), attributes=(), title="", loose_text="")
    tree = LexborHTMLParser(body.decode("utf-8", "replace"))
    nodes = tree.css("*")
    title = tree.css_first("head > title")
    table = tree.css_first("table")  # of further ones rows are missing in this one
    rows = table.css("tr") if table else []
    return Page(
        rows=tuple(
            tuple(_cell(cell, "td" if place else "th") for cell in row.iter() if cell.tag in ("th", "td"))
            for place, row in enumerate(rows)
        ),
        elements=tuple(node.tag or "" for node in nodes),
        attributes=tuple(
            (node.tag or "", name.lower(), value or "") for node in nodes for name, value in node.attributes.items()
        ),
        title=title.text(strip=True) if title else "",
        loose_text=_loose_text(tree),
    )


def _is_oversized(body: bytes) -> bool:
    return len(body) > MOST_BYTES or body.count(b"<") > MOST_TAGS


def _cell(cell: LexborNode, kind: str) -> str:
    """Its text; of a heading among the fortunes, or a fortune in the header, as it stands in the page."""
    return cell.text(deep=True) if cell.tag == kind else cell.html or ""


def _compare(page: Page, fortunes: Mapping[int, str]) -> Iterator[Finding]:
    """The first row of the table that is another than it should be."""
    rows = sorted([*fortunes.items(), (0, ADDED)], key=lambda row: row[1].encode())
    wanted = [("id", "message"), *((f"{identifier}", message) for identifier, message in rows)]
    found = [tuple(cell.strip() for cell in row) for row in page.rows]
    for place, (came, should) in enumerate(zip_longest(found, wanted, fillvalue=("no row",))):
        if came != should:
            unsorted = ": the rows are not sorted by message" if sorted(found) == sorted(wanted) else ""
            actual = shown(" | ".join(came))
            yield Finding(f"row {place} of the table is wrong{unsorted}", expected=" | ".join(should), actual=actual)
            return


def _loose_text(tree: LexborHTMLParser) -> str:
    """Text of the body that stands in no cell; a browser moves text between rows out of the table."""
    if tree.body is None:
        return ""
    shell = LexborHTMLParser(tree.html or "")
    for cell in shell.css("th, td, script, style"):
        cell.decompose()
    return (shell.body.text(deep=True) if shell.body else "").strip()
