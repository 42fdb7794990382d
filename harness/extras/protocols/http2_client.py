"""An HTTP/2 client for verification, which can open several concurrent streams on a connection."""

import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from harness.plan.requests import PreparedRequest
from harness.runtime import Endpoint
from harness.verify.checks.evidence import Exchange, QueryVariant
from harness.verify.checks.verification_client import MAX_FAILURES, Client
from harness.verify.wire import MAX_BODY_BYTES, Response, WireError

STREAMS = 16  # maximum number of concurrent streams on a connection
WINDOW_BYTES = 65_535  # HTTP/2's default flow-control window
CONNECTION_FIELDS = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "upgrade"})


@dataclass(kw_only=True)
class Stream:
    """An HTTP/2 stream: a request, and the response received so far."""

    case: QueryVariant
    target: str
    sent_at: float
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    ended_at: float = 0.0  # epoch seconds at the end of the response; 0 until then
    error: str | None = None

    @property
    def ended(self) -> bool:
        """Return whether the response is complete or the stream has failed."""
        return bool(self.ended_at or self.error)

    def exchange(self, connection: int, failure: WireError | None) -> Exchange:
        """Convert the stream to an exchange. If the connection ended early, ``failure`` is the reason."""
        error = self.error or (str(failure) if failure else "no complete response within the time limit")
        response = Response(self.status, "", tuple(self.headers), bytes(self.body), len(self.body), "none")
        return Exchange(
            case=self.case,
            target=self.target,
            sent_at=self.sent_at,
            received_at=self.ended_at or time.time(),
            connection=connection,
            response=response if self.ended_at else None,
            error=None if self.ended_at else error,
            error_kind=None if self.ended_at else (failure.kind if failure and not self.error else "grammar"),
        )


class Http2Connection:
    """An HTTP/2 connection to a server. It is not thread-safe."""

    def __init__(self, endpoint: Endpoint, timeout: float, *, window: int = WINDOW_BYTES) -> None:
        """Connect and send SETTINGS. ``window`` is the initial flow-control window of each stream, in bytes."""
        self._endpoint = endpoint
        self._timeout = timeout
        self.streams: dict[int, Stream] = {}
        self.pongs = 0  # number of acknowledged PING frames
        self.failure: WireError | None = None
        self.settings_received = False
        self.extends_windows = True  # whether to extend the flow-control windows after receiving data
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        initial = {SettingCodes.ENABLE_PUSH: 0, SettingCodes.INITIAL_WINDOW_SIZE: window}
        self.h2.local_settings = Settings(client=True, initial_values=initial)
        try:
            self._socket = endpoint.connect(timeout)
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.do_handshake()
                if self._socket.selected_alpn_protocol() != "h2":
                    raise WireError("grammar", "the server did not select the protocol h2 in the TLS handshake")
        except OSError as error:
            raise WireError("refused", f"cannot connect to {endpoint.place}: {error}") from error
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(H2Error, WireError):
            self.h2.close_connection()
            self.flush()
        self._socket.close()

    @property
    def max_streams(self) -> int:
        """Return how many concurrent streams the server permits."""
        return self.h2.remote_settings.max_concurrent_streams

    @property
    def ended(self) -> int:
        """Return the number of streams that have ended."""
        return sum(stream.ended for stream in self.streams.values())

    def has_ended(self, count: int) -> bool:
        """Return whether at least ``count`` streams have ended."""
        return self.ended >= count

    def start(self, case: QueryVariant, request: PreparedRequest) -> int:
        """Queue a request on a new stream. Return the stream id. Call ``flush`` to send the request."""
        number = self.h2.get_next_available_stream_id()
        pseudo = {
            ":method": request.method,
            ":scheme": "https" if self._endpoint.tls else "http",
            ":authority": self._endpoint.authority,
            ":path": request.target,
        }
        headers = [(name.lower(), value) for name, value in request.headers if name.lower() not in CONNECTION_FIELDS]
        self.streams[number] = Stream(case=case, target=request.target, sent_at=time.time())
        self.h2.send_headers(number, [*pseudo.items(), *headers], end_stream=True)
        return number

    def flush(self) -> None:
        """Send all queued frames. Raises WireError if the connection is closed."""
        try:
            self._socket.sendall(self.h2.data_to_send())
        except OSError as error:
            raise WireError("closed", f"the server closed the connection: {error}") from error

    def receive_until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Process received frames until ``done`` returns True, the connection fails or the time is up.

        Return the last result of ``done``. The default of ``seconds`` is the connection's timeout.
        """
        deadline = time.monotonic() + (self._timeout if seconds is None else seconds)
        while not done() and self.failure is None and (left := deadline - time.monotonic()) > 0:
            try:
                self._socket.settimeout(left)
                data = self._socket.recv(65_536)
                if not data:
                    self.failure = WireError("closed", "the server closed the connection without a response")
                    break
                for event in self.h2.receive_data(data):
                    self._handle(event)
                self.flush()
            except TimeoutError:
                break
            except OSError as error:
                self.failure = WireError("closed", f"the server closed the connection: {error}")
            except (H2Error, ValueError) as error:  # ValueError: a header is not UTF-8, or the status is not a number
                self.failure = WireError("grammar", f"the server violated HTTP/2: {error}")
            except WireError as error:
                self.failure = error
        return done()

    def exchanges(self, connection: int) -> list[Exchange]:
        """Return an exchange for each stream. ``connection`` is the number of this connection."""
        return [stream.exchange(connection, self.failure) for stream in self.streams.values()]

    def _handle(self, event: Event) -> None:
        match event:
            case ResponseReceived(headers=headers, stream_id=number) if headers is not None:
                fields = [(str(name), str(value)) for name, value in headers]
                self.streams[number].status = int(dict(fields)[":status"])
                self.streams[number].headers = [field for field in fields if not field[0].startswith(":")]
            case DataReceived(data=data, stream_id=number, flow_controlled_length=length):
                stream = self.streams[number]
                stream.body += data
                if len(stream.body) > MAX_BODY_BYTES:
                    raise WireError("grammar", f"a body exceeds the limit of {MAX_BODY_BYTES >> 20} MiB")
                if self.extends_windows:
                    self.h2.acknowledge_received_data(length, number)
            case StreamEnded(stream_id=number):
                self.streams[number].ended_at = time.time()
            case StreamReset(stream_id=number, error_code=code):
                self.streams[number].error = f"the server reset the stream with the error code {code}"
            case PingAckReceived():
                self.pongs += 1
            case RemoteSettingsChanged():
                self.settings_received = True
            case ConnectionTerminated(error_code=code):
                self.failure = WireError("closed", f"the server ended the connection with the error code {code}")
            case TrailersReceived() | _:
                pass


class Http2Client(Client):
    """A client that sends requests over HTTP/2."""

    def send_in_order(self, cases: Iterable[QueryVariant], connection: int = 0) -> list[Exchange]:
        """Send requests sequentially on a connection. After a failure, continue on a new connection."""
        exchanges: list[Exchange] = []
        rest = list(cases)
        failures = 0
        while rest and failures < MAX_FAILURES:
            part = self._send(rest, connection, streams=1)
            exchanges += part
            rest = rest[len(part) :]
            failures += sum(exchange.response is None for exchange in part)
        return exchanges

    def send_concurrently(self, cases: Sequence[QueryVariant], connections: int) -> list[Exchange]:
        """Distribute requests over several connections, each with up to ``STREAMS`` concurrent streams."""
        with ThreadPoolExecutor(connections) as pool:
            numbers = range(min(connections, len(cases)))
            parts = pool.map(lambda number: self._send(cases[number::connections], number), numbers)
            return [exchange for part in parts for exchange in part]

    def send_with_small_windows(self, cases: Sequence[QueryVariant], window: int) -> list[Exchange]:
        """Send requests on concurrent streams with flow-control windows of only ``window`` bytes."""
        return self._send(cases, 0, window=window)

    def _send(
        self, cases: Sequence[QueryVariant], number: int, *, streams: int = STREAMS, window: int = WINDOW_BYTES
    ) -> list[Exchange]:
        """Send requests on a connection until it fails. Return at least one exchange, even if connecting fails."""
        waiting = list(cases)
        try:
            with Http2Connection(self.endpoint, self.timeout, window=window) as connection:
                connection.receive_until(lambda: connection.settings_received)
                limit = max(1, min(streams, connection.max_streams))
                while waiting and connection.failure is None:
                    unfinished = [stream for stream in connection.streams.values() if not stream.ended]
                    for case in waiting[: limit - len(unfinished)]:
                        connection.start(case, self.prepare(case))
                        waiting.remove(case)
                    connection.flush()
                    if not connection.receive_until(partial(connection.has_ended, connection.ended + 1)):
                        break
                else:
                    connection.receive_until(partial(connection.has_ended, len(cases)))
                if not connection.streams:
                    raise connection.failure or WireError("silent", "the server sent no SETTINGS frame")
                exchanges = connection.exchanges(number)
        except (H2Error, WireError) as error:
            failure = error if isinstance(error, WireError) else WireError("grammar", str(error))
            request = self.prepare(cases[0])
            exchanges = [Stream(case=cases[0], target=request.target, sent_at=time.time()).exchange(number, failure)]
        for exchange in exchanges:
            if exchange.response:
                self.retain(exchange.response)
        return exchanges
