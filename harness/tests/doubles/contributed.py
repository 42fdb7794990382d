"""Runs the reference server with contributors' typical mistakes.

Start it with ``python -m harness.tests.doubles.contributed``. Flags select the mistakes. Environment variables set the
server's address and the database.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

import psycopg

from harness.runtime import DatabaseAddress
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer

BUSY_REQUESTS = 80  # more requests than verification sends on one connection (about 50)
PANIC_CONNECTIONS = 4  # number of busy connections that triggers a panic


class ContributedServer(ReferenceServer):
    """The reference server with contributors' typical mistakes."""

    nameless = False  # omit the Server header
    panics = False  # panic now and then under load
    fails = False  # log an error and respond to plaintext with status 500
    late = False  # connect to the database for each request; respond with 503 if the connection fails
    answered = 0
    busy: ClassVar[set[int]] = set()  # numbers of the busy connections

    def headers(self, reply: Reply) -> list[tuple[str, str]]:
        fields = super().headers(reply)
        return [field for field in fields if field[0] != "Server"] if self.nameless else fields

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        self.answered += 1
        if session.requests > BUSY_REQUESTS:
            self.busy.add(session.number)
        if self.panics and len(self.busy) >= PANIC_CONNECTIONS and session.number in self.busy:
            print(f"panic in handler {self.answered}: index out of range", file=sys.stderr)
            raise ValueError("index out of range")  # makes the base class close the connection
        if self.fails and request.path == "/plaintext":
            print(f"12:00 ERROR request {self.answered}: out of frobs", file=sys.stderr, flush=True)
            return Reply(status=500, body=b"sorry")
        try:
            return super().reply(session, request)
        except psycopg.Error:
            return Reply(status=503, body=b"no database")

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        """Yield a connection from the pool, or a new one if ``late`` is set."""
        if not self.late:
            with super().connection() as connection:
                yield connection
            return
        with self.connect() as connection:
            yield connection


def database(environment: Mapping[str, str], fixed: Mapping[str, str]) -> DatabaseAddress:
    """Return the database address from environment variables. ``fixed`` imitates hard-coded values."""
    values = {**environment, **fixed}
    return DatabaseAddress(
        host=values["DBHOST"],
        port=int(values["DBPORT"]),
        name=values["DBNAME"],
        user=values["DBUSER"],
        password=values["DBPASS"],
    )


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", nargs="*", default=[])
    parser.add_argument("--nameless", action="store_true")
    parser.add_argument("--panics", action="store_true")
    parser.add_argument("--fails", action="store_true")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--ignores-sigterm", action="store_true")
    flags = parser.parse_args()
    if flags.ignores_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    fixed = dict(each.split("=", 1) for each in flags.fixed)
    server = ContributedServer(database(os.environ, fixed))
    server.nameless, server.panics, server.late = flags.nameless, flags.panics, flags.late
    server.fails = flags.fails
    server.pool_size = 0 if flags.late else server.pool_size  # type: ignore[misc]
    server.listen(os.environ["HOST"], int(os.environ["PORT"]))
    with server:
        threading.Event().wait()


if __name__ == "__main__":
    main()
