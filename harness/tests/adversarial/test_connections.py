"""Attack: clients connect to the dashboard and never complete a request."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvicorn

from harness.dashboard import server as server_module
from harness.dashboard.server import BoundedProtocol

pytestmark = pytest.mark.timeout(60)
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
ANSWER = b"HTTP/1.1 200"


async def app(_scope: object, _receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@contextlib.asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch, seconds: float) -> AsyncIterator[int]:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", seconds)
    config = uvicorn.Config(app, http=BoundedProtocol, ws="none", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield listener.getsockname()[1]
        server.should_exit = True
        await task


async def trickle(port: int, begin: bytes) -> bytes:
    """Send a request byte by byte until the server closes the connection. Return the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(begin)
    with contextlib.suppress(ConnectionError):
        while not reader.at_eof():
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(reader.read(), 0.1)
            writer.write(b"x" if begin else b"")
            await writer.drain()
    writer.close()
    return b""


@pytest.mark.parametrize(
    "begin", [b"", b"GET /", HEAD, HEAD + b"Content-Length: 100000\r\n\r\n"], ids=["nothing", "line", "head", "body"]
)
def test_slow_requests_end_the_connection(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack() -> None:
        async with serving(monkeypatch, 1.0) as port:
            await asyncio.wait_for(trickle(port, begin), 20)

    asyncio.run(attack())


def test_requests_that_arrive_are_answered_on_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> list[bytes]:
        async with serving(monkeypatch, 1.0) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            answers = []
            for _ in range(3):
                writer.write(HEAD + b"\r\n")
                answers.append((await reader.readuntil(b"\r\n\r\n"))[: len(ANSWER)])
                await asyncio.sleep(0.6)
            writer.close()
            return answers

    assert asyncio.run(ask()) == [ANSWER] * 3
