"""The FastAPI application: models, routes and error handlers."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import draws
from database import Database, UnavailableError
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from fastapi.templating import Jinja2Templates
from pydantic import BaseModel, BeforeValidator
from upstream import Upstream, UpstreamError

UPSTREAM_URL = os.environ.get("UPSTREAM_URL")

# The benchmark's rules require a normal response to invalid values, to which FastAPI itself would respond with 422.
# Numbers out of range are clamped, and other text becomes the fallback.
QueryCount = Annotated[int, BeforeValidator(draws.query_count)]
CallCount = Annotated[int, BeforeValidator(partial(draws.clamped, low=1, high=100, fallback=1))]
Milliseconds = Annotated[int, BeforeValidator(partial(draws.clamped, low=0, high=1000, fallback=0))]

database = Database()
upstream = Upstream(UPSTREAM_URL) if UPSTREAM_URL else None
templates = Jinja2Templates(directory=Path(__file__).parent / "templates")


class Message(BaseModel):
    """The response body of /json."""

    message: str


class World(BaseModel):
    """A row of the ``world`` table."""

    id: int
    randomNumber: int


class FanOut(BaseModel):
    """The response body of /fan-out."""

    calls: int
    sum: int


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Open the application's connections at startup, and close them at shutdown."""
    await database.open()
    yield
    if upstream:
        await upstream.close()
    await database.close()


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.exception_handler(UnavailableError)
async def unavailable(request: Request, error: Exception) -> Response:
    """Respond with 503 to database failures, and log at most one failure per second."""
    state, now = request.app.state, time.monotonic()
    if now >= getattr(state, "quiet_until", 0.0):
        state.quiet_until = now + 1.0
        print(f"{request.url.path}: {error}", file=sys.stderr, flush=True)
    return Response(status_code=503)


@app.get("/json")
async def json() -> Message:
    """Return a JSON message, which is serialized for each request."""
    return Message(message="Hello, World!")


@app.get("/plaintext", response_class=PlainTextResponse)
async def plaintext() -> PlainTextResponse:
    """Return a plain-text body of thirteen bytes."""
    return PlainTextResponse("Hello, World!")


@app.get("/db")
async def db() -> World:
    """Return a random row."""
    return await database.world(draws.row())


@app.get("/queries")
async def read(queries: QueryCount = 1) -> list[World]:
    """Return random rows, each read with a separate SELECT."""
    return await database.worlds([draws.row() for _ in range(queries)])


@app.get("/cached-queries")
async def cached_queries(count: QueryCount = 1) -> list[World]:
    """Return random rows from the cache."""
    return await database.cached_worlds([draws.row() for _ in range(count)])


@app.get("/updates")
async def updates(queries: QueryCount = 1) -> list[World]:
    """Read random rows, give each a new number, and write them back."""
    worlds = await database.worlds(draws.distinct_rows(queries))
    for world in worlds:
        world["randomNumber"] = draws.number_other_than(world["randomNumber"])
    await database.update(worlds)
    return worlds


@app.get("/fortunes", response_class=HTMLResponse)
async def fortunes(request: Request) -> HTMLResponse:
    """Return a page with all fortunes and an additional one."""
    rows = [*await database.fortunes(), (0, "Additional fortune added at request time.")]
    rows.sort(key=lambda row: row[1])
    return templates.TemplateResponse(request, "fortunes.html", {"fortunes": rows})


@app.get("/delay", response_class=PlainTextResponse)
async def delay(ms: Milliseconds = 0) -> PlainTextResponse:
    """Respond after the requested delay without blocking other requests."""
    await asyncio.sleep(ms / 1000)
    return PlainTextResponse("Hello, World!")


@app.get("/fan-out")
async def fan_out(calls: CallCount = 1) -> FanOut:
    """Make concurrent calls to the upstream and return the sum of the results."""
    if upstream is None:
        raise HTTPException(503)
    try:
        return FanOut(calls=calls, sum=await upstream.sum(calls))
    except UpstreamError as error:
        print(f"upstream call failed: {error}", file=sys.stderr, flush=True)
        raise HTTPException(502) from error
