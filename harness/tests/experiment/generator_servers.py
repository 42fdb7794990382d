"""Servers that tests speak to: scripted ones that record what comes, and the toolset's with known delays."""

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
    """Answers what ``answer`` says to the so many-th request on a connection (None: nothing, b"": closes)."""

    def __init__(self, answer: Callable[[int], bytes | None] = lambda _: OK) -> None:
        super().__init__()
        self.answer = answer
        self.streams: list[bytearray] = []  # what came on each connection

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
        """To the so many-th request on a connection; before its head stands the body of the one before."""
        return self.answer(number)


@contextmanager
def tool(program: Path, *arguments: str) -> Iterator[tuple[int, Callable[[str], dict[str, Any] | None]]]:
    """A server of the toolset: its port, and a way to say a line to it (``stats`` is answered)."""
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
