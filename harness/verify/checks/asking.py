"""Sends the requests of verification as the load generator would, and records what comes of each."""

import dataclasses
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import TestType
from harness.runtime import DatabaseAddress, Endpoint, Server
from harness.verify import wire
from harness.verify.checks.evidence import Exchange, QueryVariant
from harness.verify.wire import Connection, Response, WireError

KEPT_BYTES = 16 << 20  # of the answers of one client: 500 rows are 20 kB, and some hundred answers are asked for
GIVE_UP_AFTER = 3  # failed requests of one connection
ERRORS_IN_A_ROW = 12  # responses with a 5xx status: more than malformed parameters alone can cause


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What the gathering of a test type of its own kind is given: see ``registry.GATHERERS``."""

    server: Server
    test_type: TestType
    patience: float  # seconds to wait for bytes
    thorough: bool
    database: DatabaseAddress | None = None  # where the test type reads it

    @property
    def url(self) -> str:
        """As declared: ends in "=" or in a number that is replaced."""
        return self.server.implementation.urls[self.test_type.name]

    def client(self, patience: float | None = None) -> "Client":
        """Asks with numbers of one's own: what a case appends; ``patience`` in seconds where the usual is too short."""
        url = self.url.rstrip("0123456789")
        return Client(self.server.endpoint, self.test_type, url, self.patience if patience is None else patience)

    def plain(self) -> "Client":
        """Asks as the load does."""
        return Client(self.server.endpoint, self.test_type, self.test_type.target(self.url), self.patience)


def always_fails(exchanges: Sequence[Exchange]) -> bool:
    """Return whether all responses so far have a 5xx status: further requests would only take time.

    A declared request may expect such a status, so it does not count.
    """
    return all(each.case.asked is None and each.response and each.response.status >= 500 for each in exchanges)


class Client:
    """Asks a declared URL over keep-alive connections of its own, one request at a time on each."""

    def __init__(self, endpoint: Endpoint, test_type: TestType, url: str, patience: float = wire.PATIENCE) -> None:
        self.endpoint = endpoint
        self.url = url
        self.patience = patience
        self._accept = test_type.accept
        self._kept = 0  # bytes of answers

    def asked(self, case: QueryVariant) -> PreparedRequest:
        """What is sent for a case, with wrk's headers; the path alone for the absent parameter."""
        target = self.url.partition("?")[0] if case.name == "absent" else f"{self.url}{case.suffix}"
        return case.asked or PreparedRequest(target=target, headers=(("Accept", self._accept),))

    def ask(self, cases: Iterable[QueryVariant], connection: int = 0) -> list[Exchange]:
        """Send one request after the other on a connection, and on a new connection where the server closed it.

        Stop where the server does not respond, or responds with nothing but 5xx statuses.
        """
        exchanges: list[Exchange] = []
        with Lane(self, connection) as lane:
            for case in cases:
                exchanges.append(lane.send(case))
                failures = sum(exchange.response is None for exchange in exchanges)
                if exchanges[-1].error_kind == "silent" or failures >= GIVE_UP_AFTER:
                    break
                if len(exchanges) >= ERRORS_IN_A_ROW and always_fails(exchanges):
                    break
        return exchanges

    def crowd(self, cases: Sequence[QueryVariant], connections: int) -> list[Exchange]:
        """The cases dealt out to several connections at once."""
        with ThreadPoolExecutor(connections) as pool:
            parts = pool.map(lambda place: self.ask(cases[place::connections], place), range(connections))
            return [exchange for part in parts for exchange in part]

    def kept(self, response: Response) -> Response:
        """An answer of any of its connections; raises WireError where there is no room for more of them."""
        self._kept += response.size
        if self._kept > KEPT_BYTES:
            raise WireError("grammar", f"this answer and those before have more than {KEPT_BYTES >> 20} MiB")
        return response


class Lane:
    """One keep-alive connection of a client, a new one where the server has closed it."""

    def __init__(self, client: Client, connection: int = 0) -> None:
        self._client = client
        self._connection = connection
        self._line: Connection | None = None
        self._requests = 0  # on this connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def send(self, case: QueryVariant) -> Exchange:
        """One request and its answer.

        A server may close an idle connection while the next request is on its way: that one is sent again, unless it
        changes something, since what was not answered may have been carried out all the same.
        """
        earlier = self._requests
        reconnected = self._line is not None and self._line.ended(0)
        if reconnected:
            self._close()
        asked = self._client.asked(case)
        again = self._line is not None and asked.method in ("GET", "HEAD")
        exchange = self._once(case, asked)
        if exchange.error_kind == "closed" and again:
            reconnected, exchange = True, self._once(case, asked)
        if self._line is not None:
            # Whatever was not asked for is there already: it comes with the response, in the same segment.
            stray = self._line.stray()
            closed = exchange.closed or self._line.ended(0)
            requests = earlier if reconnected else self._requests
            exchange = dataclasses.replace(
                exchange, stray=stray, closed=closed, reconnected=reconnected, requests=requests
            )
            if stray or closed:
                self._close()
        return exchange

    def _once(self, case: QueryVariant, asked: PreparedRequest) -> Exchange:
        """Over the connection that there is, or a new one; it is left where no answer came."""
        client, sent_at = self._client, time.time()
        response: Response | None = None
        failed: WireError | None = None
        try:
            if self._line is None:
                self._line, self._requests = Connection(client.endpoint, client.patience), 0
            self._requests += 1
            self._line.send(asked.head(client.endpoint.host) + asked.body)
            response = client.kept(self._line.receive(asked.method))
        except WireError as error:
            failed = error
            self._close()
        return Exchange(
            case=case,
            target=asked.target,
            sent_at=sent_at,
            received_at=time.time(),
            connection=self._connection,
            response=response,
            error=str(failed) if failed else None,
            error_kind=failed.kind if failed else None,
            closed=response is not None and (response.get("connection") or "").lower() == "close",
        )

    def _close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
