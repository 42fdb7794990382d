"""A small service with a catalogue of items, and the requests that its tfb.toml could declare."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from harness.plan.requests import Request as DeclaredRequest
from harness.plan.testtypes import TestType, declared_test_types
from harness.runtime import Server
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer

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


def right(request: ReceivedRequest) -> Reply:
    reply = partial(Reply, content_type=JSON)
    if request.path == "/version":
        return Reply(content_type=PLAIN, body=b"1.0\n")
    if request.method == "POST" and request.headers.get("authorization") != "Bearer t":
        return reply(status=401)
    if request.method == "POST":
        return reply(status=201, body=json.dumps({**json.loads(request.body), "id": 7}).encode())
    number = int(request.path.rpartition("/")[2])
    if number > 100:
        return reply(status=404, body=b'{"error": "no such item"}')
    if request.method == "DELETE":
        return reply(status=204)
    return reply(body=json.dumps({"id": number, "price": number / 2, "tags": ["a", "b"]}).encode())


def unchanged(_: ReceivedRequest, reply: Reply) -> Reply:
    return reply


class ServiceDouble(ReferenceServer):
    """The service's server. ``wrong`` falsifies replies: always, or with ``when_busy`` only under load."""

    def __init__(
        self,
        wrong: Callable[[ReceivedRequest, Reply], Reply] = unchanged,
        requests: tuple[Mapping[str, Any], ...] = REQUESTS,
        *,
        when_busy: bool = False,
    ) -> None:
        super().__init__()
        self.wrong, self.when_busy = wrong, when_busy
        self.bodies: list[bytes] = []  # bodies of the requests
        asked = [DeclaredRequest.model_validate(request) for request in requests]
        self.test_types: Mapping[str, TestType] = declared_test_types(asked, Path(), seed=1)

    @property
    def server(self) -> Server:
        urls = {name: kind.requests[0].target for name, kind in self.test_types.items()}
        known = SimpleNamespace(urls=urls, test_types=self.test_types, name="service", rules="tfb")
        return cast("Server", SimpleNamespace(implementation=known, endpoint=self.endpoint, upstream=None))

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        if request.body:
            self.bodies.append(request.body)
        wrong = self.wrong if not self.when_busy or self.open_connections > 12 else unchanged
        return wrong(request, right(request))

    def headers(self, reply: Reply) -> list[tuple[str, str]]:
        """Let the reply's fields override the server's. Omit ``Connection: close``."""
        return list(dict(super().headers(replace(reply, close=False))).items())
