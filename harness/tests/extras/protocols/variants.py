"""Honest servers in the group ``protocols``. They meet the requirements, but differ from the reference server."""

import gzip
import json
import ssl
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import brotli

from harness.tests.doubles.honest import Honest, VariantChange, chunked, dumped, headed, in_pieces
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.extras.protocols.payload_server import JsonObject, PayloadServer

CONSTANT_STATUS = ("json-items", "json-compressed", "json-tls", "short-lived", "upload")
TYPES = ("json-items", "json-compressed", "json-tls", "short-lived", "static", "upload")


def variant(name: str, does: str, change: VariantChange, *test_types: str) -> Honest:
    return Honest(name=name, does=does, change=change, test_types=test_types or TYPES, base=PayloadServer)


def escaped(self: PayloadServer, document: object) -> bytes:
    """Escape HTML characters too, as Go's encoding/json does."""
    text = json.dumps(document, ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").encode()


def reversed_keys(self: PayloadServer, items: list[JsonObject], multiplier: int) -> JsonObject:
    shown = PayloadServer.document(self, items, multiplier)
    items = [dict(reversed(item.items())) for item in shown["items"]]
    return {"count": shown["count"], "items": items}


def large_only(self: PayloadServer, request: ReceivedRequest, reply: Reply) -> Reply:
    return PayloadServer.compress(self, request, reply) if len(reply.body) > 2_000 else reply


def uneven(self: PayloadServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    time.sleep(session.dice.expovariate(1 / 0.002))
    return PayloadServer.reply(self, session, request)


def slow_reply(self: PayloadServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    time.sleep(0.02)
    return PayloadServer.reply(self, session, request)


def without_tickets(self: PayloadServer) -> ssl.SSLContext:
    context = PayloadServer.tls_context(self)
    context.num_tickets = 0
    return context


def newest_only(self: PayloadServer) -> ssl.SSLContext:
    context = PayloadServer.tls_context(self)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


BROTLI: dict[str, Any] = {
    "coded": lambda _, body: brotli.compress(body, quality=4),
    "coding_headers": lambda _: [("content-encoding", "br"), ("vary", "origin, accept-encoding")],
}


def by_time(self: PayloadServer, request: ReceivedRequest, name: str) -> Reply:
    """Send Last-Modified instead of an ETag, and no compressed variants."""
    path = self.resolve(name)
    if path is None:
        return self.unknown(request)
    modified = formatdate(path.stat().st_mtime, usegmt=True)
    headers = [("Last-Modified", modified)]
    if request.headers.get("if-modified-since") == modified:
        return Reply(status=304, headers=headers)
    return Reply(content_type=f"{self.file_type(path.name)}", body=self.read(path), headers=headers)


def compressed_anew(self: PayloadServer, request: ReceivedRequest, path: Path) -> tuple[str, bytes]:
    content = self.read(path)
    return ("gzip", gzip.compress(content, 1, mtime=0)) if self.accepts_gzip(request) else ("", content)


VARIANTS = (
    variant("payload-reference", "is the reference server", {}),
    variant("payload-framed", "sends chunks", chunked(700, extension=";a=b", upper=True), *CONSTANT_STATUS),
    variant("payload-segments", "sends head and body in separate segments", {"send": in_pieces}),
    variant("payload-slow", "waits 20 ms before each response", {"reply": slow_reply}),
    variant("payload-headers", "sends additional header fields", headed(lambda f: [*f, ("Keep-Alive", "timeout=60"), ("ETag", '"1"')])),
    variant("items-indented", "indents JSON and reverses keys", {**dumped(indent=1, ensure_ascii=False), "document": reversed_keys}, "json-items", "json-tls"),
    variant("items-escaped", "escapes characters needlessly", {"encode_json": escaped}, "json-items", "json-compressed"),
    variant("gzip-fast", "compresses at the fastest level", {"coded": lambda _, body: gzip.compress(body, 1)}, "json-compressed"),
    variant("brotli", "compresses with brotli", BROTLI, "json-compressed"),
    variant("large-only", "compresses only bodies above 2,000 bytes", {"compress": large_only}, "json-compressed"),
    variant("uneven", "waits for a random time before each response", {"reply": uneven}, "json-compressed"),
    variant("files-by-time", "sends Last-Modified instead of an ETag", {"file_reply": by_time}, "static"),
    variant("files-compressed-anew", "compresses files anew for each response", {"variant": compressed_anew}, "static"),
    variant("without-tickets", "issues no session tickets", {"tls_context": without_tickets}, "json-tls"),
    variant("newest-tls", "supports only TLS 1.3", {"tls_context": newest_only}, "json-tls"),
)  # fmt: skip
