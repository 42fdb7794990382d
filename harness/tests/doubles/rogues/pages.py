"""Rogues of the fortune test."""

import html
from collections.abc import Callable, Sequence

import psycopg

from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Change, Rogue

Fortunes = Sequence[tuple[int, str]]


def page_with(change: Callable[[str], str], encoding: str = "utf-8") -> Change:
    """Change the finished page."""

    def page(self: ReferenceServer, fortunes: Fortunes) -> bytes:
        return change(ReferenceServer.page(self, fortunes).decode()).encode(encoding, "replace")

    return {"page": page}


def replaced(old: str, new: str) -> Change:
    """Replace the first occurrence of a piece of the page."""
    return page_with(lambda page: page.replace(old, new, 1))


def by_id(self: ReferenceServer, fortunes: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return sorted(ReferenceServer.order(self, fortunes))


def none_added(self: ReferenceServer, fortunes: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return sorted(fortunes, key=lambda row: row[1])


def escaped_twice(self: ReferenceServer, message: str) -> str:
    return html.escape(html.escape(message))


def known_characters(self: ReferenceServer, message: str) -> str:
    """Escapes what the seeded messages need and no more."""
    return message.replace("<script>", "&lt;script&gt;").replace("</script>", "&lt;/script&gt;")


def once(self: ReferenceServer, connection: psycopg.Connection) -> list[tuple[int, str]]:
    """Reads the fortunes each time, and answers those of the first time."""
    rows = ReferenceServer.fortunes(self, connection)
    return list(self.state.setdefault("fortunes", rows))


def cached(self: ReferenceServer, connection: psycopg.Connection) -> list[tuple[int, str]]:
    """Reads the fortunes every other time."""
    with self.lock:
        kept: list[tuple[int, str]] | None = self.state.pop("fortunes", None)
    if kept is None:
        kept = ReferenceServer.fortunes(self, connection)
        self.state["fortunes"] = kept
    return kept


def rogue(name: str, caught_by: str, does: str, change: Change) -> Rogue:
    return Rogue(name=name, test_type="fortune", caught_by=caught_by, does=does, change=change)


ROGUES = (
    rogue("no-doctype", "page-is-html", "leaves the doctype out", replaced("<!DOCTYPE html>", "")),
    rogue("untitled", "page-is-html", "leaves the title out", replaced("<title>Fortunes</title>", "")),
    rogue("sorted-by-id", "fortunes-in-order", "sorts by id", {"order": by_id}),
    rogue("none-added", "fortunes-in-order", "adds no fortune at request time", {"order": none_added}),
    rogue("in-ascii", "fortunes-in-order", "answers ? for what is not ASCII", page_with(str, "ascii")),
    rogue("escapes-twice", "fortunes-in-order", "escapes twice", {"escape": escaped_twice}),
    rogue("does-not-escape", "nothing-executable", "does not escape", {"escape": lambda _, message: message}),
    rogue(
        "injected-script",
        "nothing-executable",
        "loads a script",
        replaced("</head>", '<script src="https://cdn.example/x.js"></script></head>'),
    ),
    rogue("handler", "nothing-executable", "has an event handler", replaced("<body>", '<body onload="alert(1)">')),
    rogue(
        "advertises", "nothing-else-on-the-page", "adds a line of text", replaced("<table>", "<p>Rogue 1.0</p><table>")
    ),
    rogue("hides-rows", "nothing-else-on-the-page", "hides a row", replaced("<tr><td>", "<tr hidden><td>")),
    rogue("fixed-fortunes", "fortune-planted", "reads the rows, answers others", {"fortunes": once}),
    rogue("escapes-what-it-knows", "fortune-planted", "escapes the seeded messages only", {"escape": known_characters}),
    rogue("caches-fortunes", "rows-read", "reads the rows every other time", {"fortunes": cached}),
)
