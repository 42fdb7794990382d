"""A document as it is sent: made, packed and named once, for every viewer that asks for it."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

LEAST_BYTES = 1400  # what fits into one packet gains nothing by being packed
LEVEL = 5


@dataclass(frozen=True, kw_only=True)
class Body:
    """Bytes of a document, the same with gzip, and what changes when they do."""

    plain: bytes
    packed: bytes
    tag: str  # of HTTP: ETag

    def answer(self, accepts: str, known: str) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, bytes and headers, by a request's Accept-Encoding and If-None-Match."""
        headers = {"cache-control": "no-cache", "etag": self.tag, "vary": "accept-encoding"}
        if self.tag in (word.strip().removeprefix("W/") for word in known.split(",")):
            return 304, b"", headers
        if self.packed and "gzip" in accepts:
            return 200, self.packed, headers | {"content-encoding": "gzip"}
        return 200, self.plain, headers


def body(document: BaseModel) -> Body:
    """Of a document."""
    return of_bytes(document.model_dump_json().encode())


def of_bytes(plain: bytes) -> Body:
    """Of a document's JSON."""
    packed = gzip.compress(plain, LEVEL, mtime=0) if len(plain) >= LEAST_BYTES else b""
    return Body(plain=plain, packed=packed, tag=f'"{hashlib.blake2b(plain, digest_size=12).hexdigest()}"')
