"""Serves the dashboard: the web page, and a read-only API for results/. Closes connections of slow clients."""

import asyncio
import ipaddress
import logging
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from harness.dashboard.api import Api
from harness.dashboard.build import ensure_built
from harness.dashboard.results_folder import ResultsFolder
from harness.errors import EnvironmentLacksError
from harness.paths import RESULTS
from harness.records.run_folders import ROUNDS

REQUEST_SECONDS = 10.0  # time limit for receiving a complete request; uvicorn has no such limit


class BoundedProtocol(H11Protocol):
    """A uvicorn HTTP connection that is closed if a request takes too long to arrive."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Process received bytes. The timeout of an incomplete request keeps running."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Run the timeout while a request is incomplete. Cancel it when the request is complete."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


logger = logging.getLogger("tfb.dashboard")

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


def is_own_host(host: str, bind: str) -> bool:
    """Return whether a Host header names this server: any IP address, localhost, ``bind`` or this machine's name.

    Rejecting other names prevents DNS rebinding. In this attack, a website points a host name at 127.0.0.1. The browser
    then lets the website read the responses.
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower() in {"localhost", bind.lower(), socket.gethostname().lower()}
    return True


def create_app(api: Api, web: Path, *, bind: str = "127.0.0.1") -> Starlette:
    """Return the ASGI application, which accepts only GET and HEAD."""

    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        """Add security headers to each response and reject requests from other websites."""
        if not is_own_host(request.headers.get("host", ""), bind):
            response: Response = JSONResponse({"error": "unknown Host"}, status_code=421)
        elif request.headers.get("sec-fetch-site") == "cross-site" and request.url.path.startswith("/api/"):
            response = JSONResponse({"error": "cross-site requests are not allowed"}, status_code=403)
        else:
            response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    return Starlette(
        routes=[
            Route(
                "/", lambda _: HTMLResponse((web / "index.html").read_bytes(), headers={"cache-control": "no-cache"})
            ),
            Route("/favicon.ico", lambda request: Response(status_code=204)),
            Mount("/assets", StaticFiles(directory=web / "assets")),
            *api.routes(),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard), Middleware(GZipMiddleware, compresslevel=5)],
        exception_handlers={404: lambda *_: JSONResponse({"error": "no such page or document"}, status_code=404)},
    )


def serve(results: Path, *, bind: str, port: int) -> None:
    """Serve the dashboard until Ctrl-C is pressed.

    Raises EnvironmentLacksError if the port is not available, or if the page cannot be built because neither Node.js
    nor Docker is available.
    """
    web = ensure_built()
    api = Api(ResultsFolder(results, rounds=RESULTS / ROUNDS))
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bind, port))
    except OSError as error:
        listener.close()
        raise EnvironmentLacksError(
            f"cannot listen on {bind}:{port}: {error.strerror}; choose a different port with --port"
        ) from error
    if bind not in ("127.0.0.1", "::1", "localhost"):
        print(
            f"tfb: warning: anyone who can reach {bind}:{port} can read all results, because there is no login",
            file=sys.stderr,
        )
    host = f"[{bind}]" if ":" in bind else bind
    print(f"dashboard: http://{host}:{listener.getsockname()[1]}/  (press Ctrl-C to stop)", flush=True)
    threading.Thread(target=api.warm, daemon=True).start()
    config = uvicorn.Config(
        create_app(api, web, bind=bind),
        log_level="warning",
        access_log=False,
        server_header=False,
        http=BoundedProtocol,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    try:
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
    except KeyboardInterrupt:
        logger.info("dashboard stopped")
    finally:
        listener.close()
