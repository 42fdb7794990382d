"""The reference server with the test types of the group ``protocols``."""

import contextlib
import gzip
import json
import re
import socket
import ssl
import threading
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, ClassVar, Self, cast

from harness.plan.implementation import Implementation
from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime import DatabaseAddress, Server
from harness.runtime.inputs import ServerInputs, prepare_inputs
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import URLS, ReferenceServer

PAYLOAD_URLS = {
    "json-items": "/json/",
    "json-compressed": "/json/",
    "json-tls": "/json/",
    "short-lived": "/plaintext",
}
ITEMS_PATH = re.compile(r"/json/(\d{1,2})\Z")

JsonObject = dict[str, Any]


class PayloadServer(ReferenceServer):
    """A server for the group ``protocols``. It needs no database."""

    urls: ClassVar = {**URLS, **PAYLOAD_URLS}
    inputs: ServerInputs

    def __init__(self, database: DatabaseAddress | None = None, upstream: str | None = None) -> None:
        super().__init__(database, upstream)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        kinds = [TEST_TYPES[name] for name in PAYLOAD_URLS]
        implementation = cast("Implementation", SimpleNamespace(selected_types=kinds))
        self.inputs = self._stack.enter_context(prepare_inputs(implementation))
        self.items = self.read_items()
        listener = self._stack.enter_context(
            socket.create_server(("127.0.0.1", self.inputs.ports["HTTPS_PORT"]), backlog=512)
        )
        threading.Thread(target=self._accept_tls, args=(listener, self.tls_context()), daemon=True).start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._stack.close()

    def as_server(self) -> Server:
        """Return the server in the form that runtimes return."""
        types = {name: TEST_TYPES[name] for name in self.urls}
        implementation = SimpleNamespace(urls=self.urls, test_types=types, name="double", rules="tfb")
        server = SimpleNamespace(
            implementation=implementation, endpoint=self.endpoint, upstream=None, inputs=self.inputs
        )
        return cast("Server", server)

    # ---- TLS ---------------------------------------------------------------------------------------------------------

    def tls_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.inputs.path("TLS_CERT"), self.inputs.path("TLS_KEY"))
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _accept_tls(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        number = 100_000
        while not self.stopped:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            number += 1
            session = ClientSession(number=number)
            threading.Thread(target=self._serve_tls, args=(line, context, session), daemon=True).start()

    def _serve_tls(self, line: socket.socket, context: ssl.SSLContext, session: ClientSession) -> None:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # the client stopped the handshake, or left
            self._serve(self.secure(line, context), session)

    def secure(self, line: socket.socket, context: ssl.SSLContext) -> socket.socket:
        return context.wrap_socket(line, server_side=True)

    # ---- items -------------------------------------------------------------------------------------------------------

    def read_items(self) -> list[JsonObject]:
        items: list[JsonObject] = json.loads(self.inputs.path("DATASET").read_text(encoding="utf-8"))
        return items

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        match = ITEMS_PATH.match(request.path)
        if match is None:
            return super().reply(session, request)
        if request.method not in ("GET", "HEAD"):
            return self.unsupported(request)
        reply = self.items_reply(session, int(match[1]), int(self.parameter(request.query, "m") or 1))
        return self.compress(request, reply)

    def items_reply(self, session: ClientSession, count: int, multiplier: int) -> Reply:
        body = self.encode_json(self.document(self.chosen(count), multiplier))
        return Reply(content_type="application/json", body=body)

    def chosen(self, count: int) -> list[JsonObject]:
        return self.items[:count]

    def document(self, items: list[JsonObject], multiplier: int) -> JsonObject:
        return {"items": [self.item(item, multiplier) for item in items], "count": len(items)}

    def item(self, item: JsonObject, multiplier: int) -> JsonObject:
        return {**item, "total": item["price"] * item["quantity"] * multiplier}

    # ---- compression -------------------------------------------------------------------------------------------------

    def compress(self, request: ReceivedRequest, reply: Reply) -> Reply:
        if not self.accepts_gzip(request):
            return reply
        reply.body = self.coded(reply.body)
        reply.headers += self.coding_headers()
        return reply

    def accepts_gzip(self, request: ReceivedRequest) -> bool:
        return "gzip" in request.headers.get("accept-encoding", "")

    def coded(self, body: bytes) -> bytes:
        return gzip.compress(body, 6)

    def coding_headers(self) -> list[tuple[str, str]]:
        return [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
