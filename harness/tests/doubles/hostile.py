"""``python -m harness.tests.doubles.hostile NAME``: a server that answers every request as NAME says.

It listens where HOST and PORT say. What it sends would fill any reader without bounds.
"""

import contextlib
import gzip
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping

OK = b"HTTP/1.1 200 OK\r\nServer: x\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BLOCK = b"x" * 65536
LARGE = 1_000_000  # bytes: just below what is read of an answer
BOMB = gzip.compress(bytes(256 << 20), 9)  # 256 kB, of zeros a thousand times as many
# Brotli's stream (RFC 7932) of 512 meta-blocks, each the largest that there is, left off within the first: whoever
# unpacks it makes room for 16 MiB before a byte has come.
BROTLI = bytes([0x0F]) + bytes([0xFC, 0xFF, 0xFF, 0x07]) * 512
ESCAPE = b"\x1b]0;owned\x07\x1b[2J\x1b[31m"
Send = Callable[[bytes], None]


def _for_ever(send: Send, begin: bytes, again: bytes) -> None:
    send(begin)
    while True:
        send(again)


def _drip(send: Send) -> None:
    for byte in OK + b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000:
        send(bytes([byte]))
        time.sleep(0.2)


def _body(body: bytes, headers: bytes = b"") -> bytes:
    return OK + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


ANSWERS: Mapping[str, Callable[[Send], None]] = {
    "endless-body": lambda send: _for_ever(send, OK + b"\r\n", BLOCK),
    "promises-a-petabyte": lambda send: _for_ever(send, OK + b"Content-Length: 1000000000000000\r\n\r\n", BLOCK),
    "endless-header": lambda send: _for_ever(send, OK, b"X: " + BLOCK),
    "endless-chunks": lambda send: _for_ever(send, CHUNKED, b"10000\r\n" + BLOCK + b"\r\n"),
    "drips": _drip,
    "garbage": lambda send: send(bytes(range(256)) * 64),
    "silent": lambda _send: time.sleep(600),
    "gzip-bomb": lambda send: send(_body(BOMB, b"Content-Encoding: gzip\r\n")),
    "brotli-bomb": lambda send: send(_body(BROTLI, b"Content-Encoding: br\r\n")),
    "many-values": lambda send: send(_body(b"[" + b"{}," * (LARGE // 3) + b"{}]")),
    "huge-number": lambda send: send(OK + b"Content-Length: " + b"9" * 10_000 + b"\r\n\r\n{}"),
    "deep-json": lambda send: send(_body(b"[" * 100_000 + b"]" * 100_000)),
    "escape-header": lambda send: send(_body(b'{"message":"Hello, World!"}', b"X-Y: " + ESCAPE + b"\r\n")),
    "stops-itself": lambda _send: os.kill(os.getpid(), signal.SIGSTOP),
}


def _write(part: bytes, times: int) -> None:
    for _ in range(times):
        os.write(1, part)
    sys.exit(3)


LOGS: Mapping[str, Callable[[], None]] = {
    "escape-log": lambda: _write(ESCAPE + b"boo\n", 20),
    "big-log": lambda: _write(b"a line of a log that nobody reads\n" * 1000, 1800),
    "one-line-log": lambda: _write(BLOCK, 480),
}


def _serve(connection: socket.socket, name: str) -> None:
    with connection, contextlib.suppress(OSError):
        while connection.recv(65536):
            if name == "resets":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            ANSWERS[name](connection.sendall)


def main() -> None:
    name = sys.argv[1]
    if name in LOGS:
        LOGS[name]()
    with socket.create_server((os.environ["HOST"], int(os.environ["PORT"])), backlog=1024) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, name), daemon=True).start()


if __name__ == "__main__":
    main()
