"""Rogues for the fortune test type."""

import html
import unicodedata

from harness.tests.doubles.reference import DatabaseConnection, ReferenceServer
from harness.tests.doubles.rogues import Change, Rogue, every


def replaced(old: bytes, new: bytes) -> Change:
    return {"page": lambda self, fortunes: ReferenceServer.page(self, fortunes).replace(old, new, 1)}


def cached(self: ReferenceServer, connection: DatabaseConnection) -> list[tuple[int, str]]:
    with self.lock:
        rows: list[tuple[int, str]] | None = self.state.pop("fortunes", None)
    if rows is None:
        rows = ReferenceServer.fortunes(self, connection)
        self.state["fortunes"] = rows
    return rows


def made_up(self: ReferenceServer, connection: DatabaseConnection) -> list[tuple[int, str]]:
    """Read the fortunes only for every fourth request. A join with three numbers inflates PostgreSQL's row count."""
    if every(self, 4) or "fortunes" not in self.state:
        self.state["fortunes"] = ReferenceServer.fortunes(self, connection)
        connection.execute("SELECT FROM fortune, generate_series(1, 3)")
    return list(self.state["fortunes"])


def sorted_in_sql(self: ReferenceServer, connection: DatabaseConnection) -> list[tuple[int, str]]:
    """Let PostgreSQL add the request-time fortune and sort the rows."""
    text = "SELECT id, message FROM fortune UNION ALL SELECT 0, %s ORDER BY message"
    return connection.execute(text, ("Additional fortune added at request time.",)).fetchall()


def alphabetically(message: str) -> str:
    """Return a key that ignores case and accents, as most locales do."""
    return unicodedata.normalize("NFD", message).casefold()


ROGUES = (
    Rogue("no-doctype", "fortune", "page-is-html", "leaves out the doctype", replaced(b"<!DOCTYPE html>", b"")),
    Rogue("sorted-by-id", "fortune", "fortunes-in-order", "sorts by id", {"order": lambda self, fortunes: sorted(ReferenceServer.order(self, fortunes))}),
    Rogue("ignores-case", "fortune", "fortunes-in-order", "ignores case when sorting", {"order": lambda self, fortunes: sorted(ReferenceServer.order(self, fortunes), key=lambda row: row[1].upper())}),
    Rogue("sorted-by-locale", "fortune", "fortunes-in-order", "sorts accented letters beside their base letters", {"order": lambda self, fortunes: sorted(ReferenceServer.order(self, fortunes), key=lambda row: alphabetically(row[1]))}),
    Rogue("two-tables", "fortune", "fortunes-in-order", "spreads the rows over two tables", {"page": lambda self, fortunes: ReferenceServer.page(self, fortunes).replace(b"</tr><tr><td>7<", b"</tr></table><table><tr><td>7<")}),
    Rogue("one-table-more", "fortune", "nothing-else-on-the-page", "adds a second table", replaced(b"</table>", b"</table><table><tr><td>1</td><td>more</td></tr></table>")),
    Rogue("none-added", "fortune", "fortunes-in-order", "adds no fortune at request time", {"order": lambda self, fortunes: sorted(fortunes, key=lambda row: row[1])}),
    Rogue("escapes-twice", "fortune", "fortunes-in-order", "escapes messages twice", {"escape": lambda self, message: html.escape(html.escape(message))}),
    Rogue("does-not-escape", "fortune", "nothing-else-on-the-page", "does not escape messages", {"escape": lambda _, message: message}),
    Rogue("advertises", "fortune", "nothing-else-on-the-page", "adds a line of text", replaced(b"<table>", b"<p>Rogue 1.0</p><table>")),
    Rogue("escapes-what-it-knows", "fortune", "fortunes-in-order", "escapes only the seeded messages", {"escape": lambda self, message: message.replace("<script>", "&lt;script&gt;").replace("</script>", "&lt;/script&gt;")}),
    Rogue("caches-fortunes", "fortune", "rows-read", "reads the rows for every second request only", {"fortunes": cached}),
    Rogue("sorted-in-sql", "fortune", "rows-read", "lets the database add a row and sort", {"fortunes": sorted_in_sql, "order": lambda self, fortunes: fortunes}),
    Rogue("makes-rows-up", "fortune", "rows-read", "reads for every fourth request only, and inflates the row count", {"fortunes": made_up}),
)  # fmt: skip
