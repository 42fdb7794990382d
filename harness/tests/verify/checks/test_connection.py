"""What the server as a whole may do with requests that are odd, and with what is no HTTP."""

import socket

import pytest

from harness.records.models import Outcome
from harness.tests.doubles.reference import ReferenceServer, Session
from harness.tests.verify.subjects import exchange
from harness.verify.checks import Check
from harness.verify.checks.connection import (
    GARBAGE,
    garbage,
    gather,
    oversized_header,
    unknown_path,
    unsupported_method,
)
from harness.verify.checks.evidence import Evidence, Wire
from harness.verify.wire import WireError

ODD = "garbage: random bytes"
GOOD, FINE, POOR = Outcome.PASS, Outcome.WARN, Outcome.FAIL


CLOSED = Wire(failed=WireError("closed", "it was closed"))


def answered(status: int) -> Wire:
    return Wire(responses=tuple(filter(None, (exchange(status=status).response,))))


@pytest.mark.parametrize(
    ("name", "check", "seen", "outcome"),
    [
        (ODD, garbage, answered(400), GOOD),
        (ODD, garbage, answered(399), POOR),  # 4xx is a refusal, what is below is none
        (ODD, garbage, answered(499), GOOD),
        (ODD, garbage, answered(500), POOR),
        (ODD, garbage, answered(501), GOOD),
        (ODD, garbage, answered(503), POOR),
        (ODD, garbage, answered(505), GOOD),
        (ODD, garbage, CLOSED, GOOD),
        ("oversized", oversized_header, answered(431), GOOD),
        ("oversized", oversized_header, answered(200), FINE),
        ("unknown", unknown_path, answered(404), GOOD),
        ("unknown", unknown_path, answered(405), POOR),
        ("unknown", unknown_path, CLOSED, POOR),
        *(("method", unsupported_method, answered(status), GOOD) for status in (404, 405, 501)),
        *(("method", unsupported_method, answered(status), POOR) for status in (200, 204, 400, 500)),
    ],
)
def test_what_is_refused_and_how(name: str, check: Check, seen: Wire, outcome: Outcome) -> None:
    assert check.run(Evidence(test_type="http", wire={name: seen})).outcome is outcome


@pytest.mark.parametrize(
    ("answers", "alive"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", True),
        (b"this is no HTTP\r\n\r\n", True),  # other checks object
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", True),
        (b"", False),
    ],
)
def test_a_server_lives_on_that_says_anything(answers: bytes, alive: bool) -> None:
    class Saying(ReferenceServer):
        def converse(self, line: socket.socket, session: Session) -> None:
            line.recv(65536)
            line.sendall(answers)

    with Saying() as server:
        found = gather(server.endpoint, ["/json"], patience=0.5)
    assert {found[name].alive for name in ("oversized", *GARBAGE)} == {alive}
