"""A pool of asyncpg connections, which are opened on demand and replaced when they are lost."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypedDict

import asyncpg
from cachetools import LRUCache

SELECT_WORLD = "SELECT id, randomnumber FROM world WHERE id = $1"
SELECT_FORTUNES = "SELECT id, message FROM fortune"
UPDATE_WORLDS = (
    "UPDATE world SET randomnumber = new.randomnumber "
    "FROM unnest($1::int[], $2::int[]) AS new (id, randomnumber) WHERE world.id = new.id"
)
CONNECTIONS = 8  # per worker, and start.sh starts a worker per CPU
PATIENCE = 3.0  # time limit in seconds for connecting, and for obtaining a connection from the pool
RETRY = 1.0  # seconds between attempts to connect


class UnavailableError(Exception):
    """The database is unreachable or a statement failed; the response is 503."""


class World(TypedDict):
    """A row of the ``world`` table, as it appears in responses."""

    id: int
    randomNumber: int


class Database:
    """A worker's connection pool, and the cache for /cached-queries."""

    def __init__(self) -> None:
        self._pool: asyncpg.Pool | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._cache: LRUCache[int, World] = LRUCache(maxsize=10_000)

    async def open(self) -> None:
        """Connect. After a failure, retry in the background, because json and plaintext need no database."""
        if not await self._connect():
            self._connecting = asyncio.create_task(self._keep_trying())

    async def close(self) -> None:
        """Close all connections immediately."""
        if self._connecting:
            self._connecting.cancel()
        if self._pool:
            self._pool.terminate()

    async def world(self, identifier: int) -> World:
        """Return one row."""
        async with self._acquired() as connection:
            return _world(await connection.fetchrow(SELECT_WORLD, identifier))

    async def worlds(self, ids: Sequence[int]) -> list[World]:
        """Read each row with a separate SELECT and Sync, in sequence, because asyncpg does not pipeline."""
        async with self._acquired() as connection:
            return [_world(await connection.fetchrow(SELECT_WORLD, identifier)) for identifier in ids]

    async def cached_worlds(self, ids: Sequence[int]) -> list[World]:
        """Return rows from the cache, and read missing rows from the database."""
        if missing := list({i for i in ids if i not in self._cache}):
            for world in await self.worlds(missing):
                self._cache[world["id"]] = world
        return [self._cache[identifier] for identifier in ids]

    async def update(self, worlds: Sequence[World]) -> None:
        """Write all rows with a single statement, which locks them in the given order."""
        async with self._acquired() as connection:
            ids = [world["id"] for world in worlds]
            await connection.execute(UPDATE_WORLDS, ids, [world["randomNumber"] for world in worlds])

    async def fortunes(self) -> list[tuple[int, str]]:
        """Return the (id, message) pairs of all stored fortunes."""
        async with self._acquired() as connection:
            return [tuple(row) for row in await connection.fetch(SELECT_FORTUNES)]

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[asyncpg.pool.PoolConnectionProxy]:
        """Yield a pooled connection, and convert database failures to UnavailableError."""
        if self._pool is None:
            raise UnavailableError("no connection to the database")
        try:
            async with self._pool.acquire(timeout=PATIENCE) as connection:
                yield connection
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise UnavailableError(f"{type(error).__name__}: {error}") from error

    async def _connect(self) -> bool:
        try:
            self._pool = await asyncpg.create_pool(
                host=os.environ.get("DBHOST") or "tfb-database",
                port=int(os.environ.get("DBPORT") or 5432),
                database=os.environ.get("DBNAME") or "hello_world",
                user=os.environ.get("DBUSER") or "benchmarkdbuser",
                password=os.environ.get("DBPASS") or "benchmarkdbpass",
                min_size=1,
                max_size=CONNECTIONS,
                timeout=PATIENCE,
                ssl=False,
                reset=_no_reset,
            )
        except (asyncpg.PostgresError, OSError, TimeoutError) as error:
            print(f"no connection to PostgreSQL: {error}", file=sys.stderr, flush=True)
            return False
        return True

    async def _keep_trying(self) -> None:
        await asyncio.sleep(RETRY)
        while not await self._connect():
            await asyncio.sleep(RETRY)


async def _no_reset(_connection: asyncpg.Connection) -> None:
    """Skip the reset of connections that return to the pool, because requests leave no session state."""


def _world(row: asyncpg.Record | None) -> World:
    if row is None:
        raise UnavailableError("no such row")
    identifier, number = row
    return {"id": identifier, "randomNumber": number}
