"""A small service of one's own, a catalogue of items, with what it declares of itself; ``wrong`` makes it a bad one."""

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

from harness.plan.requests import Request
from harness.plan.testtypes import TestType, declared
from harness.runtime import Endpoint, Server

SCHEMA = {
    "type": "object",
    "required": ["id", "price"],
    "properties": {"id": {"type": "integer"}, "price": {"type": "number", "minimum": 0}},
}
KNOWN, UNKNOWN = {"id": {"range": [1, 100]}}, {"id": {"range": [101, 200]}}
JSON, PLAIN = "application/json", "text/plain; charset=utf-8"
REQUESTS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "item",
        "path": "/items/{id}",
        "values": KNOWN,
        "weight": 5,
        "expect": {"content_type": JSON, "json": {"id": "{id}", "tags": ["a", "b"]}, "json_schema": SCHEMA},
    },
    {"name": "missing", "path": "/items/{id}", "values": UNKNOWN, "expect": {"status": 404}},
    {"name": "head", "method": "HEAD", "path": "/items/{id}", "values": KNOWN, "expect": {"size": [0, 0]}},
    {"name": "delete", "method": "DELETE", "path": "/items/{id}", "values": KNOWN, "expect": {"status": 204}},
    {
        "name": "create",
        "method": "POST",
        "path": "/items",
        "headers": {"Authorization": "Bearer {token}"},
        "json": {"name": "{name}", "count": "{count}"},
        "values": {"name": {"list": ["pen", "ink äöü"]}, "count": {"range": [1, 9]}, "token": {"list": ["t"]}},
        "expect": {"status": 201, "json": {"name": "{name}", "count": "{count}"}},
    },
    {"name": "version", "path": "/version", "expect": {"body": "1.0\n", "content_type": PLAIN, "size": [4, 4]}},
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What it says; ``promised`` is the Content-Length where that is another than the body's."""

    status: int = 200
    kind: str = JSON
    body: bytes = b""
    promised: int | None = None
    coding: str | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request that came; ``busy`` while more connections are open than verification ever opens."""

    method: str
    path: str
    busy: bool


def right(call: Call, body: bytes, *, authorized: bool) -> Answer:
    if call.path == "/version":
        return Answer(kind=PLAIN, body=b"1.0\n")
    if call.method == "POST" and not authorized:
        return Answer(status=401)
    if call.method == "POST":
        return Answer(status=201, body=json.dumps({**json.loads(body), "id": 7}).encode())
    number = int(call.path.rpartition("/")[2])
    if number > 100:
        return Answer(status=404, body=b'{"error": "no such item"}')
    if call.method == "DELETE":
        return Answer(status=204)
    return Answer(body=json.dumps({"id": number, "price": number / 2, "tags": ["a", "b"]}).encode())


def unchanged(_: Call, answer: Answer) -> Answer:
    return answer


@dataclass
class Service:
    wrong: Callable[[Call, Answer], Answer] = unchanged
    requests: tuple[Mapping[str, Any], ...] = REQUESTS
    came: list[bytes] = field(default_factory=list)  # bodies of requests
    open: int = 0

    def __post_init__(self) -> None:
        """Listen; the test types are what it declares."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.endpoint = Endpoint(host="127.0.0.1", port=self._http.server_port)
        asked = [Request.model_validate(request) for request in self.requests]
        self.test_types: Mapping[str, TestType] = declared(asked, Path(), seed=1)

    @property
    def server(self) -> Server:
        urls = {name: kind.requests[0].target for name, kind in self.test_types.items()}
        known = SimpleNamespace(urls=urls, test_types=self.test_types, name="service", rules="tfb")
        return cast("Server", SimpleNamespace(implementation=known, endpoint=self.endpoint, upstream=None))

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def _handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # one write an answer

        def setup(self) -> None:
            super().setup()
            service.open += 1

        def finish(self) -> None:
            service.open -= 1
            super().finish()

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if body:
                service.came.append(body)
            call = Call(method=self.command, path=re.sub(r"\?.*", "", self.path), busy=service.open > 12)
            made = service.wrong(call, right(call, body, authorized=self.headers.get("Authorization") == "Bearer t"))
            self.send_response(made.status)
            self.send_header("Content-Type", made.kind)
            if made.coding:
                self.send_header("Content-Encoding", made.coding)
            if made.status != 204:
                self.send_header("Content-Length", str(len(made.body) if made.promised is None else made.promised))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(made.body)
            self.wfile.flush()
            self.close_connection = made.promised is not None

        do_GET = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler
