"""A listening socket is put down to the processes that hold it."""

import os
import socket

from harness.runtime.metering.listeners import listening


def test_the_ports_that_a_process_listens_on_are_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.socket(socket.AF_INET6) as two:
        two.bind(("::1", 0))
        two.listen()
        found = listening([os.getpid()])
        assert found[one.getsockname()[1]] == {os.getpid()}
        assert found[two.getsockname()[1]] == {os.getpid()}


def test_a_connection_is_no_listening_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getsockname()[1] not in listening([os.getpid()])


def test_a_process_that_is_gone_listens_nowhere() -> None:
    assert listening([2**22 - 3]) == {}
