"""``python -m harness.tests.doubles.contributed`` plays a new folder's server, with the mistakes that its flags name.

It is the reference server, listening where HOST and PORT say, on the database that its environment names.
"""

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

import psycopg

from harness.runtime import DatabaseAddress
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer

BUSY_REQUESTS = 80  # a connection with more requests belongs to a load: verification sends about 50
PANIC_CONNECTIONS = 4  # number of busy connections before a panic


class ContributedServer(ReferenceServer):
    """The reference server on the port of the contract."""

    nameless = False  # without a Server header
    panics = False  # under load, now and then
    fails = False  # plaintext with 500, after an error in the log
    late = False  # connects when it is asked for rows, and answers 503 where that fails
    answered = 0
    busy: ClassVar[set[int]] = set()  # numbers of busy connections

    def listen(self, host: str, port: int) -> None:
        """Listen there instead of on a port of its own."""
        self._listener.close()
        self._listener = socket.create_server((host, port), backlog=4096)

    def headers(self, reply: Reply) -> list[tuple[str, str]]:
        """Without the name of the server, where that is the mistake."""
        found = super().headers(reply)
        return [field for field in found if field[0] != "Server"] if self.nameless else found

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        """An answer, or a panic."""
        self.answered += 1
        if session.requests > BUSY_REQUESTS:
            self.busy.add(session.number)
        if self.panics and len(self.busy) >= PANIC_CONNECTIONS and session.number in self.busy:
            print(f"panic in handler {self.answered}: index out of range", file=sys.stderr)
            raise ValueError("index out of range")  # which closes the connection
        if self.fails and request.path == "/plaintext":
            print(f"12:00 ERROR request {self.answered}: out of frobs", file=sys.stderr, flush=True)
            return Reply(status=500, body=b"sorry")
        try:
            return super().reply(session, request)
        except psycopg.Error:
            return Reply(status=503, body=b"no database")

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        """One of the pool, or a new one."""
        if not self.late:
            with super().connection() as connection:
                yield connection
            return
        with self.connect() as connection:
            yield connection


def database(environment: Mapping[str, str], fixed: Mapping[str, str]) -> DatabaseAddress:
    """What the environment names, but for what is fixed in the program."""
    known = {**environment, **fixed}
    return DatabaseAddress(
        host=known["DBHOST"],
        port=int(known["DBPORT"]),
        name=known["DBNAME"],
        user=known["DBUSER"],
        password=known["DBPASS"],
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
    given = parser.parse_args()
    if given.ignores_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    fixed = dict(each.split("=", 1) for each in given.fixed)
    server = ContributedServer(database(os.environ, fixed))
    server.nameless, server.panics, server.late = given.nameless, given.panics, given.late
    server.fails = given.fails
    server.pool_size = 0 if given.late else server.pool_size  # type: ignore[misc]
    server.listen(os.environ["HOST"], int(os.environ["PORT"]))
    with server:
        threading.Event().wait()


if __name__ == "__main__":
    main()
