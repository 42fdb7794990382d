"""Checks of HTTP/2: independent streams, the stream limit, PING, and the reaction to protocol violations."""

import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from harness.extras.protocols.data_set import COUNT
from harness.extras.protocols.encryption import observe_encryption
from harness.extras.protocols.http2_client import Http2Client, Http2Connection
from harness.extras.protocols.items import ItemsEvidence, draw_variants, item_request, item_variant
from harness.runtime import Endpoint, endpoint_of
from harness.verify.checks import Finding, check, types_where
from harness.verify.checks.evidence import Evidence, Exchange
from harness.verify.checks.verification_client import Client, VerificationTask
from harness.verify.wire import WireError

HTTP2_TYPES = types_where(lambda test_type: test_type.protocol == "http2")
MIN_STREAMS = 32  # concurrent streams per connection in the largest load
SMALL_WINDOW = 100  # bytes
SMALL_WINDOW_REQUESTS = 12
BLOCKED_SECONDS = 2.0  # time limit for a response while a different stream is blocked
VIOLATION_SECONDS = 3.0
MAX_REPLY_BYTES = 1 << 20  # if a server sends more than this without GOAWAY, it tolerates the violation

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PING_BYTES = b"tfb-ping"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Encode an HTTP/2 frame."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


START = PREFACE + frame(4, 0, 0, b"")  # the client preface with an empty SETTINGS frame
# Violations of RFC 9113 that h2spec also tests for. The server must end the connection (RFC 9113 section 5.4.1).
VIOLATIONS = {
    "an invalid preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r" + frame(4, 0, 0, b""),
    "DATA on stream 0": START + frame(0, 1, 0, b"data"),
    "HEADERS on stream 0": START + frame(1, 5, 0, b"\x82\x84\x87\x01\x01a"),
    "HEADERS on a stream with an even id": START + frame(1, 5, 2, b"\x82\x84\x87\x01\x01a"),
    "HEADERS with an invalid HPACK index": START + frame(1, 5, 1, b"\xfe"),
    "HEADERS followed by PING instead of CONTINUATION": START + frame(1, 1, 1, b"\x82") + frame(6, 0, 0, PING_BYTES),
    "SETTINGS with an invalid length": START + frame(4, 0, 0, b"\0\0\0"),
    "SETTINGS_INITIAL_WINDOW_SIZE above the maximum": START + frame(4, 0, 0, b"\0\4\xff\xff\xff\xff"),
    "PING with an invalid length": START + frame(6, 0, 0, b"short"),
    "WINDOW_UPDATE of 0 for the connection": START + frame(8, 0, 0, bytes(4)),
    "a frame above SETTINGS_MAX_FRAME_SIZE": START + frame(6, 0, 0, bytes(1 << 22)),
}


def http2_client(task: VerificationTask) -> Http2Client:
    """Return a client that sends requests to the same URL as the load generator."""
    endpoint = endpoint_of(task.server, task.test_type)
    return Http2Client(endpoint, task.test_type, task.test_type.target(task.url), task.timeout)


def observe_encrypted_streams(task: VerificationTask, client: Client, evidence: ItemsEvidence) -> Sequence[Exchange]:
    """Observe TLS parameters, then HTTP/2 streams."""
    observe_encryption(task, client, evidence)
    return observe_streams(task, client, evidence)


def observe_streams(task: VerificationTask, client: Client, evidence: ItemsEvidence) -> Sequence[Exchange]:
    """Observe the stream limit, PING, a blocked stream, and streams with small windows.

    In a thorough verification, also observe how the server reacts to protocol violations.
    """
    server, kind = task.server, task.test_type
    assert isinstance(client, Http2Client)  # noqa: S101 - the test type uses HTTP/2
    cases = draw_variants(server, kind, SMALL_WINDOW_REQUESTS, 1)
    exchanges = client.send_with_small_windows(cases, SMALL_WINDOW)
    endpoint = endpoint_of(server, kind)
    with suppress(WireError), Http2Connection(endpoint, task.timeout, window=0) as connection:
        connection.receive_until(lambda: connection.settings_received)
        settings = connection.h2.remote_settings
        evidence.stream_limit = settings.max_concurrent_streams
        connection.h2.ping(PING_BYTES)
        connection.flush()
        evidence.pong = connection.receive_until(lambda: connection.pongs > 0)
        blocked, other = (item_variant(item_request(server, kind, count, 3)) for count in (COUNT, 1))
        first = connection.start(blocked, client.prepare(blocked))
        connection.flush()
        connection.receive_until(lambda: connection.streams[first].status > 0, BLOCKED_SECONDS)
        second = connection.start(other, client.prepare(other))
        connection.h2.increment_flow_control_window(10_000, second)
        connection.flush()
        evidence.passes_blocked = connection.receive_until(
            lambda: connection.streams[second].ended_at > 0, BLOCKED_SECONDS
        )
    if task.thorough:
        evidence.tolerated = [name for name, data in VIOLATIONS.items() if not _ends(endpoint, data)]
    return exchanges


def _ends(endpoint: Endpoint, data: bytes) -> bool:
    """Return whether the server sends GOAWAY or closes the connection after it receives ``data``."""
    deadline = time.monotonic() + VIOLATION_SECONDS
    received = b""
    try:
        with endpoint.connect(VIOLATION_SECONDS) as line:
            line.sendall(data)
            while (left := deadline - time.monotonic()) > 0:
                line.settimeout(left)
                chunk = line.recv(65_536)
                received += chunk
                if not chunk or _has_goaway(received):
                    return True
                if len(received) > MAX_REPLY_BYTES:
                    return False
    except TimeoutError:
        return False
    except (OSError, ssl.SSLError):
        return True  # the server reset the connection
    return False


def _has_goaway(received: bytes) -> bool:
    """Return whether the received frames include GOAWAY."""
    begin = 0
    while len(received) - begin >= 9:
        if received[begin + 3] == 7:
            return True
        begin += 9 + int.from_bytes(received[begin : begin + 3], "big")
    return False


def _observed(needs: Callable[[ItemsEvidence], bool], evidence: Evidence) -> bool:
    return isinstance(evidence.extension, ItemsEvidence) and needs(evidence.extension)


def _observations(evidence: Evidence) -> ItemsEvidence:
    assert isinstance(evidence.extension, ItemsEvidence)  # noqa: S101 - guaranteed by ``needs``
    return evidence.extension


@check("http2.1", HTTP2_TYPES, partial(_observed, lambda seen: seen.passes_blocked is not None))
def streams_independent(evidence: Evidence) -> Iterator[Finding]:
    """Require that a stream with an exhausted window does not delay other streams."""
    if not _observations(evidence).passes_blocked:
        yield Finding(
            "a stream with an exhausted window blocks other streams. Handle streams independently",
            expected=f"a response on another stream within {BLOCKED_SECONDS:g} s",
            actual="no response",
        )


@check("http2.2", HTTP2_TYPES, partial(_observed, lambda seen: seen.stream_limit is not None))
def stream_limit(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server permits as many concurrent streams per connection as the largest load uses."""
    limit = _observations(evidence).stream_limit
    if limit is not None and limit < MIN_STREAMS:
        yield Finding(
            "the server permits fewer streams than the load uses. Raise SETTINGS_MAX_CONCURRENT_STREAMS",
            expected=f"at least {MIN_STREAMS} concurrent streams per connection",
            actual=f"{limit}",
        )


@check("http2.3", HTTP2_TYPES, partial(_observed, lambda seen: seen.pong is not None))
def ping_acknowledged(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server acknowledges PING."""
    if not _observations(evidence).pong:
        yield Finding("the server does not acknowledge PING", expected="PING with the ACK flag", actual="none")


@check("http2.4", HTTP2_TYPES, partial(_observed, lambda seen: seen.tolerated is not None))
def violations_refused(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server ends a connection after frames that violate RFC 9113."""
    for violation in _observations(evidence).tolerated or ():
        yield Finding(
            f"the server tolerates {violation}. End the connection",
            expected="GOAWAY, or a closed connection",
            actual="an open connection",
        )
