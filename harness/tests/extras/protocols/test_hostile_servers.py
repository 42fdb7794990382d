"""Hostile servers must neither end a run nor exhaust the memory."""

import gzip
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Event, Message, Ping

from harness.errors import LoadError
from harness.extras.protocols import static_folder
from harness.extras.protocols.http2_client import Http2Connection
from harness.extras.protocols.messages import MessageConnection
from harness.extras.protocols.static_folder import FileVersion, changes
from harness.plan.requests import PreparedRequest
from harness.runtime import Endpoint
from harness.verify.checks.evidence import MAX_CODED_DOCUMENT_BYTES, Exchange, QueryVariant
from harness.verify.wire import Response, WireError

REQUEST = PreparedRequest(target="/")


@contextmanager
def served(reply: bytes) -> Iterator[Endpoint]:
    """Accept one connection, wait for bytes from the client, and send ``reply``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as line:
                line.recv(65_536)
                line.sendall(reply)
                line.recv(65_536)

        threading.Thread(target=serve, daemon=True).start()
        yield Endpoint(host="127.0.0.1", port=listener.getsockname()[1])


@pytest.mark.parametrize("fields", [[(b":status", b"200"), (b"x", b"\xe9")], [(b":status", b"2x0")]])
def test_invalid_http2_headers_fail_the_connection(fields: list[tuple[bytes, bytes]]) -> None:
    peer = H2Connection(H2Configuration(client_side=False, validate_outbound_headers=False))
    peer.initiate_connection()
    client = H2Connection(H2Configuration())
    client.initiate_connection()
    client.send_headers(1, [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")])
    peer.receive_data(client.data_to_send())
    peer.send_headers(1, fields)
    with served(peer.data_to_send()) as endpoint, Http2Connection(endpoint, 2.0) as connection:
        connection.start(QueryVariant(name="x"), REQUEST)
        connection.flush()
        assert not connection.receive_until(lambda: False, 1.0)
        assert connection.failure is not None
        assert connection.failure.kind == "grammar"


@contextmanager
def messages(events: Sequence[Event], pause: float) -> Iterator[Endpoint]:
    """Accept a WebSocket upgrade, then send the events, with a pause before each one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as line:
                peer = WSConnection(ConnectionType.SERVER)
                peer.receive_data(line.recv(65_536))
                line.sendall(peer.send(AcceptConnection()))
                for event in events:
                    time.sleep(pause)
                    try:
                        line.sendall(peer.send(event))
                    except OSError:
                        return
                line.recv(65_536)

        threading.Thread(target=serve, daemon=True).start()
        yield Endpoint(host="127.0.0.1", port=listener.getsockname()[1])


def test_messages_after_a_close_are_wire_errors() -> None:
    with messages([CloseConnection(code=1000)], 0.0) as endpoint, MessageConnection(endpoint, "/ws", 2.0) as client:
        assert isinstance(client.receive(), CloseConnection)
        with pytest.raises(WireError, match="closed the connection"):
            client.send(Message(data="x"))


def test_pings_do_not_prolong_the_wait() -> None:
    started_at = time.monotonic()
    with (
        messages([Ping() for _ in range(40)], 0.1) as endpoint,
        MessageConnection(endpoint, "/ws", 0.5) as client,
        pytest.raises(WireError, match="no complete message"),
    ):
        client.receive_message()
    assert time.monotonic() - started_at < 3


@pytest.mark.parametrize("accepts", [False, True])
def test_compressed_documents_stay_small(*, accepts: bool) -> None:
    headers = (("Accept-Encoding", "gzip, br"),) if accepts else ()
    body = gzip.compress(b'"' + b"a" * MAX_CODED_DOCUMENT_BYTES + b'"')
    exchange = Exchange(
        case=QueryVariant(name="x", drawn=PreparedRequest(target="/", headers=headers)),
        target="/",
        sent_at=0.0,
        received_at=0.0,
        connection=0,
        response=Response(200, "OK", (("Content-Encoding", "gzip"),), body, len(body), "content-length"),
    )
    assert isinstance(exchange.document, ValueError)


def test_failed_changes_of_files_end_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(static_folder, "change_file", fail)
    versions = {name: [FileVersion(content=b"x" * 200, since=0.0)] for name in static_folder.SIZES}
    with pytest.raises(LoadError, match="No space left"), changes(tmp_path, versions, 1):
        time.sleep(1.5)
