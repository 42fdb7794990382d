"""Owns the dashboard's HTTP connections: one whose request does not arrive is closed."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0  # that a request has to arrive, with its body; uvicorn itself waits for ever


class BoundedProtocol(H11Protocol):
    """A connection that uvicorn serves, and that ends when a request takes too long to arrive."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request. A part does not extend the time of the request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait for the rest of a request, if a part of it is missing."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
