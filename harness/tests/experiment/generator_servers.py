"""Servers for tests of load generators: scripted servers that record requests, and the toolset's servers."""

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import ReferenceServer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class ScriptedServer(ReferenceServer):
    """A server that sends scripted responses.

    ``answer`` gets a request's number on its connection, from 0, and returns the bytes to send. None sends no response,
    and empty bytes close the connection.
    """

    def __init__(self, answer: Callable[[int], bytes | None] = lambda _: OK) -> None:
        super().__init__()
        self.answer = answer
        self.streams: list[bytearray] = []  # bytes received on each connection

    def converse(self, line: socket.socket, session: ClientSession) -> None:
        stream = bytearray()
        self.streams.append(stream)
        begin = answered = 0
        while data := line.recv(65_536):
            stream += data
            while (end := stream.find(b"\r\n\r\n", begin)) >= 0:
                text = self.respond(answered, bytes(stream[begin:end]))
                begin, answered = end + 4, answered + 1
                if text == b"":
                    return
                if text:
                    line.sendall(text)

    def respond(self, number: int, head: bytes) -> bytes | None:
        """Return the response to a request. ``head`` starts with the previous request's body."""
        return self.answer(number)


@contextmanager
def tool(program: Path, *arguments: str) -> Iterator[tuple[int, Callable[[str], dict[str, Any] | None]]]:
    """Start a server of the toolset. Yield its port and a function that sends it a command."""
    server = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stdin, stdout = server.stdin, server.stdout

    def say(line: str) -> dict[str, Any] | None:
        stdin.write(line + "\n")
        stdin.flush()
        return dict(json.loads(stdout.readline())) if line == "stats" else None

    try:
        yield int(json.loads(stdout.readline())["port"]), say
    finally:
        server.communicate(timeout=10)
