"""Rogues that return stale rows: from caches, old snapshots or prefetched rows."""

import psycopg

from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import DatabaseConnection, Ids, ReferenceServer, WorldRow, WorldRows
from harness.tests.doubles.rogues import Rogue


def decoy_reads(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    cached: dict[int, WorldRow] = self.state.setdefault("kept", {})
    for row in ReferenceServer.rows(self, session, connection, ids):
        cached.setdefault(row[0], row)
    return [cached[i] for i in ids]


def old_snapshot(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    """Run all SELECTs of a connection in one transaction that never ends. They see an old snapshot."""
    if connection.autocommit:
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return ReferenceServer.rows(self, session, connection, ids)


def read_ahead(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    """Return the rows that the connection's previous request read, if it asked for the same number of rows."""
    ready: dict[int, WorldRows] = session.state.setdefault("ready", {})
    rows = ReferenceServer.rows(self, session, connection, ids)
    answer = ready.get(len(ids))
    ready[len(ids)] = rows
    if answer is None:
        return ReferenceServer.rows(self, session, connection, self.draw(session, len(ids)))
    return answer


def same_count(self: ReferenceServer, connection: DatabaseConnection) -> list[tuple[int, str]]:
    """Read the fortunes, but render the first message that was read for each row."""
    rows = ReferenceServer.fortunes(self, connection)
    kept: list[tuple[int, str]] = self.state.setdefault("page", rows)
    if len(kept) != len(rows):
        known = dict(kept)
        kept = [(i, known.get(i, message)) for i, message in rows]
    return kept


ROGUES = (
    Rogue("decoy-reads", "db", "equals-row", "reads rows, but returns their first version", {"rows": decoy_reads}),
    Rogue("old-snapshot", "query", "equals-row", "reads in a transaction that never ends", {"rows": old_snapshot}),
    Rogue("reads-ahead", "db", "equals-row", "returns the previous request's rows", {"rows": read_ahead}),
    Rogue("looks-at-the-count", "fortune", "fortunes-in-order", "renders old messages while the number of rows is unchanged", {"fortunes": same_count}),
)  # fmt: skip
