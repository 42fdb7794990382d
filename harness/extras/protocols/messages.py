"""Tests whether WebSocket servers echo each message and follow RFC 6455."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from harness.runtime import Endpoint, endpoint_of
from harness.verify.checks import Check, Finding, check, excerpt
from harness.verify.checks.evidence import Evidence, QueryVariant
from harness.verify.checks.verification_client import VerificationTask
from harness.verify.wire import MAX_BODY_BYTES, WireError

WEBSOCKET = frozenset({"websocket"})
LENGTHS = (5, 125, 126, 127, 512, 1_024)  # message lengths; above 125, the frame header has an extended length field
DRAWN = {True: 200, False: 12}  # number of random messages if the verification is thorough (True) or brief (False)
IN_FLIGHT = 16
NORMAL_CLOSURE = 1000
TEXT = "aäß€😀"  # characters of one to four bytes in UTF-8
PING_BYTES = b"tfb-ping"

Content = str | bytes


def join(parts: Sequence[Content]) -> Content:
    """Join the fragments of a message."""
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if texts else b"".join(part for part in parts if isinstance(part, bytes | bytearray))


class MessageConnection:
    """A WebSocket connection for verification. It is not thread-safe."""

    def __init__(self, endpoint: Endpoint, target: str, timeout: float) -> None:
        """Connect and wait for the server to accept the upgrade. Raises WireError if it does not."""
        self._timeout = timeout
        self._peer = WSConnection(ConnectionType.CLIENT)
        self._events: list[Event] = []
        try:
            self._socket = endpoint.connect(timeout)
        except OSError as error:
            raise WireError("refused", f"cannot connect to {endpoint.place}: {error}") from error
        try:
            self.send(Request(host=endpoint.authority, target=target))
            consent = self.receive()
        except WireError:
            self._socket.close()
            raise
        if not isinstance(consent, AcceptConnection):
            self._socket.close()
            status = consent.status_code if isinstance(consent, RejectConnection) else "none"
            raise WireError("grammar", f"the server does not accept the upgrade; status: {status}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, *events: Event) -> None:
        """Send frames. Raises WireError if the connection is closed."""
        try:
            self._socket.sendall(b"".join(self._peer.send(event) for event in events))
        except (OSError, ProtocolError) as error:  # ProtocolError: the server has already sent a close frame
            raise WireError("closed", f"the server closed the connection: {error}") from error

    def receive(self) -> Event:
        """Return the next event. Raises WireError on a timeout, a closed connection or a protocol violation."""
        deadline = time.monotonic() + self._timeout
        while not self._events:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self._socket.recv(65_536)
                self._peer.receive_data(data or None)
                self._events += self._peer.events()
            except TimeoutError as error:
                raise WireError("silent", f"no further bytes within {self._timeout:g} s") from error
            except OSError as error:
                raise WireError("closed", f"the server closed the connection: {error}") from error
            except ProtocolError as error:
                raise WireError("grammar", f"the server violated RFC 6455: {error}") from error
        return self._events.pop(0)

    def receive_message(self) -> Content:
        """Return the next complete message. Raises WireError as ``receive`` does."""
        parts: list[Content] = []
        deadline, size = time.monotonic() + self._timeout, 0
        while True:
            event = self.receive()
            if time.monotonic() > deadline:
                raise WireError("silent", f"no complete message within {self._timeout:g} s")
            if size > MAX_BODY_BYTES:
                raise WireError("grammar", f"a message exceeds the limit of {MAX_BODY_BYTES >> 20} MiB")
            if isinstance(event, Message):
                parts.append(event.data)
                size += len(event.data)
                if event.message_finished:
                    return join(parts)
            elif isinstance(event, CloseConnection):
                raise WireError("closed", f"the server closed the connection with the code {event.code}")

    def closes(self) -> bool:
        """Return whether the server closes the connection within the timeout."""
        with suppress(OSError):
            self._socket.settimeout(self._timeout)
            return self._socket.recv(1) == b""
        return False


@dataclass(kw_only=True)
class MessageEvidence:
    """Outcomes of the probes: for each probe, the (expected, actual) pairs that differ."""

    outcomes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Run every probe against the server and record the outcomes."""
    observations = evidence.extension = MessageEvidence()
    for name, probe in PROBES.items():
        try:
            outcome = list(probe(task))
        except WireError as error:
            outcome = [("communication according to RFC 6455", str(error))]
        observations.outcomes[name] = outcome


def _connect(task: VerificationTask) -> MessageConnection:
    return MessageConnection(endpoint_of(task.server, task.test_type), task.url, task.timeout)


def _message(content: Content, *, finished: bool = True) -> Event:
    kind = TextMessage if isinstance(content, str) else BytesMessage
    return kind(data=content, message_finished=finished)  # type: ignore[arg-type]


def _contents(number: int) -> Iterator[Content]:
    """Yield a message of each length in ``LENGTHS``, then ``number`` messages of random length."""
    dice = random.Random()
    for length in (*LENGTHS, *(dice.randint(LENGTHS[0], LENGTHS[-1]) for _ in range(number))):
        if dice.random() < 0.5:
            yield dice.randbytes(length)
        else:
            yield "".join(dice.choice(TEXT) for _ in range(length // 4)) or "text"


EchoDifferences = Iterator[tuple[str, str]]


def _upgrade(task: VerificationTask) -> EchoDifferences:
    with _connect(task):
        yield from ()


def _echoes(task: VerificationTask) -> EchoDifferences:
    contents = list(_contents(DRAWN[task.thorough]))
    with _connect(task) as connection:
        for start in range(0, len(contents), IN_FLIGHT):
            sent = contents[start : start + IN_FLIGHT]
            connection.send(*map(_message, sent))
            for content in sent:
                yield from _difference(content, connection.receive_message())


def _fragments(task: VerificationTask) -> EchoDifferences:
    messages: Sequence[Sequence[Content]] = ((TEXT, "", TEXT), (b"first", b"\0second"))
    for parts in messages:
        with _connect(task) as connection:
            last = len(parts) - 1
            for index, part in enumerate(parts):
                connection.send(_message(part, finished=index == last))
                if index == 0:
                    connection.send(Ping(payload=PING_BYTES))  # the RFC permits control frames between fragments
            yield from _difference(join(parts), connection.receive_message())


def _ping(task: VerificationTask) -> EchoDifferences:
    with _connect(task) as connection:
        connection.send(Ping(payload=PING_BYTES))
        event = connection.receive()
        if not isinstance(event, Pong) or bytes(event.payload) != PING_BYTES:
            yield f"a pong with {PING_BYTES!r}", excerpt(repr(event))


def _close(task: VerificationTask) -> EchoDifferences:
    with _connect(task) as connection:
        connection.send(CloseConnection(code=NORMAL_CLOSURE))
        event = connection.receive()
        if not isinstance(event, CloseConnection) or event.code != NORMAL_CLOSURE:
            yield f"a close frame with the code {NORMAL_CLOSURE}", excerpt(repr(event))
        elif not connection.closes():
            yield "a closed connection after the close frames", "an open connection"


def _plain_get(task: VerificationTask) -> EchoDifferences:
    response = task.load_client().send_in_order([QueryVariant(name="plain")])[0].response
    status = response.status if response else None
    if status is None or not 400 <= status < 500:
        yield "a 4xx status", f"{status or 'no response'}"


def _difference(sent: Content, received: Content) -> EchoDifferences:
    if type(sent) is not type(received) or sent != received:
        yield excerpt(repr(sent)), excerpt(repr(received))


PROBES: dict[str, Callable[[VerificationTask], EchoDifferences]] = {
    "upgrade": _upgrade,
    "echoes": _echoes,
    "fragments": _fragments,
    "ping": _ping,
    "close": _close,
    "plain": _plain_get,
}


def _probed(name: str) -> Callable[[Evidence], bool]:
    return lambda evidence: isinstance(evidence.extension, MessageEvidence) and name in evidence.extension.outcomes


def _probe_check(rule: str, name: str, probe: str, message: str) -> Check:
    """Return a check that reports the differences found by a probe."""

    def find(evidence: Evidence) -> Iterator[Finding]:
        assert isinstance(evidence.extension, MessageEvidence)  # noqa: S101 - guaranteed by ``needs``
        for expected, actual in evidence.extension.outcomes[probe]:
            yield Finding(message, expected=expected, actual=actual)

    find.__name__ = name
    return check(rule, WEBSOCKET, _probed(probe))(find)


PROBE_CHECKS = (
    _probe_check("websocket.1", "upgrade_accepted", "upgrade", "the server does not accept a WebSocket connection"),
    _probe_check(
        "websocket.2", "plain_get_refused", "plain", "the server does not reject a GET request without upgrade"
    ),
    _probe_check(
        "websocket.3", "echoes_exact", "echoes", "an echo differs from the message. Return messages unchanged"
    ),
    _probe_check(
        "websocket.4", "fragments_joined", "fragments", "the echo of a fragmented message is wrong. Join fragments"
    ),
    _probe_check("websocket.5", "ping_answered", "ping", "the server does not reply to a ping with a matching pong"),
    _probe_check("websocket.6", "close_answered", "close", "the server does not complete the closing handshake"),
)
