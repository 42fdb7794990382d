"""The raw HTTP/1.1 client: what is a response, to the byte, and what is none."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from harness.runtime import Endpoint
from harness.tests.doubles.reference import ReferenceServer, Session
from harness.verify.wire import Connection, WireError

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HELLO = OK + b"Server: t\r\nContent-Length: 5\r\n\r\nhello"


@contextmanager
def saying(data: bytes, *, then_close: bool = False, drip: bytes = b"") -> Iterator[Connection]:
    """A connection to a peer that sends these bytes whatever it hears, and ``drip`` each 20 ms from then on."""

    class Peer(ReferenceServer):
        def converse(self, line: socket.socket, session: Session) -> None:
            line.sendall(data)
            while not then_close and not self.stopped:
                line.sendall(drip)
                time.sleep(0.02)

    with Peer() as peer, closing(Connection(peer.endpoint, patience=0.2)) as connection:
        yield connection


def test_a_response_is_read_to_its_last_byte_and_not_beyond() -> None:
    with saying(HELLO + b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") as connection:
        first, second = connection.receive(), connection.receive()
    assert (first.status, first.body, first.size, first.framing) == (200, b"hello", len(HELLO), "content-length")
    assert (second.status, second.reason, second.body) == (404, "Not Found", b"")


@pytest.mark.parametrize(
    ("data", "framing"),
    [(CHUNKED + b"3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nExpires: 0\r\n\r\n", "chunked"), (OK + b"\r\nhello", "close")],
)
def test_a_body_ends_with_its_last_chunk_or_with_the_connection_and_all_bytes_count(data: bytes, framing: str) -> None:
    with saying(data, then_close=framing == "close") as connection:
        response = connection.receive()
    assert (response.body, response.size, response.framing) == (b"hello", len(data), framing)


def test_an_interim_response_is_passed_over() -> None:
    with saying(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + HELLO) as connection:
        assert connection.receive().status == 200


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "silent"),
        (OK + b"Content-Length: 9\r\n\r\nhello", "short"),
        (CHUNKED + b"9\r\nhello", "short"),
        (CHUNKED + b"5\r\nhelloX\r\n0\r\n\r\n", "grammar"),
        (CHUNKED + b"hello\r\n", "grammar"),
        (OK + b"Transfer-Encoding: gzip\r\n\r\nhello", "grammar"),
        (OK + b"Content-Length: five\r\n\r\nhello", "grammar"),
        (OK + b"Content-Length: -5\r\n\r\nhello", "grammar"),
        (b"HTTP/1.1 2OO OK\r\nContent-Length: 5\r\n\r\nhello", "grammar"),
        (b"<html>hello</html>", "grammar"),
    ],
)
def test_what_is_no_response_is_told_by_kind(data: bytes, kind: str) -> None:
    with saying(data) as connection, pytest.raises(WireError) as error:
        connection.receive()
    assert error.value.kind == kind


@pytest.mark.parametrize(
    ("data", "violation"),
    [
        (HELLO.replace(b"Server: t", b"Server t"), "not a header line: b'Server t'"),
        (HELLO.replace(b"Server: t", b"Server : t"), "not a header line: b'Server : t'"),
        (HELLO.replace(b"Server: t", b"Server: t\r\n folded"), "not a header line: b' folded'"),
        (HELLO.replace(b"Server: t", b"Content-Length: 5"), "Content-Length more than once"),
        (HELLO.replace(b"200 OK", b"200"), "no space after the status code"),
        (HELLO.replace(b"HTTP/1.1", b"HTTP/1.0"), "the version is HTTP/1.0"),
        (
            CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            "both Content-Length and",
        ),
    ],
)
def test_a_response_that_can_be_read_in_spite_of_its_form_says_what_is_wrong(data: bytes, violation: str) -> None:
    with saying(data) as connection:
        response = connection.receive()
    assert response.body == b"hello"
    assert any(violation in found for found in response.violations)


def test_a_peer_that_closes_is_noticed() -> None:
    with saying(b"", then_close=True) as connection:
        assert connection.ended(1.0)
        with pytest.raises(WireError) as error:
            connection.receive()
    assert error.value.kind == "closed"


def test_a_peer_that_stops_reading_is_silent_and_one_that_closes_early_is_quoted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        host, port = deaf.getsockname()
        with closing(Connection(Endpoint(host=host, port=port), patience=0.2)) as connection:
            with pytest.raises(WireError, match="the server stopped reading") as caught:
                connection.send(b"x" * (64 << 20))
            assert caught.value.kind == "silent"
    with saying(OK + b"Server: t", then_close=True) as connection, pytest.raises(WireError, match="Server: t"):
        connection.receive()


def test_nobody_listening_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
    with pytest.raises(WireError) as error:
        Connection(Endpoint(host=host, port=port))
    assert error.value.kind == "refused"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (OK + b"Content-Length: 1000000000\r\n\r\n", "1 MiB"),
        (OK + b"Content-Length: 999999999999999\r\n\r\n", "1 MiB"),
        (CHUNKED + b"3b9aca00\r\n", "1 MiB"),
        (CHUNKED + b"f" * 40 + b"\r\n", "not a chunk size"),
        (CHUNKED + b"1" * 10_000, "has no end within 8 kB"),
        (CHUNKED + b"0\r\n" + b"Trailer: of many\r\n" * 20_000, "a trailer section"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 50, "interim responses"),
        (OK + b"X: y\r\n" * 60_000, "no end of the header section"),
        (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "bare LF"),
        (OK + b"\r\n" + b"x" * (5 << 20), "1 MiB"),
    ],
)
def test_nothing_that_a_server_sends_is_read_without_bound(data: bytes, said: str) -> None:
    with saying(data) as connection:
        connection.patience = 5.0
        with pytest.raises(WireError, match=re.escape(said)) as caught:
            connection.receive()
    assert caught.value.kind == "grammar"


@pytest.mark.parametrize(
    ("begun", "kind"),
    [(OK + b"X: ", "silent"), (CHUNKED, "short"), (OK + b"Content-Length: 500\r\n\r\n", "short")],
)
def test_bytes_that_keep_coming_do_not_move_the_deadline(begun: bytes, kind: str) -> None:
    with saying(begun, drip=b"y") as connection:
        began = time.monotonic()
        with pytest.raises(WireError) as caught:
            connection.receive()
        assert time.monotonic() - began < 10  # a guard against hanging, not a measurement
    assert caught.value.kind == kind
