"""Rogues of the group ``protocols``, and the check that must catch each rogue."""

import gzip
import json
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from harness.extras.protocols.data_set import make_items
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.rogues import Change, Rogue, every
from harness.tests.doubles.rogues.busy import while_busy
from harness.tests.extras.protocols.payload_server import JsonObject, PayloadServer

busy_too = partial(while_busy, base=PayloadServer)


def rogue(name: str, test_type: str, caught_by: str, does: str, **change: Any) -> Rogue:
    return Rogue(name, test_type, caught_by, does, change, base=PayloadServer)


def loaded(name: str, test_type: str, caught_by: str, does: str, change: Change) -> Rogue:
    return Rogue(name, test_type, caught_by, does, busy_too(change), base=PayloadServer, under_load=True)


def by_count(self: PayloadServer, session: ClientSession, count: int, multiplier: int) -> Reply:
    """Cache each body under its path, which lacks the multiplier."""
    cache = self.state.setdefault("by count", {})
    if count not in cache:
        cache[count] = PayloadServer.items_reply(self, session, count, multiplier).body
    return Reply(content_type="application/json", body=cache[count])


def sometimes_previous(self: PayloadServer, session: ClientSession, count: int, multiplier: int) -> Reply:
    reply = PayloadServer.items_reply(self, session, count, multiplier)
    previous = self.state.get("previous", reply.body)
    self.state["previous"] = reply.body
    return Reply(content_type="application/json", body=previous) if every(self, 25) else reply


def first_of_connection(self: PayloadServer, session: ClientSession, count: int, multiplier: int) -> Reply:
    """Ignore the multiplier in each connection's first response."""
    return PayloadServer.items_reply(self, session, count, 1 if session.requests <= 1 else multiplier)


def recorded_pairs(self: PayloadServer, session: ClientSession, count: int, multiplier: int) -> Reply:
    """Respond with the nearest precomputed response."""
    return PayloadServer.items_reply(self, session, count, multiplier // 5 * 5 or 5)


def items_changed(change: Callable[[JsonObject], JsonObject]) -> Callable[..., JsonObject]:
    return lambda self, item, multiplier: change(PayloadServer.item(self, item, multiplier))


def document_changed(change: Callable[[JsonObject], JsonObject]) -> Callable[..., JsonObject]:
    return lambda self, items, multiplier: change(PayloadServer.document(self, items, multiplier))


ITEMS = (
    rogue("precomputed-items", "json-items", "items-exact", "serves a data set that is built in", read_items=lambda _: make_items(1)),
    rogue("cached-by-path", "json-items", "items-exact", "caches bodies by path, without the multiplier", items_reply=by_count),
    rogue("nearest-precomputed", "json-items", "items-exact", "serves the nearest of a few precomputed responses", items_reply=recorded_pairs),
    rogue("every-item", "json-items", "items-exact", "always returns all items", chosen=lambda self, _: self.items),
    rogue("last-items", "json-items", "items-exact", "returns the last items", chosen=lambda self, count: self.items[-count:]),
    rogue("items-backwards", "json-items", "items-exact", "returns the items in reverse order", chosen=lambda self, count: self.items[:count][::-1]),
    rogue("items-without-count", "json-items", "items-exact", "omits the number of items", document=document_changed(lambda d: {"items": d["items"]})),
    rogue("items-with-more", "json-items", "items-exact", "adds a key", document=document_changed(lambda d: {**d, "page": 1})),
    rogue("totals-as-text", "json-items", "items-exact", "sends totals as strings", item=items_changed(lambda item: {**item, "total": f"{item['total']}"})),
    rogue("flat-ratings", "json-items", "items-exact", "omits the nested rating", item=items_changed(lambda item: {k: v for k, v in item.items() if k != "rating"})),
    rogue("names-in-ascii", "json-items", "items-exact", "drops non-ASCII characters", item=items_changed(lambda item: {**item, "name": item["name"].encode("ascii", "ignore").decode()})),
    rogue("previous-items", "json-items", "items-exact", "sometimes returns the previous response", items_reply=sometimes_previous),
    rogue("items-as-text", "json-items", "content-type", "sends the wrong Content-Type", items_reply=lambda self, *rest: Reply(body=PayloadServer.items_reply(self, *rest).body)),
    loaded("cached-by-path-when-busy", "json-items", "items-exact", "caches bodies by path, under load", {"items_reply": by_count}),
    loaded("previous-items-when-busy", "json-items", "items-exact", "sometimes returns the previous response, under load", {"items_reply": sometimes_previous}),
    loaded("other-items-when-busy", "json-items", "items-exact", "returns the last items, under load", {"chosen": lambda self, count: self.items[-count:]}),
)  # fmt: skip


def reused(self: PayloadServer, body: bytes) -> bytes:
    """Compress each body only once."""
    cache = self.state.setdefault("reused", {})
    if body not in cache:
        cache[body] = b"".join(gzip.compress(body, 9) for _ in range(20))[: len(gzip.compress(body, 9))]
    coded: bytes = cache[body]
    return coded


def reused_by_length(self: PayloadServer, body: bytes) -> bytes:
    """Reuse the compressed form of any earlier body with the same number of items."""
    count = json.loads(body)["count"]
    cache = self.state.setdefault("by length", {})
    coded: bytes = cache.setdefault(count, gzip.compress(body, 6))
    return coded


def coding(*headers: tuple[str, str]) -> Callable[..., list[tuple[str, str]]]:
    return lambda _: list(headers)


VARY = ("Vary", "Accept-Encoding")
COMPRESSED = (
    rogue("never-compresses", "json-compressed", "coding-used", "ignores Accept-Encoding", accepts_gzip=lambda *_: False),
    rogue("always-compresses", "json-compressed", "no-compression", "compresses without Accept-Encoding", accepts_gzip=lambda *_: True),
    rogue("compresses-despite-identity", "json-compressed", "no-compression", "compresses despite Accept-Encoding: identity", accepts_gzip=lambda _, request: "accept-encoding" in request.headers),
    rogue("without-vary", "json-compressed", "vary-given", "omits Vary", coding_headers=coding(("Content-Encoding", "gzip"))),
    rogue("another-vary", "json-compressed", "vary-given", "names the wrong header in Vary", coding_headers=coding(("Content-Encoding", "gzip"), ("Vary", "Accept"))),
    rogue("reuses-compressed", "json-compressed", "compressed-anew", "reuses compressed bodies", coded=reused),
    rogue("reuses-another", "json-compressed", "items-exact", "reuses compressed bodies from other requests", coded=reused_by_length),
    rogue("plain-as-gzip", "json-compressed", "json-valid", "declares gzip, but does not compress", coded=lambda _, body: body),
    rogue("gzip-cut-short", "json-compressed", "json-valid", "truncates the compressed body", coded=lambda _, body: gzip.compress(body)[:-9]),
    rogue("gzip-stored", "json-compressed", "coding-used", "uses gzip without compression", coded=lambda _, body: gzip.compress(body, 0)),
    rogue("deflates", "json-compressed", "coding-used", "uses a coding that the client did not offer", coded=lambda _, body: zlib.compress(body), coding_headers=coding(("Content-Encoding", "deflate"), VARY)),
    loaded("plain-when-busy", "json-compressed", "coding-used", "does not compress, under load", {"accepts_gzip": lambda *_: False}),
    loaded("reuses-another-when-busy", "json-compressed", "items-exact", "reuses compressed bodies from other requests, under load", {"coded": reused_by_length}),
    loaded("stored-when-busy", "json-compressed", "coding-used", "uses gzip without compression, under load", {"coded": lambda _, body: gzip.compress(body, 0)}),
)  # fmt: skip


def own_certificate(self: PayloadServer) -> ssl.SSLContext:
    folder = self.inputs.path("TLS_KEY").parent
    key, certificate = folder / "own-key.pem", folder / "own-certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def old_version(self: PayloadServer) -> ssl.SSLContext:
    context = PayloadServer.tls_context(self)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def without_protocol(self: PayloadServer) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self.inputs.path("TLS_CERT"), self.inputs.path("TLS_KEY"))
    return context


def cut_short(self: PayloadServer, request: ReceivedRequest | None, reply: Reply) -> bytes:
    answer = PayloadServer.encode(self, request, reply)
    return answer[:-5] if every(self, 20) else answer


def closing_after(requests: int) -> Callable[..., Reply]:
    def reply(self: PayloadServer, session: ClientSession, request: ReceivedRequest) -> Reply:
        made = PayloadServer.reply(self, session, request)
        made.close = session.requests >= requests
        return made

    return reply


ENCRYPTED = (
    rogue("own-certificate", "json-tls", "certificate-given", "uses its own certificate", tls_context=own_certificate),
    rogue("old-tls", "json-tls", "tls-parameters", "supports only TLS 1.2", tls_context=old_version),
    rogue("tls-without-protocol", "json-tls", "tls-parameters", "selects no application protocol", tls_context=without_protocol),
    rogue("plain-on-tls-port", "json-tls", "answered", "serves unencrypted HTTP on HTTPS_PORT", secure=lambda _, line, __: line),
    rogue("precomputed-over-tls", "json-tls", "items-exact", "serves a data set that is built in", read_items=lambda _: make_items(1)),
    rogue("cached-over-tls", "json-tls", "items-exact", "caches bodies by path, without the multiplier", items_reply=by_count),
    rogue("cut-short-over-tls", "json-tls", "length-exact", "sends incomplete bodies", encode=cut_short),
    rogue("closes-over-tls", "json-tls", "keep-alive", "closes connections after 5 responses", reply=closing_after(5)),
    loaded("cached-over-tls-when-busy", "json-tls", "items-exact", "caches bodies by path, under load", {"items_reply": by_count}),
    loaded("first-over-tls-when-busy", "json-tls", "items-exact", "ignores the multiplier in each connection's first response, under load", {"items_reply": first_of_connection}),
    loaded("closes-over-tls-when-busy", "json-tls", "one-answer-a-request", "closes connections after 8 responses, under load", {"reply": closing_after(8)}),
)  # fmt: skip


def greeting_at(number: int, body: bytes) -> Callable[..., Reply]:
    """Return a different body in the response with this number on a connection."""

    def reply(self: PayloadServer, session: ClientSession, request: ReceivedRequest) -> Reply:
        made = PayloadServer.reply(self, session, request)
        if session.requests == number and request.path == "/plaintext":
            made.body = body
        return made

    return reply


def some_refused(self: PayloadServer, line: socket.socket, session: ClientSession) -> None:
    """Close every tenth connection without a response."""
    if not every(self, 10):
        PayloadServer.converse(self, line, session)


def overloaded(self: PayloadServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    return Reply(status=503) if session.requests == 1 else PayloadServer.reply(self, session, request)


def unnamed_at_first(self: PayloadServer, reply: Reply) -> list[tuple[str, str]]:
    fields = PayloadServer.headers(self, reply)
    return [field for field in fields if field[0] != "Server"] if every(self, 9) else fields


SHORT = (
    rogue("wrong-first-greeting", "short-lived", "plaintext-body", "returns a wrong body in the first response", reply=greeting_at(1, b"Hello, World?")),
    rogue("wrong-tenth-greeting", "short-lived", "plaintext-body", "returns a wrong body in the tenth response", reply=greeting_at(10, b"Hello, World?")),
    rogue("closes-after-five", "short-lived", "keep-alive", "closes connections after 5 responses", reply=closing_after(5)),
    rogue("closes-each", "short-lived", "keep-alive", "closes connections after each response", reply=closing_after(1)),
    rogue("refuses-some", "short-lived", "answered", "closes every tenth connection without a response", converse=some_refused),
    rogue("overloaded-at-first", "short-lived", "status-ok", "responds with 503 to the first request", reply=overloaded),
    rogue("unnamed-at-times", "short-lived", "server-header", "sometimes omits the Server header", headers=unnamed_at_first),
    rogue("short-cut-short", "short-lived", "length-exact", "sends incomplete bodies", encode=cut_short),
    loaded("closes-early-when-busy", "short-lived", "one-answer-a-request", "closes connections after 5 responses, under load", {"reply": closing_after(5)}),
    loaded("wrong-first-when-busy", "short-lived", "plaintext-body", "returns a wrong body in the first response, under load", {"reply": greeting_at(1, b"Hello, World?")}),
    loaded("overloaded-when-busy", "short-lived", "one-answer-a-request", "responds with 503 to the first request, under load", {"reply": overloaded}),
)  # fmt: skip


def read_once(self: PayloadServer, path: Path) -> bytes:
    """Keep the content that each file had when it was first read."""
    content: bytes = self.state.setdefault("files", {}).setdefault(path.name, path.read_bytes())
    return content


def read_late(self: PayloadServer, path: Path) -> bytes:
    """Read each file at most every five seconds."""
    files, now = self.state.setdefault("late", {}), time.monotonic()
    if path.name not in files or now - files[path.name][0] > 5:
        files[path.name] = now, path.read_bytes()
    content: bytes = files[path.name][1]
    return content


def unchecked(self: PayloadServer, name: str) -> Path | None:
    path = self.inputs.path("STATIC_DIR") / unquote(name)
    return path if path.is_file() else None


def any_file(self: PayloadServer, name: str) -> Path | None:
    return PayloadServer.resolve(self, name) or PayloadServer.resolve(self, "shop.html")


def as_gzip(self: PayloadServer, request: ReceivedRequest, path: Path) -> tuple[str, bytes]:
    """Send the plain file, but declare gzip."""
    coding, content = PayloadServer.variant(self, request, path)
    return ("gzip", self.read(path)) if coding else (coding, content)


def never_plain(self: PayloadServer, request: ReceivedRequest, path: Path) -> tuple[str, bytes]:
    compressed = path.with_name(f"{path.name}.br")
    return ("br", self.read(compressed)) if compressed.is_file() else ("", self.read(path))


def unvaried(self: PayloadServer, reply: Reply) -> list[tuple[str, str]]:
    return [field for field in PayloadServer.headers(self, reply) if field[0] != "Vary"]


def unvalidated(self: PayloadServer, reply: Reply) -> list[tuple[str, str]]:
    return [field for field in PayloadServer.headers(self, reply) if field[0] != "ETag"]


def short_day(self: PayloadServer, reply: Reply) -> list[tuple[str, str]]:
    return [*PayloadServer.headers(self, reply), ("Last-Modified", "Tue, 2 Jan 2024 03:04:05 GMT")]


def shortened(self: PayloadServer, path: Path) -> bytes:
    return path.read_bytes()[:100_000]


def constant_type(self: PayloadServer, name: str) -> str:
    return "application/octet-stream" if name.endswith("woff2") else PayloadServer.file_type(self, name)


FILES = (
    rogue("reads-files-once", "static", "file-exact", "never reads a file again", read=read_once),
    rogue("reads-files-late", "static", "file-exact", "notices changed files after up to 5 s", read=read_late),
    rogue("shortens-files", "static", "file-exact", "truncates files above 100 kB", read=shortened),
    rogue("always-not-modified", "static", "status-ok", "responds with 304 to outdated validators", matches=lambda _, request, __: "if-none-match" in request.headers),
    rogue("never-not-modified", "static", "status-ok", "ignores If-None-Match", matches=lambda *_: False),
    rogue("leaves-the-folder", "static", "folder-confined", "serves files outside the folder", resolve=unchecked),
    rogue("serves-unknown-names", "static", "folder-confined", "serves a page under unknown names", resolve=any_file),
    rogue("wrong-file-type", "static", "file-type", "sends the wrong media type for fonts", file_type=constant_type),
    rogue("plain-files-as-gzip", "static", "file-exact", "declares gzip for uncompressed files", variant=as_gzip),
    rogue("compressed-unasked", "static", "no-compression", "sends compressed variants without Accept-Encoding", variant=never_plain),
    rogue("files-without-vary", "static", "validator-sent", "omits Vary", headers=unvaried),
    rogue("files-without-validator", "static", "validator-sent", "sends no ETag", headers=unvalidated),
    rogue("files-with-short-day", "static", "validator-sent", "sends Last-Modified without a leading zero", headers=short_day),
    loaded("keeps-files-when-busy", "static", "file-exact", "never reads a file again, under load", {"read": read_once}),
    loaded("never-not-modified-when-busy", "static", "one-answer-a-request", "ignores If-None-Match, under load", {"matches": lambda *_: False}),
)  # fmt: skip


def declared_length(self: PayloadServer, request: ReceivedRequest) -> int:
    return int(request.headers.get("content-length", "0"))


def first_chunk(self: PayloadServer, request: ReceivedRequest) -> int:
    chunked = "transfer-encoding" in request.headers
    return len(next(self.chunks(request.body), b"")) if chunked else len(request.body)


def previous_count(self: PayloadServer, request: ReceivedRequest) -> int:
    count = PayloadServer.count_bytes(self, request)
    previous: int = self.state.get("count", count)
    self.state["count"] = count
    return previous if every(self, 15) else count


def text_length(self: PayloadServer, request: ReceivedRequest) -> int:
    return len(self.body_of(request).decode("utf-8", "ignore"))


UPLOADS = (
    rogue("copies-content-length", "upload", "bytes-counted", "returns Content-Length", count_bytes=declared_length),
    rogue("counts-chunk-framing", "upload", "bytes-counted", "includes the chunk framing in the count", count_bytes=lambda _, request: len(request.body)),
    rogue("counts-first-chunk", "upload", "bytes-counted", "counts only the first chunk", count_bytes=first_chunk),
    rogue("counts-characters", "upload", "bytes-counted", "counts characters", count_bytes=text_length),
    rogue("counts-kilobytes", "upload", "bytes-counted", "rounds the count to 1,000 bytes", count_bytes=lambda self, request: round(len(self.body_of(request)), -3)),
    rogue("counts-little", "upload", "bytes-counted", "counts at most 64 KiB", count_bytes=lambda self, request: min(65_536, len(self.body_of(request)))),
    rogue("counts-previous", "upload", "bytes-counted", "sometimes returns the previous request's count", count_bytes=previous_count),
    rogue("counts-as-json", "upload", "content-type", "returns JSON", reply=lambda self, session, request: Reply(content_type="application/json", body=PayloadServer.reply(self, session, request).body)),
    loaded("copies-length-when-busy", "upload", "bytes-counted", "returns Content-Length, under load", {"count_bytes": declared_length}),
    loaded("counts-previous-when-busy", "upload", "bytes-counted", "sometimes returns the previous request's count, under load", {"count_bytes": previous_count}),
)  # fmt: skip

CHEATS = {each.name: each for each in (*ITEMS, *COMPRESSED, *ENCRYPTED, *SHORT, *FILES, *UPLOADS)}
