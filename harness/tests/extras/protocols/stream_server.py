"""The reference server with HTTP/2, with and without TLS, and with WebSocket."""

import socket
import ssl
import threading
from typing import ClassVar, Self

from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.stream_double import StreamDouble
from harness.tests.extras.protocols.payload_server import PayloadServer

STREAM_URLS = {"http2": "/json/", "http2-cleartext": "/json/", "websocket": "/ws"}


class StreamServer(StreamDouble, PayloadServer):
    """A server for all test types of the group ``protocols``."""

    urls: ClassVar = {**PayloadServer.urls, **STREAM_URLS}

    def __enter__(self) -> Self:
        super().__enter__()
        address = ("127.0.0.1", self.inputs.ports["H2C_PORT"])
        listener = self._stack.enter_context(socket.create_server(address, backlog=512))
        threading.Thread(target=self._accept_cleartext, args=(listener,), daemon=True).start()
        return self

    def _accept_cleartext(self, listener: socket.socket) -> None:
        number = 200_000
        while not self.stopped:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            number += 1
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = ClientSession(number=number, state={"http2": True})
            threading.Thread(target=self._serve, args=(line, session), daemon=True).start()

    def tls_context(self) -> ssl.SSLContext:
        context = super().tls_context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context

    def converse(self, line: socket.socket, session: ClientSession) -> None:
        encrypted = isinstance(line, ssl.SSLSocket)
        if session.state.get("http2") or (isinstance(line, ssl.SSLSocket) and line.selected_alpn_protocol() == "h2"):
            self.converse_http2(line, session)
        elif not encrypted and line.recv(8, socket.MSG_PEEK).startswith(b"GET /ws "):
            self.converse_websocket(line, session)
        else:
            super().converse(line, session)
