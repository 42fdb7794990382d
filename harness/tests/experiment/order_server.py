"""An order service of one thread, without a database, that stands still or fails when told to, and keeps a record.

Prints its port; on the end of standard input the record: one JSON object with times of CLOCK_MONOTONIC in nanoseconds.
"""

import argparse
import asyncio
import json
import sys
import time

OK = {"POST": 201, "GET": 200, "PUT": 200, "DELETE": 204}


class Service:
    """Counts orders up; what is asked of an order is answered without looking at it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.orders = 0
        self.requests: list[tuple[str, str]] = []
        self.created: dict[int, int] = {}  # by order: when its creation was answered
        self.stall: tuple[int, int] | None = None
        self.first = 0

    def stand_still(self) -> None:
        """Once, for as long as it is told, beginning with the first request after the moment."""
        now = time.monotonic_ns()
        self.first = self.first or now
        if self.options.stall_seconds and self.stall is None and now - self.first >= self.options.stall_at * 1e9:
            time.sleep(self.options.stall_seconds)
            self.stall = (now, time.monotonic_ns())

    def answer(self, method: str, path: str) -> bytes | None:
        """The answer; None: nothing at all; b"": the connection is closed."""
        self.stand_still()
        self.requests.append((method, path))
        status, body = OK[method], b'{"id":0}'
        if (method, path) == ("POST", "/orders"):
            self.orders += 1
            if self.options.refuse_every and self.orders % self.options.refuse_every == 0:
                return response(503, b"{}")
            if self.options.close_every and self.orders % self.options.close_every == 0:
                return b""
            body = b'{"id":%d}' % self.orders
            self.created[self.orders] = time.monotonic_ns()
        elif method == "GET" and self.options.silent_every:
            order = int(path.split("/")[2])
            if order % self.options.silent_every == 0:
                return None
        return response(status, body if status != 204 else b"")


def response(status: int, body: bytes) -> bytes:
    """On the wire."""
    length = b"" if status == 204 else b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 %d X\r\n%s\r\n%s" % (status, length, body)


class Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].decode("ascii").split("\r\n")
            lengths = [int(line.split(":")[1]) for line in head if line.lower().startswith("content-length:")]
            length = end + 4 + sum(lengths)
            if len(self.data) < length:
                return
            self.data = self.data[length:]
            method, path, _ = head[0].split(" ")
            answer = self.service.answer(method, path)
            if answer == b"":
                self.transport.close()
                return
            if answer:
                self.transport.write(answer)


async def serve(service: Service) -> None:
    """Until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(service), "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    record = {"requests": service.requests, "created": service.created, "stall": service.stall}
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("stall-at", "stall-seconds"):
        parser.add_argument(f"--{option}", type=float, default=0.0)
    for option in ("refuse-every", "close-every", "silent-every"):
        parser.add_argument(f"--{option}", type=int, default=0)
    asyncio.run(serve(Service(parser.parse_args())))
