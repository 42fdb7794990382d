"""Logging in to a service: how tfb finds the token, how requests use it, and messages about failures."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness import redaction
from harness.errors import ConfigError, StartError
from harness.extras.gate import login as gate_login
from harness.extras.gate.declared import compare_declarations
from harness.extras.gate.login import log_in
from harness.plan import service
from harness.plan.requests import Login
from harness.runtime import Endpoint, Server

TOML = """
[service]
start = "./shop"
[service.login]
path = "/login"
json = { user = "ann", password = "s3cret" }
field = "data.access_token"
[[request]]
name = "items"
path = "/items"
headers = { Authorization = "Bearer {token}", X-Other = "1" }
"""
Serve = Callable[[bytes], Endpoint]


class Handler(socketserver.StreamRequestHandler):
    """A handler that sends a fixed response and records the request."""

    def handle(self) -> None:
        """Read a request and send the response."""
        server: Any = self.server
        server.received.append(self.request.recv(65536))
        self.wfile.write(server.response)
        if server.response.endswith(b"wait"):
            server.done.wait(5)


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    """Forget a test's tokens, so that later tests do not redact them."""
    yield
    redaction.forget()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Yield a function that sets the server's fixed response and returns the server's endpoint."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        address: Any = server
        address.received, address.done, address.daemon_threads = [], threading.Event(), True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()

        def start(response: bytes) -> Endpoint:
            address.response = response
            return Endpoint(host="127.0.0.1", port=server.server_address[1])

        start.received = address.received  # type: ignore[attr-defined]
        yield start
        address.done.set()
        server.shutdown()
        thread.join()


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers)
    return "\r\n".join((*lines, "", "")).encode() + body


def logged_in(endpoint: Endpoint, **login: Any) -> str:
    """Log in. Return the value of the header field that contains the token."""
    file = service.ServiceFile.model_validate(
        {
            "service": {"start": "x", "login": {"path": "/login", **login}},
            "request": [{"name": "a", "path": "/", "headers": {"X-Token": "<{token}>"}}],
        }
    )
    implementation = service.service_implementation(file, Path(), "head", 1, Path())
    server = cast("Server", SimpleNamespace(implementation=implementation, endpoint=endpoint))
    assert file.service.login
    log_in(server, file.service.login)
    (prepared,) = server.implementation.test_types["a"].requests
    return dict(prepared.headers)["X-Token"]


CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"t":"a"}\r\n0\r\n\r\n'


@pytest.mark.parametrize(
    ("data", "where", "token"),
    [
        (response(b'{"t": "abc"}'), {"field": "t"}, "<abc>"),
        (response(b'{"data": {"t": "abc"}}', status="201 Created"), {"field": "data.t"}, "<abc>"),
        (response(b'{"list": [{"t": 17}]}'), {"field": "list.0.t"}, "<17>"),
        (response(b"", "Set-Cookie: a=1", "Set-Cookie: sid=x%20y; HttpOnly; Path=/"), {"cookie": "sid"}, "<x%20y>"),
        (response(b"", "Set-Cookie: sid=q", "Location: /", status="303 See Other"), {"cookie": "sid"}, "<q>"),
        (CHUNKED, {"field": "t"}, "<a>"),
        (b'HTTP/1.0 200 OK\r\n\r\n{"t":"closed"}', {"field": "t"}, "<closed>"),
        (response(b'{"t": "kept alive"}'.replace(b" alive", b"")) + b"", {"field": "t"}, "<kept>"),
        (response(b'{"t": "u"}', status="401 Unauthorized"), {"field": "t", "status": 401}, "<u>"),
    ],
)
def test_tokens_are_found_in_fields_and_cookies(data: bytes, where: dict[str, Any], token: str, serve: Serve) -> None:
    assert logged_in(serve(data), **where) == token


@pytest.mark.parametrize(
    ("data", "where", "expected"),
    [
        (response(b"who?", status="401 Unauthorized"), {"field": "t"}, "expected status 200 to 399, got 401"),
        (response(b"{}"), {"field": "t", "status": 201}, "expected status 201, got 200"),
        (response(b'{"token": 1}'), {"field": "t"}, "has no field 't'.*service.login.field"),
        (response(b"<html>"), {"field": "t"}, "has no field 't'"),
        (response(b'{"t": null}'), {"field": "t.u"}, "has no field 't.u'"),
        (response(b'{"t": ""}'), {"field": "t"}, "is not a token"),
        (response(b'{"t": "a\\r\\nX: y"}'), {"field": "t"}, "is not a token"),
        (response(b"", "Set-Cookie: other=1"), {"cookie": "sid"}, "sets no cookie 'sid'. It sets: other"),
        (response(b""), {"cookie": "sid"}, "It sets: none"),
        (b"", {"field": "t"}, "incomplete"),
        (b"SSH-2.0\r\n\r\n", {"field": "t"}, "incomplete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwait", {"field": "t"}, "no response within"),
        (response(b"x" * (2 << 20)), {"field": "t"}, "exceeds 1 MiB"),
    ],
)
def test_failed_logins_name_their_cause(
    data: bytes, where: dict[str, Any], expected: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_login, "LOGIN_SECONDS", 1.0)
    with pytest.raises(StartError, match=rf"(?s)login failed: POST /login: .*{expected}"):
        logged_in(serve(data), **where)


def test_an_unreachable_server_fails_the_login() -> None:
    with pytest.raises(StartError, match=r"login failed: POST /login: .*refused.*service\.login"):
        logged_in(Endpoint(host="127.0.0.1", port=1), field="t")


def test_the_login_is_sent_as_declared(serve: Serve) -> None:
    endpoint = serve(response(b'{"t": "a"}'))
    logged_in(endpoint, field="t", json={"user": "ann"}, headers={"X-Key": "1"}, method="PUT")
    (received,) = serve.received  # type: ignore[attr-defined]
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /login HTTP/1.1\r\nHost: 127.0.0.1:")
    assert {b"X-Key: 1", b"Content-Type: application/json", b"Connection: close"} <= set(head.split(b"\r\n"))
    assert body == b'{"user": "ann"}'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Bearer {token}", "Bearer x", "service.login is not used"),
        ('[service.login]\npath = "/login"\njson = { user = "ann", password = "s3cret" }\nfield = "data.access_token"',
            "", "add [service.login]"),
        ('field = "data.access_token"', "", "exactly one of field and cookie"),
        ("field =", 'cookie = "a"\nfield =', "exactly one of field and cookie"),
        ("field =", 'body = "a"\nfield =', "at most one of body and json"),
        ("field =", "headers = { Content-Length = '1' }\nfield =", "sets content-length"),
    ],
)  # fmt: skip
def test_invalid_logins_are_explained(old: str, new: str, expected: str, tmp_path: Path) -> None:
    assert old in TOML
    (tmp_path / "tfb.toml").write_text(TOML.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tfb\.toml") as caught:
        service.read_service(tmp_path)
    assert expected in str(caught.value)


def test_base_decides_how_to_log_in(tmp_path: Path) -> None:
    def read(text: str) -> service.ServiceFile:
        (tmp_path / "tfb.toml").write_text(text, encoding="utf-8")
        return service.read_service(tmp_path)

    base, head = read(TOML), read(TOML.replace('"ann"', '"admin"'))
    without = read(TOML.partition("[service.login]")[0] + '[[request]]\nname = "items"\npath = "/items"\n')
    declared = compare_declarations(base, head, targets=(None, None))
    assert declared.head.service.login == base.service.login
    assert any("changes service.login" in note for note in declared.notes)
    assert not any("s3cret" in note for note in declared.notes)
    adding = compare_declarations(without, head, targets=(None, None))
    assert (adding.base.service.login, adding.head.service.login) == (None, head.service.login)
    assert isinstance(head.service.login, Login)
