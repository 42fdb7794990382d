"""The reference server with the test types of the group ``protocols``."""

import contextlib
import gzip
import hashlib
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self, cast

from harness.extras.protocols.static_folder import MEDIA_TYPES
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
    "static": "/static/",
    "upload": "/upload",
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
        kinds = [TEST_TYPES[name] for name in self.urls]
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
        """Return the server as an object like the servers that runtimes return."""
        types = {name: TEST_TYPES[name] for name in self.urls}
        implementation = SimpleNamespace(urls=self.urls, test_types=types, name="double", rules="tfb")
        server = SimpleNamespace(
            implementation=implementation, endpoint=self.endpoint, upstream=None, inputs=self.inputs
        )
        return cast("Server", server)

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
        with contextlib.suppress(OSError):  # the client left or aborted the handshake
            self._serve(self.secure(line, context), session)

    def secure(self, line: socket.socket, context: ssl.SSLContext) -> socket.socket:
        return context.wrap_socket(line, server_side=True)

    def read_items(self) -> list[JsonObject]:
        items: list[JsonObject] = json.loads(self.inputs.path("DATASET").read_text(encoding="utf-8"))
        return items

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        if request.path.startswith("/static/"):
            return self.file_reply(request, request.path.removeprefix("/static/"))
        if request.path == "/upload" and request.method == "POST":
            return Reply(body=f"{self.count_bytes(request)}".encode())
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

    def file_reply(self, request: ReceivedRequest, name: str) -> Reply:
        path = self.resolve(name)
        if path is None:
            return self.unknown(request)
        coding, content = self.variant(request, path)
        etag = self.etag(content)
        headers = [("ETag", etag), ("Vary", "Accept-Encoding")]
        if self.matches(request, etag):
            return Reply(status=304, headers=headers)
        headers += [("Content-Encoding", coding)] if coding else []
        return Reply(content_type=self.file_type(path.name), body=content, headers=headers)

    def resolve(self, name: str) -> Path | None:
        """Return the path of a file in STATIC_DIR, or None if there is no such file."""
        path = self.inputs.path("STATIC_DIR") / name
        return path if "/" not in name and path.is_file() else None

    def variant(self, request: ReceivedRequest, path: Path) -> tuple[str, bytes]:
        """Return the coding and the content: the compressed variant if the client accepts it, otherwise the file."""
        compressed = path.with_name(f"{path.name}.br")
        if "br" in request.headers.get("accept-encoding", "") and compressed.is_file():
            return "br", self.read(compressed)
        return "", self.read(path)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def etag(self, content: bytes) -> str:
        # CRC-32 is unsuitable: a gzip stream contains its content's CRC-32, so the result would be constant.
        return f'"{hashlib.sha256(content).hexdigest()}"'

    def matches(self, request: ReceivedRequest, etag: str) -> bool:
        return request.headers.get("if-none-match") == etag

    def file_type(self, name: str) -> str:
        return MEDIA_TYPES.get(name.rpartition(".")[2], ("application/octet-stream",))[0]

    def split(self, data: bytes) -> tuple[list[ReceivedRequest], bytes, int | None]:
        head, _, rest = data.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" not in head.lower():
            requests, left, error = super().split(data)
            return requests, left, None if b"\r\n\r\n" in left[:4096] else error  # a large body may be incomplete
        if not rest.endswith(b"0\r\n\r\n"):
            return [], data, None
        request = self.parse(head)
        return ([replace(request, body=rest)] if request else []), b"", None

    def count_bytes(self, request: ReceivedRequest) -> int:
        return len(self.body_of(request))

    def body_of(self, request: ReceivedRequest) -> bytes:
        """Return the body without chunk framing."""
        if "transfer-encoding" not in request.headers:
            return request.body
        return b"".join(self.chunks(request.body))

    def chunks(self, data: bytes) -> Iterator[bytes]:
        start = 0
        while True:
            end = data.index(b"\r\n", start)
            size = int(data[start:end], 16)
            if size == 0:
                return
            yield data[end + 2 : end + 2 + size]
            start = end + 4 + size
