"""Tests for byte counters of sockets."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.host.sockets import SocketCounters, SocketMeter


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=512)


@contextmanager
def connected(server: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_connection(server.getsockname()) as client:
        here, _ = server.accept()
        with here:
            yield client, here


def transfer(sender: socket.socket, receiver: socket.socket, count: int) -> None:
    sender.sendall(b"x" * count)
    while count:
        count -= len(receiver.recv(1 << 16))


def read(meter: SocketMeter) -> SocketCounters:
    reading = meter.read()
    if reading is None:
        pytest.skip("this kernel does not answer sock_diag")
    return reading


def test_only_connections_to_the_port_are_counted() -> None:
    with (
        listening() as server,
        listening() as other,
        connected(server) as (client, here),
        connected(server) as (second, there),
        connected(other) as (stranger, elsewhere),
    ):
        meter = SocketMeter(server.getsockname()[1])
        assert read(meter) == SocketCounters(connections=2, bytes_received=0)
        transfer(here, client, 50_000)
        transfer(there, second, 1_000)
        transfer(elsewhere, stranger, 1_000)
        transfer(client, here, 7_777)
        assert read(meter) == SocketCounters(connections=2, bytes_received=51_000, bytes_sent=7_777)
        meter.close()


def test_served_port_counts_bytes_of_its_clients() -> None:
    with listening() as server, connected(server) as (client, here):
        meter = SocketMeter(server.getsockname()[1], served=True)
        transfer(here, client, 1_000)
        transfer(client, here, 77)
        time.sleep(0.1)  # acknowledgements may be delayed
        assert read(meter) == SocketCounters(connections=1, bytes_received=1_000, bytes_sent=77)
        meter.close()


def test_closed_connection_remains_counted() -> None:
    with listening() as server:
        meter = SocketMeter(server.getsockname()[1])
        with connected(server) as (client, here):
            transfer(here, client, 1_000)
            assert read(meter).bytes_received == 1_000
        assert read(meter) == SocketCounters(connections=0, bytes_received=1_000)
        meter.close()


def test_many_connections_need_several_messages() -> None:
    with listening() as server:
        pairs = [socket.create_connection(server.getsockname()) for _ in range(300)]
        meter = SocketMeter(server.getsockname()[1])
        assert read(meter).connections == 300
        meter.close()
        for pair in pairs:
            pair.close()
