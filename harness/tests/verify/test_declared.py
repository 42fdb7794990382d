"""A service of one's own is judged by what it declares, before and under load, without any database."""

import gzip
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.records.models import Closed, Evidence, Open, Outcome
from harness.runtime import NO_DATABASE
from harness.tests.doubles.reference import Reply, Request
from harness.tests.doubles.service import REQUESTS, Service
from harness.tests.verify.subjects import objections
from harness.tests.verify.trials import WITH_GENERATOR, audited
from harness.verify.verifier import Verifier

MANY = Closed(connections=16)
Wrong = Callable[[Request, Reply], Reply]


def item(request: Request) -> bool:
    return request.method == "GET" and request.path.startswith("/items/") and int(request.path[7:]) <= 100


def version(request: Request) -> bool:
    return request.path == "/version"


def changed(of: Callable[[Request], bool], **change: Any) -> Wrong:
    """These answers are otherwise."""
    return lambda request, reply: replace(reply, **change) if of(request) else reply


def wrong_for_some_values(request: Request, reply: Reply) -> Reply:
    some = item(request) and request.path[-1] == "7"
    return replace(reply, body=reply.body.replace(b'"id": ', b'"id": 9')) if some else reply


def priced_below_zero(request: Request, reply: Reply) -> Reply:
    return replace(reply, body=reply.body.replace(b'"price": ', b'"price": -')) if item(request) else reply


def cut_short(request: Request, reply: Reply) -> Reply:
    promised = [("Content-Length", f"{len(reply.body) + 10}")]
    return replace(reply, headers=promised, close=True) if item(request) else reply


def finds_all(request: Request, reply: Reply) -> Reply:
    return replace(reply, status=200) if reply.status == 404 else reply


UNSIZED = tuple({**one, "expect": {k: v for k, v in one["expect"].items() if k != "size"}} for one in REQUESTS)


def coded(coding: str, encode: Callable[[bytes], bytes]) -> Wrong:
    """Bodies of items and of the version are compressed, or said to be."""
    return lambda request, reply: (
        replace(reply, body=encode(reply.body), headers=[("Content-Encoding", coding)])
        if item(request) or version(request)
        else reply
    )


WRONG: list[tuple[Wrong, str, str]] = [  # what, the one request that it is seen of, and the check that says so
    (changed(version, status=500, body=b"out of\x1border"), "version", "declared-status"),
    (wrong_for_some_values, "item", "declared-json"),
    (changed(item, content_type="text/html"), "item", "declared-content-type"),
    (priced_below_zero, "item", "declared-json"),
    (changed(item, body=b"{'id': 1}"), "item", "declared-json"),
    (cut_short, "item", "declared-answer"),
    (changed(version, body=b"1.1\n"), "version", "declared-body"),
    (changed(version, body=b"1.0\n\n"), "version", "declared-body"),
    (finds_all, "missing", "declared-status"),
    (changed(lambda asked: asked.method == "DELETE", status=200), "delete", "declared-status"),
    (changed(lambda asked: asked.method == "POST", body=b'{"name": "pen", "count": 1}'), "create", "declared-json"),
]


def checked(service: Service, *names: str, thorough: bool = True) -> dict[str, set[str]]:
    """The checks that object, by test type: of these, or of all."""
    verifier = Verifier()
    verifier.begin(NO_DATABASE)
    assert verifier.connection(service.server, process=0, thorough=thorough).outcome is Outcome.PASS
    verdicts = [
        verifier.check(service.server, kind, NO_DATABASE, process=0, thorough=thorough, loads=(MANY,))
        for kind in service.test_types.values()
        if not names or kind.name in names
    ]
    assert verifier.end(NO_DATABASE) == ()
    return {verdict.test_type: set(objections(verdict)) for verdict in verdicts}


def trial(service: Service, name: str, load: Closed | Open = MANY) -> Evidence:
    kind = service.test_types[name]
    looking = Verifier().trial(service.server, kind, load, NO_DATABASE, seconds=1.5, rate=None, seed=5)
    return audited(service.server, kind, load, looking, seconds=1.5, seed=5)[0]


@pytest.mark.parametrize("thorough", [True, False])
def test_a_service_that_keeps_its_word_passes(*, thorough: bool) -> None:
    with Service() as service:
        found = checked(service, thorough=thorough)
        assert {body.decode() for body in service.came} >= {'{"name": "ink äöü", "count": 3}'}
    assert found == {str(request["name"]): set() for request in REQUESTS}


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("identity", bytes),
        ("deflate, gzip", lambda body: gzip.compress(zlib.compress(body))),
    ],
)
def test_what_is_compressed_is_judged_by_what_it_holds(coding: str, encode: Callable[[bytes], bytes]) -> None:
    with Service(coded(coding, encode), UNSIZED) as service:
        assert checked(service, "item", "version") == {"item": set(), "version": set()}


@pytest.mark.parametrize(
    ("coding", "encode", "said"),
    [
        ("br", bytes, "Content-Encoding br is not read here"),
        ("gzip", bytes, "not what Content-Encoding gzip says"),
        ("gzip", lambda body: gzip.compress(body)[:-9], "no end within 64 MiB"),
        ("gzip", lambda body: gzip.compress(body.replace(b"1", b"2")), "another"),
        ("identity", lambda body: body.ljust(1 + (1 << 20)), "no more than 1 MiB is looked at"),
    ],
)
def test_what_cannot_be_read_or_holds_something_else_is_told(
    coding: str, encode: Callable[[bytes], bytes], said: str
) -> None:
    with Service(coded(coding, encode), UNSIZED) as service:
        kind = service.test_types["version"]
        verdict = Verifier().check(service.server, kind, NO_DATABASE, process=0, thorough=True, loads=(MANY,))
    assert said in " ".join(result.message for result in objections(verdict).values())


@pytest.mark.parametrize(("wrong", "name", "check"), WRONG)
def test_what_is_wrong_is_seen_of_its_request_alone(wrong: Wrong, name: str, check: str) -> None:
    with Service(wrong) as service:
        found = checked(service, name, "head")
    assert found == {name: {check}, "head": set()}


def test_an_objection_names_the_request_what_was_expected_and_what_came() -> None:
    with Service(wrong_for_some_values) as service:
        kind = service.test_types["item"]
        verdict = Verifier().check(service.server, kind, NO_DATABASE, process=0, thorough=True, loads=(MANY,))
    result = objections(verdict)["declared-json"]
    assert result.message.startswith("request item (GET /items/")
    assert "$.id is another (and " in result.message
    assert result.actual == f"9{result.expected}"


def test_a_name_of_one_of_techempower_s_tests_brings_none_of_its_rules() -> None:
    one = next(request for request in REQUESTS if request["name"] == "version")
    with Service(requests=tuple({**one, "name": name} for name in ("json", "db", "update", "order"))) as service:
        found = checked(service)
    assert found == {"json": set(), "db": set(), "update": set(), "order": set()}


class TestUnderLoad:
    pytestmark = WITH_GENERATOR

    @pytest.mark.parametrize("load", [MANY, Open(rate=300, connections=16)])
    def test_a_service_that_keeps_its_word_passes(self, load: Closed | Open) -> None:
        with Service() as service:
            seen = {name: trial(service, name, load) for name in service.test_types}
        assert {name: evidence.objections for name, evidence in seen.items()} == dict.fromkeys(seen, ())
        assert min(evidence.answers for evidence in seen.values()) > 100

    @pytest.mark.parametrize(("wrong", "name", "check"), WRONG)
    def test_what_is_wrong_only_when_it_is_busy_is_seen_in_the_trial(self, wrong: Wrong, name: str, check: str) -> None:
        with Service(wrong, when_busy=True) as service:
            assert checked(service, name) == {name: set()}
            evidence = trial(service, name)
        # Of a connection that ends within an answer there is none to look at: the account misses it.
        wanted = "one-answer-a-request" if check == "declared-answer" else check
        assert wanted in {result.check for result in evidence.objections}
