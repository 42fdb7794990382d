"""Sends the verification requests with the load generator's headers, and records the exchanges."""

import dataclasses
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import TestType
from harness.runtime import DatabaseAddress, Endpoint, Server, endpoint_of
from harness.verify import wire
from harness.verify.checks.evidence import Exchange, QueryVariant
from harness.verify.wire import Connection, Response, WireError

# Maximum total size of the responses that a client keeps in memory. A response with 500 rows is about 20 kB, and a
# client receives hundreds of responses.
MAX_RETAINED_BYTES = 16 << 20
CONCURRENT_CONNECTIONS = 8  # number of connections for concurrent requests
MAX_FAILURES = 3  # ``send_in_order`` stops after this many requests without a response
# Stop after this many responses if all of them have 5xx statuses, because more requests are unlikely to succeed.
MAX_SERVER_ERRORS = 12


@dataclass(frozen=True, kw_only=True)
class VerificationTask:
    """The parameters of the functions in ``registry.GATHERERS``, which gather a test type's evidence."""

    server: Server
    test_type: TestType
    timeout: float  # seconds to wait for a response
    thorough: bool
    database: DatabaseAddress | None = None  # None if the test type does not use the database

    @property
    def url(self) -> str:
        """Return the URL that the implementation declares for the test type."""
        return self.server.implementation.urls[self.test_type.name]

    def variant_client(self, timeout: float | None = None) -> "Client":
        """Return a client that replaces the number at the end of the URL with the suffix of a variant."""
        url = self.url.rstrip("0123456789")
        endpoint = endpoint_of(self.server, self.test_type)
        return Client(endpoint, self.test_type, url, self.timeout if timeout is None else timeout)

    def load_client(self) -> "Client":
        """Return a client that sends the same requests as a load."""
        endpoint = endpoint_of(self.server, self.test_type)
        return Client(endpoint, self.test_type, self.test_type.target(self.url), self.timeout)


def always_fails(exchanges: Sequence[Exchange]) -> bool:
    """Return whether all responses have a 5xx status. Return False for declared requests, which may expect 5xx."""
    return all(
        exchange.case.declared is None and exchange.response and exchange.response.status >= 500
        for exchange in exchanges
    )


class Client:
    """A client that sends requests to a declared URL over keep-alive connections, sequentially on each connection."""

    def __init__(
        self, endpoint: Endpoint, test_type: TestType, url: str, timeout: float = wire.TIMEOUT_SECONDS
    ) -> None:
        self.endpoint = endpoint
        self.url = url
        self.timeout = timeout
        self._accept = test_type.accept
        self.is_service = bool(test_type.requests)
        self._retained_bytes = 0

    def prepare(self, case: QueryVariant) -> PreparedRequest:
        """Return the request for a variant. If the variant omits the parameter, the URL has no query string."""
        target = self.url.partition("?")[0] if case.name == "absent" else f"{self.url}{case.suffix}"
        return case.declared or case.drawn or PreparedRequest(target=target, headers=(("Accept", self._accept),))

    def send_in_order(self, cases: Iterable[QueryVariant], connection: int = 0) -> list[Exchange]:
        """Send requests sequentially. Reconnect if necessary.

        Stop early if the server does not respond, if it responds only with 5xx statuses, or if the memory limit is
        reached.
        """
        exchanges: list[Exchange] = []
        with ReconnectingConnection(self, connection) as line:
            for case in cases:
                if self.is_full:
                    break
                exchanges.append(line.send(case))
                failures = sum(exchange.response is None for exchange in exchanges)
                if exchanges[-1].error_kind == "silent" or failures >= MAX_FAILURES:
                    break
                if len(exchanges) >= MAX_SERVER_ERRORS and always_fails(exchanges):
                    break
        return exchanges

    def send_concurrently(self, cases: Sequence[QueryVariant], connections: int) -> list[Exchange]:
        """Distribute the requests over several connections, which send their requests at the same time."""
        with ThreadPoolExecutor(connections) as pool:
            parts = pool.map(lambda number: self.send_in_order(cases[number::connections], number), range(connections))
            return [exchange for part in parts for exchange in part]

    @property
    def is_full(self) -> bool:
        """Return whether a service's responses have reached the memory limit. The client then stops."""
        return self.is_service and self._retained_bytes >= MAX_RETAINED_BYTES

    def retain(self, response: Response) -> Response:
        """Count a response towards the memory limit, and return the response.

        Raises WireError above the limit, except for services.
        """
        self._retained_bytes += response.size
        if self._retained_bytes > MAX_RETAINED_BYTES and not self.is_service:
            raise WireError(
                "grammar",
                f"the responses exceed {MAX_RETAINED_BYTES >> 20} MiB in total. Return smaller responses",
            )
        return response


class ReconnectingConnection:
    """A client's keep-alive connection. It reconnects after the server has closed the connection."""

    def __init__(self, client: Client, number: int = 0) -> None:
        self._client = client
        self._number = number
        self._connection: Connection | None = None
        self._requests = 0  # number of requests on the current connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def send(self, case: QueryVariant) -> Exchange:
        """Send a request and return the exchange.

        A server may close an idle connection just before a request arrives. A GET or HEAD request is then sent again.
        Other requests are not repeated, because the server may have processed them.
        """
        earlier_requests = self._requests
        reconnected = self._connection is not None and self._connection.wait_for_close(0)
        if reconnected:
            self._close()
        request = self._client.prepare(case)
        repeatable = self._connection is not None and request.method in ("GET", "HEAD")
        exchange = self._send_once(case, request)
        if exchange.error_kind == "closed" and repeatable:
            reconnected, exchange = True, self._send_once(case, request)
        if self._connection is not None:
            # Read immediately, because unsolicited bytes arrive in the same segment as the response.
            unsolicited = self._connection.read_unsolicited()
            closed = exchange.closed or self._connection.wait_for_close(0)
            exchange = dataclasses.replace(
                exchange,
                unsolicited=unsolicited,
                closed=closed,
                reconnected=reconnected,
                requests_on_connection=earlier_requests if reconnected else self._requests,
            )
            if unsolicited or closed:
                self._close()
        return exchange

    def _send_once(self, case: QueryVariant, request: PreparedRequest) -> Exchange:
        """Send a request; connect first if necessary. Close the connection if there is no response."""
        client, sent_at = self._client, time.time()
        response: Response | None = None
        failure: WireError | None = None
        try:
            if self._connection is None:
                limit = wire.MAX_SERVICE_BODY_BYTES if client.is_service else wire.MAX_BODY_BYTES
                self._connection = Connection(client.endpoint, client.timeout, max_body_bytes=limit)
                self._requests = 0
            self._requests += 1
            self._connection.send(request.head(client.endpoint.authority) + request.body)
            response = client.retain(self._connection.receive(request.method))
        except WireError as error:
            failure = error
            self._close()
        return Exchange(
            case=case,
            target=request.target,
            sent_at=sent_at,
            received_at=time.time(),
            connection=self._number,
            response=response,
            error=str(failure) if failure else None,
            error_kind=failure.kind if failure else None,
            closed=response is not None and (response.get("connection") or "").lower() == "close",
        )

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
