"""The Starlette application: handlers, routes and the Server header."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import draws
import orjson
from database import Database, UnavailableError
from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.endpoints import WebSocketEndpoint
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket
from upstream import Upstream, UpstreamError

UPSTREAM_URL = os.environ.get("UPSTREAM_URL")
DATASET = os.environ.get("DATASET")
STATIC_DIR = os.environ.get("STATIC_DIR")

data_set = orjson.loads(Path(DATASET).read_bytes()) if DATASET else None
database = Database()
upstream = Upstream(UPSTREAM_URL) if UPSTREAM_URL else None
fortunes_page = Environment(loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True).get_template(
    "fortunes.html"
)


class JSON(Response):
    """A JSON response encoded by orjson."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Encode the body."""
        return orjson.dumps(content)


async def json(_request: Request) -> Response:
    """Return a JSON message, which is serialized for each request."""
    return JSON({"message": "Hello, World!"})


async def plaintext(_request: Request) -> Response:
    """Return a plain-text body of thirteen bytes."""
    return PlainTextResponse("Hello, World!")


async def db(_request: Request) -> Response:
    """Return a random row."""
    return JSON(await database.world(draws.row()))


async def queries(request: Request) -> Response:
    """Return random rows, each read with a separate SELECT."""
    count = draws.query_count(first(request, "queries"))
    return JSON(await database.worlds([draws.row() for _ in range(count)]))


async def cached_queries(request: Request) -> Response:
    """Return random rows from the cache."""
    count = draws.query_count(first(request, "count"))
    return JSON(await database.cached_worlds([draws.row() for _ in range(count)]))


async def updates(request: Request) -> Response:
    """Read random rows, give each a new number, and write them back."""
    worlds = await database.worlds(draws.distinct_rows(draws.query_count(first(request, "queries"))))
    for world in worlds:
        world["randomNumber"] = draws.number_other_than(world["randomNumber"])
    await database.update(worlds)
    return JSON(worlds)


async def fortunes(_request: Request) -> Response:
    """Return a page with all fortunes and an additional one."""
    rows = [*await database.fortunes(), (0, "Additional fortune added at request time.")]
    rows.sort(key=lambda row: row[1])
    return HTMLResponse(fortunes_page.render(fortunes=rows))


async def delay(request: Request) -> Response:
    """Respond after the requested delay without blocking other requests."""
    await asyncio.sleep(draws.clamped(first(request, "ms"), 0, 1000, 0) / 1000)
    return PlainTextResponse("Hello, World!")


async def items(request: Request) -> Response:
    """Return the first ``count`` items of the data set, each with ``total`` = price x quantity x m."""
    if data_set is None:
        return Response(status_code=503)
    count = draws.clamped(request.path_params["count"], 0, len(data_set), 0)
    multiplier = draws.clamped(first(request, "m"), 1, 1_000_000, 1)
    chosen = [{**item, "total": item["price"] * item["quantity"] * multiplier} for item in data_set[:count]]
    return JSON({"items": chosen, "count": count})


async def upload(request: Request) -> Response:
    """Discard the request body, and respond with its length in bytes."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
    return PlainTextResponse(f"{size}")


class Echo(WebSocketEndpoint):
    """A WebSocket endpoint that echoes each message. Granian itself replies to pings and close frames."""

    async def on_receive(self, websocket: WebSocket, data: str | bytes) -> None:
        """Send the message back unchanged."""
        if isinstance(data, str):
            await websocket.send_text(data)
        else:
            await websocket.send_bytes(data)


async def fan_out(request: Request) -> Response:
    """Make concurrent calls to the upstream and return the sum of the results."""
    if upstream is None:
        return Response(status_code=503)
    calls = draws.clamped(first(request, "calls"), 1, 100, 1)
    try:
        total = await upstream.sum(calls)
    except UpstreamError as error:
        print(f"upstream call failed: {error}", file=sys.stderr, flush=True)
        return Response(status_code=502)
    return JSON({"calls": calls, "sum": total})


def first(request: Request, name: str) -> str | None:
    """Return the first value of a query parameter, or None if it is missing."""
    return next(iter(request.query_params.getlist(name)), None)


async def unavailable(request: Request, error: Exception) -> Response:
    """Respond with 503 to database failures, and log at most one failure per second."""
    state, now = request.app.state, time.monotonic()
    if now >= getattr(state, "quiet_until", 0.0):
        state.quiet_until = now + 1.0
        print(f"{request.url.path}: {error}", file=sys.stderr, flush=True)
    return Response(status_code=503)


class ServerHeader:
    """Middleware that replaces Granian's Server header with the framework's name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the header to the response."""

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"server", b"Starlette"))
            await send(message)

        await self._app(scope, receive, send_named if scope["type"] == "http" else send)


@asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncIterator[None]:
    """Open the application's connections at startup, and close them at shutdown."""
    await database.open()
    yield
    if upstream:
        await upstream.close()
    await database.close()


app = Starlette(
    routes=[
        Route("/json", json),
        Route("/plaintext", plaintext),
        Route("/db", db),
        Route("/queries", queries),
        Route("/cached-queries", cached_queries),
        Route("/updates", updates),
        Route("/fortunes", fortunes),
        Route("/delay", delay),
        Route("/fan-out", fan_out),
        Route("/json/{count}", items, middleware=[Middleware(GZipMiddleware)]),
        Route("/upload", upload, methods=["POST"]),
        WebSocketRoute("/ws", Echo),
        *([Mount("/static", StaticFiles(directory=STATIC_DIR))] if STATIC_DIR else []),
    ],
    exception_handlers={UnavailableError: unavailable},
    middleware=[Middleware(ServerHeader)],
    lifespan=lifespan,
)
