"""Tests for the checks that send unusual requests, or bytes that are not HTTP."""

import re
import socket
from dataclasses import replace

import pytest

from harness.records.verification_record import Outcome
from harness.tests.approve import approve
from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.verify.subjects import Listening, exchange, finding_lines
from harness.verify.checks.connection import GARBAGE, gather
from harness.verify.checks.evidence import Evidence, ProbeResult
from harness.verify.verification import run_checks
from harness.verify.wire import WireError

ODD = "garbage: random bytes"
CLOSED = ProbeResult(failure=WireError("closed", "it was closed"))


def answered(*statuses: int, kind: str = "text/plain") -> ProbeResult:
    made = (exchange(f"of {n}", headers=[("Content-Type", kind)], status=n).response for n in statuses)
    return ProbeResult(responses=tuple(filter(None, made)))


SILENT = ProbeResult(failure=WireError("silent", "no further byte within 3 s"))
PLAIN = answered(200)
ENDED = replace(PLAIN, closed=True)
LENGTHS = answered(200, 200, 404)


def test_findings_for_unusual_requests_are_as_approved() -> None:
    probes: dict[str, list[ProbeResult]] = {
        ODD: [*map(answered, (399, 400, 499, 500, 501, 503, 505)), CLOSED, SILENT, replace(CLOSED, alive=False)],
        "oversized": [*map(answered, (200, 431, 500)), replace(answered(200), alive=False), SILENT],
        "unknown": [answered(404), answered(405), CLOSED],
        "method": [*map(answered, (200, 204, 400, 404, 405, 500, 501)), CLOSED],
        "close": [CLOSED, replace(PLAIN, closed=False), ENDED],
        "names": [replace(PLAIN, closed=False), ENDED, SILENT],
        "head": [*(answered(*two) for two in ((200, 200), (404, 200), (405, 200), (501, 404), (503, 200), (200,)))],
        "pipeline": [LENGTHS, answered(200, 404, 200), answered(200, 500, 404), answered(200, 200), CLOSED],
        "halves": [PLAIN, answered(200, kind="text/html")],
        "segments": [answered(404, kind="text/html")],
        "absolute": [answered(404)],
        "long-query": [answered(414)],
    }
    beside = {"plain": PLAIN, "halves-expected": PLAIN, "pipeline-expected": LENGTHS, "close": ENDED}
    failing = {"pipeline-expected": CLOSED, "pipeline": CLOSED, "garbage: a line": CLOSED}
    findings = {}
    for name, place, one in ((name, *each) for name, several in probes.items() for each in enumerate(several)):
        evidence = Evidence(test_type="http", probes={**beside, name: one})
        findings[f"{name} {place}"] = finding_lines(*run_checks(evidence))
        theirs = run_checks(replace(evidence, rules="techempower"))
        assert {result.outcome for result in theirs} <= {Outcome.PASS, Outcome.WARN}
    assert finding_lines(*run_checks(Evidence(test_type="http", probes=failing))) == []
    approve("verify-odd", findings)


def test_probes_of_the_reference_server_are_as_approved() -> None:
    with Listening() as server:
        exchanges = gather(server.endpoint, ["/json", "/plaintext"], timeout=10.0)
        requests = [re.sub("-[0-9a-f]{8}", "-SUFFIX", line) for line in server.take_requests()]
    del exchanges["oversized"]  # the server may close the connection before the client has read the response
    shown = {name: " ".join(f"{r.status} {r.body.decode()}" for r in one.responses) for name, one in exchanges.items()}
    after = {name: f"{one.error} {one.closed} {one.alive}" for name, one in exchanges.items()}
    approve("verify-odd-asked", {"asked": requests, "answers": shown, "after": after})


@pytest.mark.parametrize(
    ("answers", "alive"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", True),
        (b"this is no HTTP\r\n\r\n", True),  # other checks report malformed responses
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", True),
        (b"", False),
    ],
)
def test_any_response_shows_that_a_server_is_alive(answers: bytes, alive: bool) -> None:
    class Saying(ReferenceServer):
        def converse(self, line: socket.socket, session: ClientSession) -> None:
            line.recv(65536)
            line.sendall(answers)

    with Saying() as server:
        found = gather(server.endpoint, ["/json"], timeout=0.5)
    assert {found[name].alive for name in ("oversized", *GARBAGE)} == {alive}
