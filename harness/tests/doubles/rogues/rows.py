"""Rogues for the test types that read rows: shapes, counts, values, random draws and statements."""

from collections.abc import Callable
from functools import partial, partialmethod

from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import ROWS, DatabaseConnection, Ids, ReferenceServer, WorldRow, WorldRows
from harness.tests.doubles.rogues import Change, Rogue, every
from harness.tests.doubles.rogues.busy import remembered, while_busy


def with_the_last(self: ReferenceServer, session: ClientSession, count: int) -> list[int]:
    """Replace every fiftieth id with the last row's id."""
    return [ROWS if every(self, 50) else i for i in ReferenceServer.draw(self, session, count)]


def count_with(change: Callable[[str | None, int], int]) -> Change:

    def count(self: ReferenceServer, text: str | None) -> int:
        return change(text, ReferenceServer.count(self, text))

    return {"count": count}


def signed_32_bits(text: str | None, count: int) -> int:
    return 1 if text and text.isdigit() and int(text) >= 2**31 else count


def strict(self: ReferenceServer, text: str | None) -> int:
    if text is None or not text.isdigit():
        raise ConnectionAbortedError("not a number")
    return ReferenceServer.count(self, text)


def every_integer(text: str | None, count: int) -> int:
    digits = "".join(c for c in text or "" if c.isdigit())
    return min(max(int(digits), 1), 500) if digits and text != "-1" else count


def lenient(parse: Callable[[str], float]) -> Change:
    """Accept number notations other than decimal integers."""

    def count(self: ReferenceServer, text: str | None) -> int:
        try:
            return min(max(int(parse(text or "")), 1), 500)
        except (ValueError, OverflowError):
            return 1

    return {"count": count}


def octal(text: str) -> int:
    return int(text, 8 if text.startswith("0") else 10)


def mirrored(self: ReferenceServer, session: ClientSession, count: int) -> list[int]:
    """Draw half of the ids and mirror them (10,001 - id).

    A request for a single row mirrors the previous request's id.
    """
    if count == 1:
        last = session.state.pop("last", None)
        if last is None:
            last = session.state["last"] = session.dice.randint(1, ROWS)
            return [last]
        return [ROWS + 1 - last]
    drawn = ReferenceServer.draw(self, session, (count + 1) // 2)
    return [i for one in drawn for i in (one, ROWS + 1 - one)][:count]


def at_a_distance(self: ReferenceServer, session: ClientSession, count: int) -> list[int]:
    """Draw half of the ids. The other half are these ids plus an offset that is constant within a request."""
    step = session.dice.randint(1000, ROWS - 1)
    drawn = ReferenceServer.draw(self, session, (count + 1) // 2)
    return [i for one in drawn for i in (one, (one + step) % ROWS + 1)][:count]


def in_steps(self: ReferenceServer, session: ClientSession, count: int) -> list[int]:
    first, step = session.dice.randint(1, ROWS), session.dice.randint(1, ROWS)
    return [(first + step * one) % ROWS + 1 for one in range(count)]


def shuffled_list(self: ReferenceServer, session: ClientSession, count: int) -> list[int]:
    """Deal ids from a shuffled list of 800. On a connection, no id repeats before the list is exhausted."""
    remaining: list[int] = session.state.setdefault("left", [])
    ids = self.state.setdefault("ids", session.dice.sample(range(1, ROWS + 1), 800))
    while len(remaining) < count:
        remaining += session.dice.sample(ids, len(ids))
    return [remaining.pop(0) for _ in range(count)]


def watching(question: str) -> Change:
    """Ask the database before each request whether it counts statements."""

    def rows(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
        counted = connection.execute(question.encode()).fetchall()
        return ReferenceServer.rows(self, session, connection, ids) if counted else [(i, 1) for i in ids]

    return {"rows": rows}


def invented(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    return [(i, session.dice.randint(1, ROWS)) for i, _ in ReferenceServer.rows(self, session, connection, ids)]


def off_by_one(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    return [(i, number % ROWS + 1) for i, number in ReferenceServer.rows(self, session, connection, ids)]


def drawn_from(self: ReferenceServer, ids: Ids, session: ClientSession, count: int) -> list[int]:
    return [session.dice.choice(ids) for _ in range(count)]


def opposite(self: ReferenceServer, session: ClientSession, count: int) -> list[int]:
    """Derive every second request's ids from the previous request's."""
    if (last := session.state.pop("last", None)) is not None:
        return [(i + ROWS // 2 - 1) % ROWS + 1 for i in last]
    session.state["last"] = ReferenceServer.draw(self, session, count)
    return list(session.state["last"])


def remembering(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    cache: dict[int, WorldRow] = self.state.setdefault("cache", {})
    if missing := [i for i in ids if i not in cache]:
        cache.update({row[0]: row for row in ReferenceServer.rows(self, session, connection, missing)})
    return [cache[i] for i in ids]


def out_of_memory(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    table = remembered(self, connection)
    return [(i, table[i]) for i in ids]


def one_in_ten_thousand(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids
) -> WorldRows:
    table = remembered(self, connection)
    asked = [i for i in ids if not every(self, 10_000)]
    rows = dict(ReferenceServer.rows(self, session, connection, asked)) if asked else {}
    return [(i, rows.get(i, table[i])) for i in ids]


def select_in(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    query = "SELECT id, randomnumber FROM world WHERE id = ANY(%s)"
    return connection.execute(query, (list(set(ids)),)).fetchall()


def select_twice(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    ReferenceServer.rows(self, session, connection, ids)
    return ReferenceServer.rows(self, session, connection, ids)


ROGUES = (
    Rogue("string-ids", "db", "rows-exact", "returns ids as strings", {"row": lambda self, identifier, number: {"id": str(identifier), "randomNumber": number}}),
    Rogue("ids-from-zero", "query", "rows-exact", "returns ids from 0 to 9999", {"row": lambda self, identifier, number: {"id": identifier % ROWS, "randomNumber": number}, "draw": with_the_last}),
    Rogue("array-of-one", "db", "rows-are-objects", "returns an array for a single row", {"row": lambda self, identifier, number: [{"id": identifier, "randomNumber": number}]}),
    Rogue("bare-when-one", "query", "rows-are-objects", "returns an object for queries=1", {"array": lambda self, rows: self.row(*rows[0]) if len(rows) == 1 else [self.row(*row) for row in rows]}),
    Rogue("no-upper-bound", "query", "count-exact", "returns 501 rows for queries=501", count_with(lambda t, n: 501 if t == "501" else n)),
    Rogue("reads-fractions", "query", "count-exact", "reads the count 1.5 as 15", count_with(every_integer)),
    Rogue("int32-overflow", "query", "count-exact", "returns one row for a 20-digit count", count_with(signed_32_bits)),
    Rogue("reads-floats", "query", "count-exact", "accepts 5e1 and 5.0 as counts", lenient(float)),
    Rogue("reads-literals", "query", "count-exact", "accepts 0x10 and 5_0 as counts", lenient(partial(int, base=0))),
    Rogue("reads-any-digits", "cached-query", "count-exact", "accepts blanks, and the digits of all scripts, in counts", lenient(int)),
    Rogue("reads-octal", "update", "count-exact", "reads the count 010 as eight", lenient(octal)),
    Rogue("strict-numbers", "query", "answered", "fails on queries=foo", {"count": strict}),
    Rogue("invents-numbers", "db", "equals-row", "reads rows, but returns other numbers", {"rows": invented}),
    Rogue("off-by-one", "cached-query", "equals-row", "returns each number plus one", {"rows": off_by_one}),
    Rogue("always-row-42", "db", "ids-repeat-by-chance", "always returns the same row", {"draw": lambda self, session, count: [42] * count}),
    Rogue("first-nine-tenths", "db", "ids-uniform", "draws ids from 1 to 9000 only", {"draw": partialmethod(drawn_from, range(1, 9001))}),
    Rogue("dependent-draws", "db", "ids-independent", "derives every second id from the previous one", {"draw": opposite}),
    Rogue("mirrored-pairs", "query", "ids-independent", "mirrors every second id from the previous one", {"draw": mirrored}),
    Rogue("mirrored-requests", "db", "ids-independent", "mirrors every second request's id from the previous request's", {"draw": mirrored}),
    Rogue("pairs-at-a-distance", "query", "ids-independent", "returns pairs of ids at a constant distance", {"draw": at_a_distance}),
    Rogue("arithmetic-sequences", "query", "ids-independent", "returns ids in equal steps", {"draw": in_steps}),
    Rogue("mirrored-updates", "update", "ids-independent", "writes ids of which half mirror the other half", {"draw_different": lambda self, session, count: [i for one in session.dice.sample(range(1, ROWS // 2 + 1), (count + 1) // 2) for i in (one, ROWS + 1 - one)][:count]}),
    Rogue("deals-a-short-list", "db", "ids-repeat-by-chance", "deals ids from a shuffled list of 800", {"draw": shuffled_list}),
    Rogue("watches-the-counting", "db", "counting-unwatched", "asks whether statements are counted", watching("SHOW pg_stat_statements.track")),
    Rogue("watches-the-settings", "query", "counting-unwatched", "asks for a setting before each request", watching("SELECT current_setting('pg_stat_statements.track')")),
    Rogue("caches-rows", "db", "rows-read", "reads each row only once", {"rows": remembering}),
    Rogue("serves-memory", "query", "rows-read", "reads the table only once, at the start", {"rows": out_of_memory}),
    Rogue("spares-one-in-10000", "query", "rows-read", "omits one SELECT in 10,000", {"rows": one_in_ten_thousand}),
    Rogue("select-in", "query", "one-row-a-select", "selects several rows in one statement", {"rows": select_in}),
    Rogue("selects-twice", "db", "no-needless-select", "reads every row twice", {"rows": select_twice}),
    Rogue("makes-up-when-busy", "db", "equals-row", "invents numbers under load", while_busy({"rows": lambda self, session, connection, ids: [(i, 1) for i in ids]}), under_load=True),
)  # fmt: skip
