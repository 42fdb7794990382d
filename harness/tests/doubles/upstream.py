"""An upstream within the test's own process: answers random integers, and counts them."""

import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from harness.runtime import UpstreamStats


class FakeUpstream:
    """Listens on a loopback port of its own while the context is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._dice = random.Random(20260509)
        self._calls = self._sum = 0
        self.status = 200
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                body = double.answer()
                self.send_response(double.status)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", f"{len(body)}")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket.listen(1024)  # a hundred calls at once find room in its queue

    def answer(self) -> bytes:
        with self._lock:
            number = self._dice.randint(1, 10_000)
            self._calls += 1
            self._sum += number
        return f"{number}".encode()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/value"

    def reset(self) -> None:
        with self._lock:
            self._calls = self._sum = 0

    def stats(self) -> UpstreamStats:
        with self._lock:
            return UpstreamStats(calls=self._calls, sum=self._sum)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
