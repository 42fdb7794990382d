"""Logs in after each start of a side's server, to obtain the token that tfb adds to all later requests."""

import http.client
import io
import json
import re
import socket
import time
from dataclasses import replace
from http.cookies import CookieError, SimpleCookie
from typing import cast

from harness import redaction
from harness.errors import StartError
from harness.plan.requests import Login
from harness.plan.service import FILE
from harness.runtime import Endpoint, Server
from harness.verify.checks import excerpt

LOGIN_SECONDS = 30.0
MAX_BYTES = 1 << 20


def log_in(server: Server, login: Login) -> None:
    """Log in, and insert the token into the headers of all requests. Raises StartError if the login fails."""
    token = _read_token(login, *_send(server.endpoint, login))
    if not re.fullmatch(r"[\x21-\x7e]{1,8192}", token):
        raise StartError(
            f"{_asked(login)}: {excerpt(token, 80)} is not a token: expected ASCII characters without spaces"
        )
    redaction.declare({"LOGIN_TOKEN": token})
    implementation = server.implementation
    requests = {
        name: replace(kind, requests=tuple(each.with_token(token) for each in kind.requests))
        for name, kind in implementation.requests.items()
    }
    server.implementation = replace(implementation, requests=requests)


def _send(endpoint: Endpoint, login: Login) -> tuple[http.client.HTTPResponse, bytes]:
    """Send the login request, and return the response and its body."""
    request = login.prepare()
    deadline, data = time.monotonic() + LOGIN_SECONDS, b""
    try:
        with endpoint.connect(LOGIN_SECONDS) as connection:
            connection.sendall(request.head(endpoint.authority) + request.body)
            while len(data) <= MAX_BYTES:
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                chunk = connection.recv(MAX_BYTES)
                data += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError
                if parsed := _parse(data, login.method, ended=not chunk):
                    return parsed
                if not chunk:
                    break
    except OSError as error:
        reason = f"no response within {LOGIN_SECONDS:.0f} s" if isinstance(error, TimeoutError) else str(error)
        raise StartError(
            f"{_asked(login)}: {reason}: read the server's log, and check service.login in {FILE}"
        ) from error
    raise StartError(f"{_asked(login)}: the response is incomplete or exceeds 1 MiB: {excerpt(data, 80)}")


class _ReceivedBytes:
    """A socket stand-in from which ``http.client`` reads bytes that have already been received."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _parse(data: bytes, method: str, *, ended: bool) -> tuple[http.client.HTTPResponse, bytes] | None:
    """Return the response and the body, or None if the response is incomplete or invalid."""
    if b"\r\n\r\n" not in data:
        return None
    response = http.client.HTTPResponse(cast("socket.socket", _ReceivedBytes(data)), method=method)
    try:
        response.begin()
        if response.length is None and not response.chunked and not ended:
            return None  # the body ends only when the server closes the connection
        return response, response.read()
    except http.client.HTTPException:
        return None


def _read_token(login: Login, response: http.client.HTTPResponse, body: bytes) -> str:
    """Return the token in a login response. Raises a StartError that names the service.login key to correct."""
    expected = (login.status,) if login.status else range(200, 400)
    if response.status not in expected:
        wanted = str(login.status) if login.status else "200 to 399"
        raise StartError(
            f"{_asked(login)}: expected status {wanted}, got {response.status} {response.reason}: {excerpt(body, 80)}. "
            f"Correct service.login in {FILE}, or make sure that every version accepts this login"
        )
    if login.cookie:
        cookies = [line for name, line in response.getheaders() if name.lower() == "set-cookie"]
        for line in cookies:
            try:
                morsel = SimpleCookie(line).get(login.cookie)
            except CookieError:
                morsel = None
            if morsel:
                return morsel.coded_value
        names = ", ".join(line.partition("=")[0] for line in cookies) or "none"
        raise StartError(
            f"{_asked(login)}: the response sets no cookie {login.cookie!r}. It sets: {excerpt(names, 80)}. "
            "Correct service.login.cookie"
        )
    try:
        token = json.loads(body)
        for name in (login.field or "").split("."):
            token = token[int(name)] if isinstance(token, list) else token[name]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise StartError(
            f"{_asked(login)}: the response has no field {login.field!r}: {excerpt(body, 80)}. "
            "Correct service.login.field, such as data.access_token"
        ) from error
    return token if isinstance(token, str) else json.dumps(token)


def _asked(login: Login) -> str:
    return f"login failed: {login.method} {excerpt(login.path, 80)}"
