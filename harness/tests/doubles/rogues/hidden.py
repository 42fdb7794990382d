"""Rogues of the other pages that are honest until many connections are open: only the answers of a load show them."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Change, Rogue, constants, every, http, pages, rows, updates
from harness.tests.doubles.rogues.busy import busy, chosen, while_busy

SELDOM = 100  # requests, of which one is spoilt


def seldom(change: Change) -> Change:
    """The same for one call in a hundred."""

    def now(server: ReferenceServer) -> bool:
        return busy(server) and every(server, SELDOM)

    return {name: chosen(cheat, getattr(ReferenceServer, name), now) for name, cheat in change.items()}


def _hidden(rogues: Iterable[Rogue], caught_by: str | None, *names: str) -> list[Rogue]:
    """Those of these names, which misbehave in the load only: caught by one check, or as when they never hide."""
    known = {rogue.name: rogue for rogue in rogues}
    return [_renamed(known[name], "when-busy", "while many ask", while_busy, caught_by) for name in names]


def _own(rogues: Iterable[Rogue], *names: str) -> list[Rogue]:
    return _hidden(rogues, None, *names)


def _seldom(rogues: Iterable[Rogue], *names: str) -> list[Rogue]:
    known = {rogue.name: rogue for rogue in rogues}
    return [_renamed(known[name], "now-and-then", "one call in a hundred, while many ask", seldom) for name in names]


def _renamed(
    rogue: Rogue, suffix: str, when: str, change: Callable[[Change], Change], caught_by: str | None = None
) -> Rogue:
    return replace(
        rogue,
        name=f"{rogue.name}-{suffix}",
        test_type="json" if rogue.test_type == "http" else rogue.test_type,
        caught_by=caught_by or rogue.caught_by,
        does=f"{rogue.does}, {when}",
        change=change(rogue.change),
        under_load=True,
    )


ROGUES = (
    *_hidden(
        http.ROGUES,
        "one-answer-a-request",
        *("swallows-requests", "speaks-http-1.0", "header-without-colon", "length-and-chunked"),
        *("ends-bodies-by-closing", "length-too-long", "stray-line-end", "closes-each-time", "closes-after-ten"),
    ),
    *_hidden(http.ROGUES, "json-valid", "length-too-short"),
    *_own(
        http.ROGUES,
        *("fails-sometimes", "nameless", "dateless", "date-in-old-form", "date-in-local-time", "date-stale"),
        *("json-as-text", "page-without-charset", "json-in-latin-1", "compresses-unasked"),
    ),
    *_own(
        constants.ROGUES,
        *("json-trailing-comma", "json-with-bom", "json-upper-case-key", "json-extra-key", "json-other-greeting"),
        "json-key-twice",
    ),
    *_own(
        rows.ROGUES,
        *("string-ids", "floats", "null-numbers", "negatives", "ids-from-zero", "keys-in-two-cases", "lower-case-key"),
        *("further-key", "array-of-one", "invents-numbers", "always-row-42", "identical-rows", "first-nine-tenths"),
        *("even-ids", "scattered-subset", "walks-the-table", "repeats-half", "neighbours"),
    ),
    *_hidden(updates.ROGUES, "rows-read", "does-not-read"),
    *_hidden(rows.ROGUES, "rows-read", "caches-rows", "serves-memory", "selects-nothing"),
    *_hidden(rows.ROGUES, "one-row-a-select", "select-in", "select-join"),
    *_hidden(updates.ROGUES, "rows-written", "loses-half", "never-writes"),
    *_hidden(updates.ROGUES, "written-before-answered", "races"),
    *_own(updates.ROGUES, "small-numbers"),
    *_own(
        pages.ROGUES,
        *("no-doctype", "untitled", "sorted-by-id", "none-added", "in-ascii", "escapes-twice", "does-not-escape"),
        *("injected-script", "handler", "advertises", "hides-rows"),
    ),
    *_hidden(pages.ROGUES, "rows-read", "caches-fortunes"),
    *_seldom(
        constants.ROGUES,
        *("json-trailing-comma", "json-upper-case-key", "json-extra-key", "json-other-greeting", "json-key-twice"),
    ),
    *_seldom(http.ROGUES, "dateless", "nameless", "json-as-text"),
    *_seldom(rows.ROGUES, "string-ids", "lower-case-key", "invents-numbers", "null-numbers"),
)
