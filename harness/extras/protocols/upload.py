"""Verification of the test type ``upload``, in which the server returns the size of the request body."""

import random
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from harness.plan.requests import Expect, PreparedRequest
from harness.plan.testtypes import TestType
from harness.runtime import Server, endpoint_of
from harness.verify.checks import Finding, check, excerpt, exchange_check
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant
from harness.verify.checks.verification_client import VerificationTask
from harness.verify.wire import Connection, WireError

UPLOAD = frozenset({"upload"})
SMALLEST, LARGEST = 1_000, 1_000_000  # body size in bytes; the logarithms of sizes are uniformly distributed
DRAWN_REQUESTS = 100
CHUNKS = (100, 60_000)  # smallest and largest chunk in bytes
SEQUENTIAL_REQUESTS = {True: 30, False: 4}  # number of requests if the verification is thorough (True) or brief (False)
CONCURRENT_REQUESTS = {True: 64, False: 8}
CONNECTIONS = 4
LARGE_BYTES = 256 << 20  # size of an upload that a server must not keep in memory
LARGE_CHUNK_BYTES = 1 << 20
MAX_GROWTH_BYTES = 128 << 20
REFUSED = 413


@dataclass(kw_only=True)
class MemoryEvidence:
    """Growth of the server's memory in bytes during a large upload; None if not observed."""

    growth: float | None = None


def chunks(body: bytes, dice: random.Random) -> bytes:
    """Encode a body as HTTP/1.1 chunks of random sizes."""
    parts, start = list[bytes](), 0
    while start < len(body):
        part = body[start : start + dice.randint(*CHUNKS)]
        parts += [f"{len(part):x}\r\n".encode(), part, b"\r\n"]
        start += len(part)
    return b"".join((*parts, b"0\r\n\r\n"))


def upload_request(
    server: Server, test_type: TestType, dice: random.Random, size: int, *, chunked: bool
) -> PreparedRequest:
    """Return a request with a random body. The expected response is the body's size."""
    body = dice.randbytes(size)
    headers = (("Accept", test_type.accept), ("Content-Type", "application/octet-stream"))
    return PreparedRequest(
        target=server.implementation.urls[test_type.name],
        method="POST",
        headers=(*headers, ("Transfer-Encoding", "chunked")) if chunked else headers,
        body=chunks(body, dice) if chunked else body,
        expect=Expect(body=str(size)),
    )


def draw(server: Server, test_type: TestType, seed: int, number: int = DRAWN_REQUESTS) -> Sequence[PreparedRequest]:
    """Return requests with bodies of random sizes. Every second body is chunked."""
    dice = random.Random(f"{seed} {test_type.name}")
    sizes = (round(SMALLEST * (LARGEST / SMALLEST) ** dice.random()) for _ in range(number))
    return [upload_request(server, test_type, dice, size, chunked=n % 2 == 1) for n, size in enumerate(sizes)]


@contextmanager
def observe(server: Server, seed: int) -> Iterator[MemoryEvidence]:
    """Yield empty evidence, because the checks of a load only need the requests and responses."""
    yield MemoryEvidence()


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Send bodies of various sizes.

    In a thorough verification, also measure how a very large upload affects the server's memory.
    """
    server, kind, seed = task.server, task.test_type, secrets.randbits(32)
    evidence.extension = memory = MemoryEvidence()
    client, dice = task.load_client(), random.Random(seed)
    limits = [(size, chunked) for size in (0, 1, SMALLEST, LARGEST) for chunked in (False, True)]
    requests = [upload_request(server, kind, dice, size, chunked=chunked) for size, chunked in limits]
    requests += draw(server, kind, seed, SEQUENTIAL_REQUESTS[task.thorough])
    evidence.exchanges = client.send_in_order(QueryVariant(name="drawn", drawn=each) for each in requests)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    more = [
        QueryVariant(name="drawn", drawn=each)
        for each in draw(server, kind, seed + 1, CONCURRENT_REQUESTS[task.thorough])
    ]
    evidence.concurrent = client.send_concurrently(more, CONNECTIONS)
    if task.thorough and hasattr(server, "program"):
        memory.growth = _growth(task)


def _growth(task: VerificationTask) -> float | None:
    """Return the server's memory growth in bytes during a large upload, or None if the server rejects the upload."""
    server = task.server
    before = largest = server.program.read().rss or 0
    endpoint = endpoint_of(server, task.test_type)
    request = upload_request(server, task.test_type, random.Random(), 0, chunked=True)
    chunk = f"{LARGE_CHUNK_BYTES:x}\r\n".encode() + bytes(LARGE_CHUNK_BYTES) + b"\r\n"
    try:
        connection = Connection(endpoint, task.timeout)
        connection.send(request.head(endpoint.authority))
        for number in range(LARGE_BYTES // LARGE_CHUNK_BYTES):
            connection.send(chunk)
            if number % 16 == 15:
                largest = max(largest, server.program.read().rss or 0)
        connection.send(b"0\r\n\r\n")
        response = connection.receive("POST")
        connection.close()
    except WireError:
        return None  # the server closed the connection to reject the body
    return max(largest, server.program.read().rss or 0) - before if response.status != REFUSED else None


@exchange_check("upload.1", UPLOAD)
def bytes_counted(exchange: Exchange) -> Iterator[Finding]:
    """Require that the response is the request body's size as decimal digits. Chunk framing does not count."""
    drawn = exchange.case.drawn
    if drawn and exchange.body != (drawn.expect.body or "").encode():
        yield Finding(
            "wrong number of bytes. Read the whole body, and return its size in bytes as decimal digits",
            expected=drawn.expect.body,
            actual=excerpt(exchange.body, 60),
        )


@check("upload.2", UPLOAD, lambda evidence: _observed_growth(evidence) is not None)
def memory_bounded(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server does not keep a large body in memory."""
    growth = _observed_growth(evidence) or 0
    if growth > MAX_GROWTH_BYTES:
        yield Finding(
            f"the server's memory grows during an upload of {LARGE_BYTES >> 20} MiB. Count the bytes while they "
            "arrive, or reject the body with 413",
            expected=f"at most {MAX_GROWTH_BYTES >> 20} MiB",
            actual=f"{growth / (1 << 20):.0f} MiB",
        )


def _observed_growth(evidence: Evidence) -> float | None:
    return evidence.extension.growth if isinstance(evidence.extension, MemoryEvidence) else None


load, drawing = None, sys.modules[__name__]
check_modules = (drawing,)
