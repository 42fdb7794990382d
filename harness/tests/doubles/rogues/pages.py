"""Rogues of the fortune test."""

import html
from collections.abc import Callable, Sequence

from harness.tests.doubles.reference import Line, ReferenceServer
from harness.tests.doubles.rogues import Change, Rogue, every

Fortunes = Sequence[tuple[int, str]]


def page_with(change: Callable[[str], str], encoding: str = "utf-8") -> Change:

    def page(self: ReferenceServer, fortunes: Fortunes) -> bytes:
        return change(ReferenceServer.page(self, fortunes).decode()).encode(encoding, "replace")

    return {"page": page}


def replaced(old: str, new: str) -> Change:
    return page_with(lambda page: page.replace(old, new, 1))


def once(self: ReferenceServer, connection: Line) -> list[tuple[int, str]]:
    rows = ReferenceServer.fortunes(self, connection)
    return list(self.state.setdefault("fortunes", rows))


def cached(self: ReferenceServer, connection: Line) -> list[tuple[int, str]]:
    with self.lock:
        kept: list[tuple[int, str]] | None = self.state.pop("fortunes", None)
    if kept is None:
        kept = ReferenceServer.fortunes(self, connection)
        self.state["fortunes"] = kept
    return kept


def made_up(self: ReferenceServer, connection: Line) -> list[tuple[int, str]]:
    """Reads for four requests at once, and has a join make up the rows of three."""
    if every(self, 4) or "fortunes" not in self.state:
        self.state["fortunes"] = ReferenceServer.fortunes(self, connection)
        connection.execute("SELECT FROM fortune, generate_series(1, 3)")
    return list(self.state["fortunes"])


ROGUES = (
    Rogue("no-doctype", "fortune", "page-is-html", "leaves the doctype out", replaced("<!DOCTYPE html>", "")),
    Rogue("sorted-by-id", "fortune", "fortunes-in-order", "sorts by id", {"order": lambda self, fortunes: sorted(ReferenceServer.order(self, fortunes))}),
    Rogue("none-added", "fortune", "fortunes-in-order", "adds no fortune at request time", {"order": lambda self, fortunes: sorted(fortunes, key=lambda row: row[1])}),
    Rogue("in-ascii", "fortune", "fortunes-in-order", "answers ? for what is not ASCII", page_with(str, "ascii")),
    Rogue("escapes-twice", "fortune", "fortunes-in-order", "escapes twice", {"escape": lambda self, message: html.escape(html.escape(message))}),
    Rogue("does-not-escape", "fortune", "nothing-executable", "does not escape", {"escape": lambda _, message: message}),
    Rogue("advertises", "fortune", "nothing-else-on-the-page", "adds a line of text", replaced("<table>", "<p>Rogue 1.0</p><table>")),
    Rogue("fixed-fortunes", "fortune", "fortunes-in-order", "reads the rows, answers others", {"fortunes": once}),
    Rogue("escapes-what-it-knows", "fortune", "fortunes-in-order", "escapes the seeded messages only", {"escape": lambda self, message: message.replace("<script>", "&lt;script&gt;").replace("</script>", "&lt;/script&gt;")}),
    Rogue("caches-fortunes", "fortune", "rows-read", "reads the rows every other time", {"fortunes": cached}),
    Rogue("makes-rows-up", "fortune", "rows-read", "reads every fourth time, and makes rows up", {"fortunes": made_up}),
)  # fmt: skip
