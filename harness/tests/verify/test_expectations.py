"""Services are judged by their declared expectations, before and during a load, without a database."""

import gzip
import json
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.plan.requests import Expect, PreparedRequest
from harness.records.loads import ClosedLoop, OpenLoop
from harness.records.trial_record import TrialEvidence
from harness.records.verification_record import Outcome
from harness.runtime import NO_DATABASE
from harness.tests.approve import approve
from harness.tests.doubles.http_double import ReceivedRequest, Reply
from harness.tests.doubles.service import REQUESTS, ServiceDouble
from harness.tests.verify.subjects import exchange, judge_rule, objections
from harness.tests.verify.trials import WITH_GENERATOR, verify_load
from harness.verify.checks import expectations
from harness.verify.checks.evidence import Evidence
from harness.verify.trial import TrialContext
from harness.verify.verifier import Verifier

MANY = ClosedLoop(connections=16)
Wrong = Callable[[ReceivedRequest, Reply], Reply]


def item(request: ReceivedRequest) -> bool:
    return request.method == "GET" and request.path.startswith("/items/") and int(request.path[7:]) <= 100


def version(request: ReceivedRequest) -> bool:
    return request.path == "/version"


def changed(of: Callable[[ReceivedRequest], bool], **change: Any) -> Wrong:
    """Return a function that changes the replies to requests that satisfy ``of``."""
    return lambda request, reply: replace(reply, **change) if of(request) else reply


def wrong_for_some_values(request: ReceivedRequest, reply: Reply) -> Reply:
    some = item(request) and request.path[-1] == "7"
    return replace(reply, body=reply.body.replace(b'"id": ', b'"id": 9')) if some else reply


def cut_short(request: ReceivedRequest, reply: Reply) -> Reply:
    promised = [("Content-Length", f"{len(reply.body) + 10}")]
    return replace(reply, headers=promised, close=True) if item(request) else reply


WRONG: list[tuple[Wrong, str, str]] = [  # (change to replies, affected request, check that fails)
    (changed(version, status=500, body=b"out of\x1border"), "version", "declared-status"),
    (wrong_for_some_values, "item", "declared-json"),
    (changed(item, content_type="text/html"), "item", "declared-content-type"),
    (cut_short, "item", "declared-answer"),
    (changed(version, body=b"1.1\n"), "version", "declared-body"),
    (changed(lambda asked: asked.method == "DELETE", status=200), "delete", "declared-status"),
    (changed(lambda asked: asked.method == "POST", body=b'{"name": "pen", "count": 1}'), "create", "declared-json"),
]


def checked(service: ServiceDouble, *names: str, thorough: bool = True) -> dict[str, set[str]]:
    """Return the failed checks of the named test types, by default of all."""
    verifier = Verifier()
    verifier.start_process(NO_DATABASE)
    assert verifier.verify_http(service.server, process=0, thorough=thorough).outcome is Outcome.PASS
    verdicts = [
        verifier.verify_test_type(service.server, kind, NO_DATABASE, process=0, thorough=thorough, loads=(MANY,))
        for kind in service.test_types.values()
        if not names or kind.name in names
    ]
    assert verifier.end_process(NO_DATABASE) == ()
    return {verdict.test_type: set(objections(verdict)) for verdict in verdicts}


def trial(service: ServiceDouble, name: str, load: ClosedLoop | OpenLoop = MANY) -> TrialEvidence:
    kind = service.test_types[name]
    context = TrialContext(
        server=service.server, test_type=kind, load=load, database=NO_DATABASE, seconds=1.5, rate=None, seed=5
    )
    return verify_load(Verifier().verify_trial(context))[0]


@pytest.mark.parametrize("thorough", [True, False])
def test_a_correct_service_passes(*, thorough: bool) -> None:
    with ServiceDouble() as service:
        found = checked(service, thorough=thorough)
        assert {body.decode() for body in service.bodies} >= {'{"name": "ink äöü", "count": 3}'}
    assert found == {str(request["name"]): set() for request in REQUESTS}


@pytest.mark.parametrize(("slow_requests", "late"), [(1, set[str]()), (99, {"declared-time"})])
def test_a_route_may_need_time_to_initialise(slow_requests: int, late: set[str]) -> None:
    came: list[str] = []

    def initialised(request: ReceivedRequest, reply: Reply) -> Reply:
        came.append(request.path)
        if version(request) and came.count(request.path) <= slow_requests:
            time.sleep(1.0)
        return reply

    with ServiceDouble(initialised) as service:
        kind = service.test_types["version"]
        verdict = Verifier(timeout=0.5).verify_test_type(
            service.server, kind, NO_DATABASE, process=0, thorough=False, loads=(MANY,)
        )
    assert set(objections(verdict)) == late


def test_brief_verification_sends_the_first_values() -> None:
    came: list[str] = []

    def noted(request: ReceivedRequest, reply: Reply) -> Reply:
        came.append(request.path)
        return reply

    with ServiceDouble(noted) as service:
        checked(service, "item", thorough=False)
        assert sorted(came) == sorted(asked.target for asked in service.test_types["item"].requests[:11])


PARTS = {"id": 7, "tags": ["a", {"b": 1}], "on": True}
SIZED, AS_JSON, TYPED = {"size": [4, 6]}, {"json": PARTS}, {"content_type": "text/plain; charset=utf-8"}
BODY, BOUNDED = {"body": "hello"}, {"json_schema": {"properties": {"id": {"maximum": 6}}}}
JUDGED: dict[str, Any] = {  # name -> (expectation, response body, response fields)
    "right": (SIZED | BODY, b"hello", {}),
    "other status": ({"status": 404}, b"h" * 81, {}),
    "other everything": (SIZED | BODY | TYPED | AS_JSON, b"", {"status": 500}),
    "silent": (BODY, b"", {"response": None, "error": "nothing came"}),
    "stray": (BODY, b"hello", {"unsolicited": b"x" * 61}),
    **{
        kind: (TYPED, b"", {"headers": [("Content-Type", kind)]})
        for kind in (
            "Text/Plain; Charset=UTF-8; x=y",
            "text/html; charset=utf-8",
            "text/plain; charset=x",
            "text/plain",
        )
    },
    "two types": (TYPED, b"", {"headers": [("Content-Type", "text/plain")] * 2}),
    "no type": (TYPED, b"", {}),
    **{f"{size} bytes": (SIZED, b"x" * size, {}) for size in (3, 4, 6, 7)},
    "other body": (BODY, b"Hello", {}),
    "no JSON": (AS_JSON, b"{'id': 7}", {}),
    **{
        f"{part}": (AS_JSON, json.dumps(PARTS | part).encode(), {})
        for part in (
            *({"id": "7"}, {"on": 1}, {"tags": ["a", {"b": 1}, 2]}, {"tags": ["a", {"b": 2}]}, {"tags": ["a", {}]}),
            {"id": 8, "tags": ["b", {}], "on": None, "more": 1},
        )
    },
    "no object": (AS_JSON, b"[7]", {}),
    "not bounded": (BOUNDED | AS_JSON, json.dumps(PARTS).encode(), {}),
    "long target": (BODY, b"", {"target": "/" + "x" * 100}),
} | {
    f"{coding} {place}": (BODY, body, {"headers": [("Content-Encoding", coding)]})
    for coding, bodies in {
        "gzip": (gzip.compress(b"hello"), gzip.compress(b"HELLO"), bytes.fromhex("1f8b0800000000000003"), b"hello"),
        "X-GZIP": (gzip.compress(b"hello"),),
        "deflate": (zlib.compress(b"hello"), gzip.compress(b"hello")),
        "identity": (b"hello",),
        "deflate , gzip": (gzip.compress(zlib.compress(b"hello")), zlib.compress(gzip.compress(b"hello")), b"hello"),
        "gzip, br": (b"hello", b""),
    }.items()
    for place, body in enumerate(bodies)
}


def judged(expect: dict[str, Any], body: bytes, came: dict[str, Any]) -> list[str]:
    more = dict(came)
    asked = PreparedRequest(request="item", target=more.pop("target", "/items/7"), expect=Expect.model_validate(expect))
    answer = exchange(body, expectations.declared_variant(asked), **more)
    return judge_rule(Evidence(test_type="declared", exchanges=[answer]), "declared")


def test_findings_for_declared_responses_are_as_approved() -> None:
    approve("verify-declared", {name: judged(*each) for name, each in JUDGED.items()})


@pytest.mark.parametrize(("wrong", "name", "check"), WRONG)
def test_wrong_responses_fail_only_their_request(wrong: Wrong, name: str, check: str) -> None:
    with ServiceDouble(wrong) as service:
        found = checked(service, name, "head")
    assert found == {name: {check}, "head": set()}


def test_request_names_do_not_select_techempower_rules() -> None:
    one = next(request for request in REQUESTS if request["name"] == "version")
    with ServiceDouble(requests=tuple({**one, "name": name} for name in ("json", "db", "update", "order"))) as service:
        found = checked(service)
    assert found == {"json": set(), "db": set(), "update": set(), "order": set()}


class TestUnderLoad:
    pytestmark = WITH_GENERATOR

    @pytest.mark.parametrize("load", [MANY, OpenLoop(rate=300, connections=16)])
    def test_a_correct_service_passes_under_load(self, load: ClosedLoop | OpenLoop) -> None:
        with ServiceDouble() as service:
            seen = {name: trial(service, name, load) for name in service.test_types}
        assert {name: evidence.objections for name, evidence in seen.items()} == dict.fromkeys(seen, ())
        assert min(evidence.judged for evidence in seen.values()) > 100

    @pytest.mark.parametrize(("wrong", "name", "check"), WRONG)
    def test_wrong_responses_under_load_fail_the_trial(self, wrong: Wrong, name: str, check: str) -> None:
        with ServiceDouble(wrong, when_busy=True) as service:
            assert checked(service, name) == {name: set()}
            evidence = trial(service, name)
        # A truncated response cannot be judged, but it shows in the request counts.
        wanted = "one-answer-a-request" if check == "declared-answer" else check
        assert wanted in {result.check for result in evidence.objections}
