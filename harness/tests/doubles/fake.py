"""Runs a server for json and plaintext with one deliberate fault.

Start it with ``python -m harness.tests.doubles.fake --behaviour NAME``. It is the reference server without a database.
HOST and PORT set its address.
"""

import argparse
import contextlib
import gzip
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import FrameType

from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer

VERIFICATION_REQUESTS = 5_000  # verification sends fewer requests, so only a load reaches this number
SLOW_SECONDS = 0.02
LOCK, LOCKED_SECONDS = threading.Lock(), 0.001
FLOOD_LINES = 50_000
FLOOD = b"x" * (8 << 20)


class FakeServer(ReferenceServer):
    """A faulty reference server. ``trouble`` gets the number of each request and may return a wrong reply."""

    def __init__(self, host: str, port: int, trouble: Callable[[int], Reply | None]) -> None:
        super().__init__()
        self.listen(host, port)
        self._trouble = trouble
        self._served = 0

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        self._served += 1  # not thread-safe, but an approximate count is enough
        return self._trouble(self._served) or super().reply(session, request)


def _exit_at_once() -> None:
    print("fake: cannot read its configuration", file=sys.stderr)
    sys.exit(3)


def _never_listen() -> None:
    while True:
        time.sleep(60)


def _ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _leave_a_daemon() -> None:
    """Start a process in a new session that ignores SIGTERM and outlives its parent."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", f"import os\nif os.fork() == 0:\n  {code}"], start_new_session=True).wait()


def _flood() -> None:
    for number in range(FLOOD_LINES):
        print(f"fake: line {number} of a long log that fills a pipe quickly")


def _slow(_number: int) -> None:
    time.sleep(SLOW_SECONDS)


def _sleep_in_lock(_number: int) -> None:
    with LOCK:
        time.sleep(LOCKED_SECONDS)


def _hang(number: int) -> None:
    if number > 1:
        time.sleep(600)


def _fail(_number: int) -> Reply:
    return Reply(status=500, body=b"fake: no")


def _fail_under_load(number: int) -> Reply | None:
    return Reply(status=500, body=b"fake: too much") if number > VERIFICATION_REQUESTS and number % 10 == 0 else None


def _flood_under_load(number: int) -> Reply | None:
    return Reply(status=200, body=FLOOD) if number > VERIFICATION_REQUESTS else None


def _die_under_load(number: int) -> None:
    if number > VERIFICATION_REQUESTS:
        print("fake: out of memory", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def _die_in_verification(number: int) -> None:
    if number > 20:
        os._exit(7)


OK = b"HTTP/1.1 200 OK\r\nServer: x\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BLOCK = b"x" * 65536
LARGE = 1_000_000  # bytes, just below the size limit for responses
# A Brotli stream (RFC 7932) of 512 meta-blocks that declare the maximum size. It ends within the first block. A decoder
# allocates 16 MiB before it decodes the first byte.
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


@cache  # the computation takes seconds
def _gzip_bomb() -> bytes:
    return _body(gzip.compress(bytes(256 << 20), 9), b"Content-Encoding: gzip\r\n")


def _body(body: bytes, headers: bytes = b"") -> bytes:
    return OK + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


RESPONSES: Mapping[str, Callable[[Send], None]] = {
    "endless-body": lambda send: _for_ever(send, OK + b"\r\n", BLOCK),
    "promises-a-petabyte": lambda send: _for_ever(send, OK + b"Content-Length: 1000000000000000\r\n\r\n", BLOCK),
    "endless-header": lambda send: _for_ever(send, OK, b"X: " + BLOCK),
    "endless-chunks": lambda send: _for_ever(send, CHUNKED, b"10000\r\n" + BLOCK + b"\r\n"),
    "drips": _drip,
    "garbage": lambda send: send(bytes(range(256)) * 64),
    "silent": lambda _send: time.sleep(600),
    "gzip-bomb": lambda send: send(_gzip_bomb()),
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
    "big-log": lambda: _write(b"a line of a long log\n" * 1000, 1800),
    "one-line-log": lambda: _write(BLOCK, 480),
}


def _serve(connection: socket.socket, name: str) -> None:
    with connection, contextlib.suppress(OSError):
        while connection.recv(65536):
            if name == "resets":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            RESPONSES[name](connection.sendall)


def _hostile(name: str) -> None:
    """Send hostile bytes in response to every request. They would exhaust a client that sets no limits."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if name in LOGS:
        LOGS[name]()
    with socket.create_server((os.environ["HOST"], int(os.environ["PORT"])), backlog=1024) as listener:
        while True:
            threading.Thread(target=_serve, args=(listener.accept()[0], name), daemon=True).start()


# Faults that occur before the server listens.
STARTS: Mapping[str, Callable[[], None]] = {
    "exits-at-once": _exit_at_once,
    "never-listens": _never_listen,
    "hangs-and-ignores-sigterm": _ignore_sigterm,
    "ignores-sigterm": _ignore_sigterm,
    "leaves-a-daemon": _leave_a_daemon,
    "prints-a-lot": _flood,
    **{name: partial(_hostile, name) for name in (*RESPONSES, *LOGS, "resets")},
}
# Faults in responses. Each function gets the request's number, and may return a wrong reply.
TROUBLES: Mapping[str, Callable[[int], Reply | None]] = {
    "answers-slowly": _slow,
    "sleeps-in-a-lock": _sleep_in_lock,
    "hangs-and-ignores-sigterm": _hang,
    "answers-500": _fail,
    "errors-under-load": _fail_under_load,
    "floods-under-load": _flood_under_load,
    "dies-under-load": _die_under_load,
    "dies-in-verification": _die_in_verification,
}


def main() -> None:
    """Serve until SIGTERM."""
    p = argparse.ArgumentParser(prog="python -m harness.tests.doubles.fake", description=__doc__)
    p.add_argument("--behaviour", choices=("good", *STARTS, *TROUBLES), default="good")
    behaviour = p.parse_args().behaviour
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    STARTS.get(behaviour, lambda: None)()
    host, port = os.environ["HOST"], int(os.environ["PORT"])
    with FakeServer(host, port, TROUBLES.get(behaviour, lambda _: None)):
        print(f"fake: {behaviour}, listening on {host}:{port}", flush=True)
        stopped.wait()


if __name__ == "__main__":
    main()
