"""Closes HTTP connections if a request does not arrive in time."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0  # time limit for receiving a complete request, which uvicorn does not limit


class BoundedProtocol(H11Protocol):
    """An HTTP connection of uvicorn that is closed if a request takes too long to arrive."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Process received bytes. They do not extend the timeout of an incomplete request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start the timeout if a request is incomplete. Otherwise cancel it."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
