"""Helpers that verify server doubles and format the results."""

import threading
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from types import SimpleNamespace
from typing import Any, cast

from harness.plan.implementation import Rules
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.runtime import DatabaseAddress, Server, Upstream
from harness.tests.doubles.http_double import ReceivedRequest
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.upstream import FakeUpstream
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant
from harness.verify.verification import PLAIN, run_checks
from harness.verify.verifier import Verifier
from harness.verify.wire import Response

TIMEOUT_SECONDS = 0.7  # short, because rogues run in this process
WAITING_TIMEOUT_SECONDS = 5.0  # for rogues that wait or call an upstream server


def as_server(double: ReferenceServer, upstream: Upstream | None = None, rules: Rules = "tfb") -> Server:
    """Wrap a server double in an object like the servers that runtimes return."""
    types = {name: TEST_TYPES[name] for name in double.urls if name in TEST_TYPES}
    implementation = SimpleNamespace(urls=double.urls, test_types=types, name="double", rules=rules)
    return cast("Server", SimpleNamespace(implementation=implementation, endpoint=double.endpoint, upstream=upstream))


def verified(
    double: ReferenceServer,
    test_type: str,
    database: DatabaseAddress | None = None,
    upstream: Upstream | None = None,
    *,
    thorough: bool = True,
    verifier: Verifier | None = None,
) -> VerificationRecord:
    """Verify a test type of a server double, or the server as a whole if ``test_type`` is "http"."""
    server, verifier = as_server(double, upstream), verifier or Verifier()
    if test_type == "http":
        return verifier.verify_http(server, process=3, thorough=thorough)
    loads, kind = (ClosedLoop(connections=8),), TEST_TYPES[test_type]
    return verifier.verify_test_type(server, kind, database, process=3, thorough=thorough, loads=loads)


def exchange(
    body: bytes | str = b"",
    case: QueryVariant = PLAIN,
    headers: Iterable[tuple[str, str]] = (),
    status: int = 200,
    **fields: Any,
) -> Exchange:
    data = body.encode() if isinstance(body, str) else body
    response = Response(status, "", tuple(headers), data, len(data), "content-length")
    usual: dict[str, Any] = {"target": "/", "sent_at": 0.0, "received_at": 0.0, "connection": 0, "response": response}
    return Exchange(case=case, **usual | fields)


def finding_lines(*results: CheckResult) -> list[str]:
    """Return one line per finding, in the format of approved files."""
    return [
        f"{'waived ' * one.waived}{one.outcome} {one.check} ({one.rule}): {one.message} | {one.expected} | {one.actual}"
        for one in results
        if one.outcome is not Outcome.PASS
    ]


def judge_rule(evidence: Evidence, rule: str) -> list[str]:
    """Return the findings for all rules whose names start with ``rule``, in the format of approved files."""
    return finding_lines(*(result for result in run_checks(evidence) if result.rule.startswith(rule)))


class Listening(ReferenceServer):
    """A server that records the heads of requests by connection."""

    def __init__(self, database: DatabaseAddress | None = None, upstream: str | None = None) -> None:
        super().__init__(database, upstream)
        self.heads: dict[threading.Thread, list[str]] = {}

    def parse(self, head: bytes) -> ReceivedRequest | None:
        with self.lock:
            self.heads.setdefault(threading.current_thread(), []).append(head.decode("latin-1"))
        return super().parse(head)

    def take_requests(self) -> list[str]:
        """Return all distinct headers, and each connection's request lines with counts. Then clear the record."""
        connections = [[head.partition("\r\n") for head in one] for one in self.heads.values()]
        lines = ([ascii(first[:80].removesuffix(" HTTP/1.1"))[1:-1] for first, _, _ in one] for one in connections)
        alike = Counter(", ".join(f"{len([*same])} × {line}" for line, same in groupby(one)) for one in lines)
        self.heads.clear()
        headers = {rest for one in connections for _, _, rest in one if rest}
        return sorted(headers) + sorted(f"{n} connections: {of}" for of, n in alike.items())


def objections(verdict: VerificationRecord) -> dict[str, CheckResult]:
    return {result.check: result for result in verdict.results if result.outcome is not Outcome.PASS}


def objections_to(rogue: Rogue, database: DatabaseAddress | None) -> dict[str, CheckResult]:
    waits = rogue.test_type in ("delay", "fan-out", "order")
    with FakeUpstream() as upstream, rogue.server(database, upstream.url) as server:
        timeout = WAITING_TIMEOUT_SECONDS if waits else TIMEOUT_SECONDS
        return objections(verified(server, rogue.test_type, database, upstream, verifier=Verifier(timeout)))
