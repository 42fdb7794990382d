"""A client for the upstream of /fan-out."""

import asyncio
import os

import httpx

# All implementations open at most 256 connections to the upstream. The workers share this number equally.
CONNECTIONS = 256
WORKERS = int(os.environ.get("WEB_CONCURRENCY") or 1)  # start.sh sets the variable
CONNECTIONS_PER_WORKER = max(CONNECTIONS // WORKERS, 1)
TIMEOUT = 10.0  # seconds


class UpstreamError(Exception):
    """A call failed; the response is 502."""


class Upstream:
    """A worker's connections to the upstream, which are opened on demand."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx.AsyncClient(
            timeout=TIMEOUT,
            trust_env=False,
            limits=httpx.Limits(
                max_connections=CONNECTIONS_PER_WORKER, max_keepalive_connections=CONNECTIONS_PER_WORKER
            ),
        )
        # Calls wait here for a connection. In httpx's pool, waiting calls would time out and slow down all others.
        self._slots = asyncio.Semaphore(CONNECTIONS_PER_WORKER)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def sum(self, calls: int) -> int:
        """Make the calls concurrently and return the sum of the results."""
        try:
            return sum(await asyncio.gather(*(self._number() for _ in range(calls))))
        except (httpx.HTTPError, ValueError) as error:
            raise UpstreamError(f"{type(error).__name__}: {error}") from error

    async def _number(self) -> int:
        async with self._slots:
            response = await self._client.get(self._url)
        return int(response.raise_for_status().text)
