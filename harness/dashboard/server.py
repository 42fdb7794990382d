"""The dashboard's server: a read-only API over results/, the page, and server-sent events of a run in progress."""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.dashboard.api import Api
from harness.dashboard.build import ensure_built, source_base
from harness.dashboard.runs import PUBLISHED, Answer, Runs, Told, no_answers
from harness.errors import EnvironmentLacksError, StoreError
from harness.paths import RESULTS
from harness.records import bounded
from harness.records.reader import FILE_BYTES

logger = logging.getLogger("tfb.dashboard")

# Objects made between two looks for cycles, and how many of those make a thorough one: records have no cycles, and two
# fifths of the time that reading trials took were Python's looking through them.
COLLECT = (50_000, 20, 20)
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Adds the security headers to every answer, and refuses a Host that is a name of somebody else's.

    A page on the internet can point a name of its own at 127.0.0.1 (DNS rebinding) and read what is served there; its
    requests carry that name. Addresses, localhost and this machine's own name are answered.
    """

    def __init__(self, app: ASGIApp, bind: str) -> None:
        self.app = app
        self.names = {"localhost", bind.lower(), socket.gethostname().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((key.encode(), value.encode()) for key, value in HEADERS.items()),
                ]
            await send(message)

        if self.knows(Request(scope).headers.get("host", "")):
            await self.app(scope, receive, guarded)
        else:
            refusal = JSONResponse({"error": "unknown Host"}, status_code=421)
            await refusal(scope, receive, guarded)

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name.lower() in self.names
        return True


def create_app(
    results: Path,
    web: Path,
    *,
    bind: str = "127.0.0.1",
    files: Sequence[Path] = (),
    published: Path | None = None,
    source_base: str | None = None,
    answer: Answer = no_answers,
    told: Told = lambda _: (),
) -> Starlette:
    """The ASGI application: GET and HEAD only."""
    api = Api(Runs(results, published=published, files=files), source_base, answer, told)
    assets = {path.name: path for path in (web / "assets").iterdir()}

    html = (web / "index.html").read_bytes()

    async def page(request: Request) -> Response:
        return HTMLResponse(html, headers={"cache-control": "no-cache"})

    def asset(request: Request) -> Response:
        path = assets.get(request.path_params["name"])
        if path is None:
            return Response("not found", status_code=404)
        return FileResponse(path, headers={"cache-control": "public, max-age=31536000, immutable"})

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        reading = asyncio.create_task(api.warm())
        yield
        reading.cancel()

    return Starlette(
        routes=[
            Route("/", page),
            Route("/favicon.ico", lambda request: Response(status_code=204)),
            Route("/assets/{name}", asset),
            *api.routes(),
        ],
        middleware=[Middleware(Guard, bind=bind)],
        exception_handlers={404: not_found},
        lifespan=lifespan,
    )


def not_found(request: Request, error: Exception) -> Response:
    """The answer to any other path."""
    return JSONResponse({"error": "no such page or document"}, status_code=404)


def serve(results: Path, *, bind: str, port: int, files: Sequence[Path], answer: Answer, told: Told) -> None:
    """Serve until Ctrl-C. Raises EnvironmentLacksError when the port is taken or there is no way to build the page."""
    for file in files:
        check_file(file)
    web = ensure_built()
    app = create_app(
        results,
        web,
        bind=bind,
        files=files,
        published=RESULTS / PUBLISHED,
        source_base=source_base(),
        answer=answer,
        told=told,
    )
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bind, port))
    except OSError as error:
        listener.close()
        raise EnvironmentLacksError(
            f"cannot listen on {bind}:{port}: {error.strerror}; choose another with --port"
        ) from error
    if not is_loopback(bind):
        print(
            f"tfb: whoever reaches {bind}:{port} reads all results: there are no accounts", file=sys.stderr, flush=True
        )
    host = f"[{bind}]" if ":" in bind else bind
    print(f"dashboard: http://{host}:{listener.getsockname()[1]}/  (Ctrl-C ends it)", flush=True)
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1)
    )
    gc.freeze()
    gc.set_threshold(*COLLECT)
    try:
        asyncio.run(server.serve(sockets=[listener]))
    except KeyboardInterrupt:
        logger.info("dashboard ended")
    finally:
        listener.close()


def is_loopback(bind: str) -> bool:
    """Whether an address to listen on is of this machine alone."""
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"


def check_file(file: Path) -> None:
    """Raise StoreError for a file to open that is not there or holds no JSON."""
    try:
        bounded.parse(bounded.read(file, FILE_BYTES))
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise StoreError(f"{file}: {error}") from error
