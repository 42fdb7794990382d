"""The strict HTTP/1.1 client reads valid and invalid responses and accounts for every byte."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from harness.runtime import Endpoint
from harness.tests.approve import approve
from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import ReferenceServer
from harness.verify.wire import Connection, WireError

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HELLO = OK + b"Server: t\r\nContent-Length: 5\r\n\r\nhello"


@contextmanager
def saying(data: bytes, *, then_close: bool = False, drip: bytes = b"") -> Iterator[Connection]:
    """Connect to a peer that sends ``data`` at once, and then ``drip`` every 20 ms."""

    class Peer(ReferenceServer):
        def converse(self, line: socket.socket, session: ClientSession) -> None:
            line.sendall(data)
            while not then_close and not self.stopped:
                line.sendall(drip)
                time.sleep(0.02)

    with Peer() as peer, closing(Connection(peer.endpoint, timeout=0.2)) as connection:
        yield connection


PEERS: dict[str, bytes] = {  # name -> bytes that a peer sends before it closes the connection
    "chunks": CHUNKED + b"3;x=y\r\nhel\r\n2 \r\nlo\r\n0\r\nExpires: 0\r\n\r\nrest",
    "until the end": OK + b"Content-Type:\ttext/plain \r\n\r\nhello",
    "other protocol": b"HTTP/1.1 101 Switching\r\n\r\n" + HELLO,
    "most interim": b"HTTP/1.1 199 Odd\r\n\r\n" * 8 + HELLO,
    "no content": b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "HEAD with both": OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "nothing": b"",
    "short": OK + b"Content-Length: 9\r\n\r\nhello",
    "short head": OK + b"Server: t",
    **{
        f"chunks of {body!r}": CHUNKED + body
        for body in (
            b"9\r\nhel",
            b"5\r\nhello\r",
            b"5\r\nhello\r\n",
            b"0\r\nExp",
            b"5\r\nhelloX\r\n",
            b"f" * 40 + b"\r\n",
        )
    },
    "no chunk": CHUNKED + b"hello" * 20 + b"\r\n",
    "other coding": OK + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\nhello",
    "coding in capitals": OK + b"Transfer-Encoding:  Chunked\r\n\r\n0\r\n\r\n",
    **{
        f"a length of {length}": OK + f"Content-Length: {length}\r\n\r\nhello".encode()
        for length in ("five", "-5", "000000000000005", "0000000000000005", "1048577")
    },
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "letters in the status": b"HTTP/1.1 2OO OK and a reason that is longer than the sixty bytes of it\r\n\r\n",
    "page": b"<html>hello</html> and more than the sixty bytes that are shown of it",
    "no colon": HELLO.replace(b"Server: t", b"Server t" * 10),
    "blank before the colon": HELLO.replace(b"Server: t", b"S\xe9rver : \xe9 "),
    "folded": HELLO.replace(b"Server: t", b"Server: t\r\n folded"),
    "length twice": HELLO.replace(b"Server: t", b"Content-Length: 5"),
    "no reason": HELLO.replace(b"200 OK", b"200"),
    "empty reason": HELLO.replace(b"200 OK", b"200 "),
    "older": HELLO.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "both": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    "most": OK + b"Content-Length: 1048576\r\n\r\n" + b"x" * 1048576,
    "most chunks": CHUNKED + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 16 + b"0\r\n\r\n",
    "more chunks": CHUNKED + b"5\r\nhello\r\nffffc\r\n",
    "endless size": CHUNKED + b"1" * 10_000,
    "most trailers": CHUNKED + b"0\r\n" + (b"T: " + b"x" * 1019 + b"\r\n") * 255 + b"T: " + b"x" * 1017 + b"\r\n\r\n",
    "more trailers": CHUNKED + b"0\r\n" + (b"T: " + b"x" * 1019 + b"\r\n") * 255 + b"T: " + b"x" * 1018 + b"\r\n\r\n",
    "endless interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 9,
    "endless head": OK + b"X: y\r\n" * 60_000,
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "endless": OK + b"\r\n" + b"x" * (5 << 20),
}


def heard(name: str) -> object:
    """Return the response and any unsolicited bytes, or the error."""
    with saying(PEERS[name], then_close=True) as connection:
        connection.timeout = 30.0
        try:
            response = connection.receive(name.partition(" ")[0])
        except WireError as error:
            return f"{error.kind}: {error}"
        text = response.body[:40].decode()
        headers = "".join(f", {name}: {value}" for name, value in response.headers)
        stray = connection.read_unsolicited().decode()
        return (f"{response.status} {response.reason!r} {response.framing}, {response.size} bytes{headers}; "
                f"body {len(response.body)} bytes {text!r}" + f", stray {stray!r}" * bool(stray))  # fmt: skip


def test_responses_and_errors_are_as_approved() -> None:
    approve("verify-wire", {name: heard(name) for name in PEERS})


def test_a_closed_connection_is_detected() -> None:
    with saying(b"", then_close=True) as connection:
        assert connection.wait_for_close(1.0)
        with pytest.raises(WireError) as error:
            connection.receive()
    assert error.value.kind == "closed"


def test_a_peer_that_stops_reading_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        host, port = deaf.getsockname()
        with closing(Connection(Endpoint(host=host, port=port), timeout=0.2)) as connection:
            with pytest.raises(WireError, match="the server stopped reading") as caught:
                connection.send(b"x" * (64 << 20))
            assert caught.value.kind == "silent"


def test_a_closed_port_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
    with pytest.raises(WireError) as error:
        Connection(Endpoint(host=host, port=port))
    assert error.value.kind == "refused"


@pytest.mark.parametrize(
    ("begun", "drip", "expected"),
    [
        (b"", b"", "silent: no further bytes within 0.2 s"),
        (OK + b"X: ", b"y", "silent: .*"),
        (CHUNKED, b"y", r"short: the chunked body is incomplete; only \d+ bytes arrived within the time limit"),
        (
            OK + b"Content-Length: 500\r\n\r\n",
            b"y",
            r"short: .* 500 bytes of body; only \d+ bytes arrived within the time limit",
        ),
    ],
)
def test_slow_bytes_do_not_extend_the_deadline(begun: bytes, drip: bytes, expected: str) -> None:
    with saying(begun, drip=drip) as connection:
        started_at = time.monotonic()
        with pytest.raises(WireError) as caught:
            connection.receive()
        assert time.monotonic() - started_at < 10  # generous, because only a hang matters
    assert re.fullmatch(expected, f"{caught.value.kind}: {caught.value}")
