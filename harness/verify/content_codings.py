"""Decodes the content codings of response bodies (RFC 9110 section 8.4.1)."""

import zlib
from collections.abc import Sequence

import brotli

MAX_DECODED_BYTES = 16 << 20  # maximum size of a decompressed body
MAX_CODINGS = 4
STEP_BYTES = 1 << 16  # output limit of a decompression step, so that a small brotli body cannot exhaust the memory


def decode_body(body: bytes, values: Sequence[str]) -> bytes:
    """Decode a body and return the result. ``values`` contains the response's Content-Encoding headers.

    Raises ValueError if a coding is unknown, or if the body is invalid or too large.
    """
    codings = ",".join(values).lower().replace(" ", "").split(",")
    if len(codings) > MAX_CODINGS:
        raise ValueError(f"the body has {len(codings)} content codings. Use at most {MAX_CODINGS}")
    for coding in reversed(codings):
        if coding in ("", "identity") or not body:
            continue
        if coding not in ("gzip", "x-gzip", "deflate", "br"):
            raise ValueError(f"tfb cannot decode Content-Encoding {coding}. Send Accept-Encoding: gzip in the request")
        try:
            body, complete = _unbrotli(body) if coding == "br" else _unzip(body)
        except (zlib.error, brotli.error) as error:
            raise ValueError(f"the body cannot be decoded as {coding}: {error}") from error
        if not complete:
            raise ValueError(
                f"the {coding} body is incomplete, or exceeds {MAX_DECODED_BYTES >> 20} MiB after decoding"
            )
    return body


def _unzip(body: bytes) -> tuple[bytes, bool]:
    """Return the decompressed bytes, and whether they are complete. Accept both gzip and zlib."""
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 32)
    return decompressor.decompress(body, MAX_DECODED_BYTES), decompressor.eof


def _unbrotli(body: bytes) -> tuple[bytes, bool]:
    """Return the decompressed bytes, and whether they are complete."""
    decompressor, parts, size = brotli.Decompressor(), list[bytes](), 0
    while not decompressor.is_finished() and size < MAX_DECODED_BYTES:
        part = decompressor.process(body, output_buffer_limit=STEP_BYTES)
        if not part and not body:
            break
        body = b""
        parts.append(part)
        size += len(part)
    return b"".join(parts), decompressor.is_finished()
