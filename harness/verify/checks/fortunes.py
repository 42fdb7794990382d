"""Checks for the fortunes page, parsed as in a browser: sorted rows, escaped messages, and no other content."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from selectolax.lexbor import LexborHTMLParser, LexborNode

from harness.verify.checks import Finding, check, excerpt, exchange_check
from harness.verify.checks.evidence import Evidence, Exchange

FORTUNE = frozenset({"fortune"})
ADDED_FORTUNE = "Additional fortune added at request time."

# A correct page has about 80 tags in 1.5 kB. Much larger pages are not parsed, because parsing can take quadratic time.
MAX_BYTES, MAX_TAGS = 16 * 1024, 1_000
ELEMENTS = frozenset({"html", "head", "meta", "title", "body", "table", "thead", "tbody", "tr", "th", "td"})
IGNORED_BY_TECHEMPOWER = frozenset({"script", "link"})  # TechEmpower also ignores attributes that run or load content
_DOCTYPE = re.compile(rb"(?:\s|<!--(?>.*?-->))*+<!doctype\s+html\s*>", re.IGNORECASE | re.DOTALL)
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A parsed fortune page."""

    rows: tuple[tuple[str, ...], ...]  # text of the cells in each row, header first
    elements: tuple[str, ...]
    attributes: tuple[tuple[str, str, str], ...]  # (element, name, value)
    title: str
    loose_text: str  # text in the body, outside of cells


@exchange_check("fortune.1", FORTUNE)
def page_is_html(exchange: Exchange) -> Iterator[Finding]:
    """Require an HTML5 page in UTF-8 with the doctype and the title."""
    if _is_oversized(exchange.body):
        yield Finding(
            "the page is too large for a fortunes page. Return only the table",
            expected=f"at most {MAX_BYTES // 1024} kB and {MAX_TAGS:,} tags",
            actual=f"{len(exchange.body)} bytes, {exchange.body.count(b'<')} tags",
        )
        return
    try:
        exchange.body.decode("utf-8")
    except UnicodeDecodeError as error:
        yield Finding(
            f"the page is not UTF-8: {error.reason} at byte {error.start}. Encode the page in UTF-8", expected="UTF-8"
        )
        return
    if not _DOCTYPE.match(exchange.body) or parse_page(exchange.body).title != "Fortunes":
        yield Finding(
            "the page needs a doctype and a title, but lacks at least one of them",
            expected="<!DOCTYPE html>…<title>Fortunes</title>",
            actual=excerpt(exchange.body, 100),
        )


@check("fortune.2", FORTUNE, lambda evidence: bool(evidence.fortunes))
def fortunes_in_order(evidence: Evidence) -> Iterator[Finding]:
    """Require a header row, then the fortunes from the database and the added fortune, sorted by message."""
    for exchange in evidence.ok_exchanges:
        page = parse_page(exchange.body)
        # Accept any version if none overlaps the exchange, because the clock may have been set back.
        versions = [version for version in evidence.fortunes if version.overlaps(exchange)] or evidence.fortunes
        yield from min((list(_compare(page, version.rows)) for version in versions), key=len)


@exchange_check("fortune.3", FORTUNE)
def nothing_else_on_the_page(exchange: Exchange) -> Iterator[Finding]:
    """Find text outside the table, unexpected elements, and attributes that run scripts, or load or hide content."""
    page = parse_page(exchange.body)
    for name in page.elements:
        if name not in ELEMENTS:
            yield Finding(
                f"the page contains a <{name}> element. Escape messages as text, and return only the table",
                expected="a fortunes table with escaped messages: &lt; for <",
                actual=f"<{name}>",
                accepted=name in IGNORED_BY_TECHEMPOWER,
            )
    for element, name, value in page.attributes:
        target = re.sub(r"[\s\x00-\x1f]", "", value).lower()
        refresh = name == "http-equiv" and target == "refresh"
        runs = name.startswith("on") or name in {"src", "href", "srcdoc"} or "javascript:" in target or refresh
        if runs or name == "hidden" or (name == "style" and _HIDING.search(value)):
            yield Finding(
                f"the {name} attribute of <{element}> runs a script, or loads or hides content. Remove it",
                expected="no such attribute",
                actual=excerpt(f'{name}="{value}"', 80),
                accepted=runs,
            )
    if (tables := page.elements.count("table")) > 1:
        yield Finding(
            "the page has several tables. Put all rows in one table",
            expected="one table",
            actual=f"{tables} tables",
            accepted=True,
        )
    if page.loose_text:
        yield Finding(
            "the page has text outside the table. Remove the text",
            expected="a fortunes table",
            actual=excerpt(page.loose_text, 80),
        )


@lru_cache(maxsize=64)  # during a load, thousands of pages are identical until a fortune changes
def parse_page(body: bytes) -> Page:
    """Parse a page as an HTML5 browser does. Treat an oversized page as empty."""
    if _is_oversized(body):
        return Page(rows=(), elements=(), attributes=(), title="", loose_text="")
    tree = LexborHTMLParser(body.decode("utf-8", "replace"))
    nodes = tree.css("*")
    title = tree.css_first("head > title")
    table = tree.css_first("table")  # rows in other tables count as missing
    rows = table.css("tr") if table else []
    return Page(
        rows=tuple(
            tuple(_cell_text(cell, "td" if number else "th") for cell in row.iter() if cell.tag in ("th", "td"))
            for number, row in enumerate(rows)
        ),
        elements=tuple(node.tag or "" for node in nodes),
        attributes=tuple(
            (node.tag or "", name.lower(), value or "") for node in nodes for name, value in node.attributes.items()
        ),
        title=title.text(strip=True) if title else "",
        loose_text=_loose_text(tree),
    )


def _is_oversized(body: bytes) -> bool:
    return len(body) > MAX_BYTES or body.count(b"<") > MAX_TAGS


def _cell_text(cell: LexborNode, expected_tag: str) -> str:
    """Return a cell's text, or the cell's HTML if the tag is wrong."""
    return cell.text(deep=True) if cell.tag == expected_tag else cell.html or ""


def _compare(page: Page, fortunes: Mapping[int, str]) -> Iterator[Finding]:
    """Yield a finding for the table's first unexpected row."""
    rows = sorted([*fortunes.items(), (0, ADDED_FORTUNE)], key=lambda row: row[1].encode())
    expected_rows = [("id", "message"), *((f"{identifier}", message) for identifier, message in rows)]
    actual_rows = [tuple(cell.strip() for cell in row) for row in page.rows]
    for number, (actual, expected) in enumerate(zip_longest(actual_rows, expected_rows, fillvalue=("no row",))):
        if actual != expected:
            unsorted = sorted(actual_rows) == sorted(expected_rows)
            advice = "Sort the rows by message" if unsorted else "Return all current rows of the table, escaped once"
            yield Finding(
                f"row {number} of the table is wrong. {advice}",
                expected=" | ".join(expected),
                actual=excerpt(" | ".join(actual)),
                # TechEmpower accepts any collation: it specifies none, and its fortunes sort the same in all locales.
                accepted=unsorted and actual_rows[1:] == sorted(actual_rows[1:], key=_alphabetical_key),
            )
            return


def _alphabetical_key(row: tuple[str, ...]) -> str:
    """Return a key that sorts rows by message, ignoring accents and case."""
    return "".join(c for c in unicodedata.normalize("NFD", row[-1]) if not unicodedata.combining(c)).casefold()


def _loose_text(tree: LexborHTMLParser) -> str:
    """Return the text outside the cells, including text between rows, which browsers move out of the table."""
    if tree.body is None:
        return ""
    remainder = LexborHTMLParser(tree.html or "")
    for cell in remainder.css("th, td, script, style"):
        cell.decompose()
    return (remainder.body.text(deep=True) if remainder.body else "").strip()
