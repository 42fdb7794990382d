"""All clients derive their Host headers, URLs and connections from the same server address."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from harness.extras.gate.runtime import RunningService, resolve_private_url
from harness.plan.service import ServiceFile, service_implementation
from harness.runtime import Endpoint, Server
from harness.runtime.readiness import wait_until_ready
from harness.verify.verifier import Verifier


@pytest.mark.parametrize(
    ("endpoint", "authority", "url"),
    [
        (Endpoint(host="127.0.0.1", port=81), "127.0.0.1:81", "http://127.0.0.1:81/a"),
        (Endpoint(host="::1", port=81), "[::1]:81", "http://[::1]:81/a"),
        (Endpoint(host="::1", port=81, name="localhost:81"), "localhost:81", "http://[::1]:81/a"),
        (Endpoint(host="10.0.0.2", port=80, name="shop.internal"), "shop.internal", "http://10.0.0.2:80/a"),
    ],
)
def test_host_header_has_brackets_and_port(endpoint: Endpoint, authority: str, url: str) -> None:
    assert (endpoint.authority, endpoint.url("/a")) == (authority, url)


@contextmanager
def listening(host: str, port: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Serve HTTP on an address. Yield the port, and a list of the received Host headers."""
    hosts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hosts.append(self.headers["Host"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with Listener((host, port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, hosts
        server.shutdown()


@pytest.mark.parametrize(
    ("host", "name", "expected"),
    [
        ("127.0.0.1", "localhost", "localhost:{}"),
        ("::1", "localhost", "localhost:{}"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:{}"),
        ("::1", "[::1]", "[::1]:{}"),
    ],
)
def test_a_running_service_is_used_where_it_responds(host: str, name: str, expected: str, tmp_path: Path) -> None:
    with listening(host) as (port, hosts):
        document = {"service": {"url": f"http://{name}:{port}"}, "request": [{"name": "root", "path": "/"}]}
        file = ServiceFile.model_validate(document)
        implementation = service_implementation(file, tmp_path, "x", 1, tmp_path)
        endpoints = resolve_private_url(f"http://{name}:{port}")
        server = Server(
            implementation=implementation,
            endpoint=endpoints[0],
            program=RunningService(endpoints=endpoints, log=tmp_path / "log"),
        )
        wait_until_ready(server, "/", time.monotonic(), endpoints=endpoints)
        assert server.endpoint.host == host
        verdict = Verifier().verify_test_type(
            server, implementation.test_types["root"], None, process=0, thorough=False, loads=()
        )
        assert verdict.outcome == "pass"
    assert set(hosts) == {expected.format(port)}
    assert len(hosts) > 2
