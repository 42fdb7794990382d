"""Checks that compare a service's responses with the expectations declared for its requests."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from harness.plan.requests import Expect, PreparedRequest
from harness.plan.testtypes import DECLARED
from harness.records import safe_read
from harness.records.verification_record import Outcome
from harness.verify import response_schemas
from harness.verify.checks import Check, Finding, all_types_and_server, check, excerpt
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant
from harness.verify.checks.http import parse_media_type
from harness.verify.checks.verification_client import (
    CONCURRENT_CONNECTIONS,
    MAX_RETAINED_BYTES,
    Client,
    VerificationTask,
)

# How often a thorough (True) or brief (False) verification sends each declared request.
SEQUENTIAL_REQUESTS = {True: 40, False: 3}
CONCURRENT_REQUESTS = {True: 160, False: 8}
FIRST_ATTEMPTS = 3  # attempts for a route's first request, because initialising the route may exceed the time limit
RULE = "declared.1"
# Limits for a JSON response: containers (arrays and objects), and values.
MAX_CONTAINERS, MAX_VALUES = 600_000, 6_000_000

ExpectationCheck = Callable[[Expect, Exchange], Iterator[Finding]]


def declared_variant(declared: PreparedRequest) -> QueryVariant:
    """Return a variant that sends a service's declared request."""
    return QueryVariant(name=declared.request, declared=declared)


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Send each declared request with several values, first sequentially and then concurrently."""
    variants_by_request: dict[str, list[QueryVariant]] = {}
    for declared in task.test_type.requests:
        variants_by_request.setdefault(declared.request, []).append(declared_variant(declared))
    for variants in variants_by_request.values():
        _send(task.load_client(), variants, evidence)


def _send(client: Client, variants: Sequence[QueryVariant], evidence: Evidence) -> None:
    for _ in range(FIRST_ATTEMPTS):
        first = client.send_in_order(variants[:1])
        if first[0].error_kind != "silent":
            break
    evidence.exchanges += first
    if first[0].response is None:
        return
    affordable = max(1, MAX_RETAINED_BYTES // 2 // first[0].response.size)
    limits = (SEQUENTIAL_REQUESTS[evidence.thorough], CONCURRENT_REQUESTS[evidence.thorough])
    sequential, concurrent = (min(limit, affordable) for limit in limits)
    cases = list(itertools.islice(itertools.cycle(variants), 1, sequential + concurrent))
    deadline = time.monotonic() + 3.0  # limits the total time, so a slow service receives fewer requests
    in_time = itertools.takewhile(lambda _: time.monotonic() < deadline, cases[:sequential])
    evidence.exchanges += client.send_in_order(in_time)
    if (left := deadline - time.monotonic()) > 0:
        slowest = max(exchange.received_at - exchange.sent_at for exchange in evidence.exchanges)
        largest = max(len(exchange.body) for exchange in evidence.exchanges)
        in_memory = 2 * MAX_RETAINED_BYTES // max(1, largest)
        soon_enough = int(client.timeout / 4 / max(slowest, 1e-3))
        connections = max(1, min(CONCURRENT_CONNECTIONS, in_memory, soon_enough))
        count = connections * max(1, int(left / max(slowest, 1e-3)))
        exchanges = client.send_concurrently(cases[sequential : sequential + count], connections)
        # Ignore requests that timed out, because simultaneous requests may have overloaded a correct service.
        evidence.concurrent += [exchange for exchange in exchanges if exchange.error_kind != "silent"]


def expectation_check(function: ExpectationCheck) -> Check:
    """Turn a function that compares an exchange with an expectation into a check.

    Each message starts with the name of the request. If the function raises ValueError, because it cannot decode or
    parse the body, the check reports the error.
    """

    def find(evidence: Evidence) -> Iterator[Finding]:
        for declared, exchange in _declared(evidence):
            prefix = f"request {declared.request} ({declared.method} {excerpt(declared.target, 100)})"
            try:
                for finding in function(declared.expect, exchange):
                    yield replace(finding, message=f"{prefix}: {finding.message}")
            except ValueError as error:
                yield Finding(f"{prefix}: {error}", expected="a readable body", actual=excerpt(exchange.body))

    find.__name__ = getattr(function, "__name__", "")
    return check(
        RULE, lambda name: name == DECLARED or all_types_and_server(name), lambda evidence: any(_declared(evidence))
    )(find)


def _declared(evidence: Evidence) -> Iterator[tuple[PreparedRequest, Exchange]]:
    """Return (request, exchange) pairs for all declared requests."""
    exchanges = itertools.chain(evidence.all_exchanges, evidence.declared_exchanges)
    return ((exchange.case.declared, exchange) for exchange in exchanges if exchange.case.declared)


@expectation_check
def declared_answer(_: Expect, exchange: Exchange) -> Iterator[Finding]:
    """Require a complete and valid HTTP message in response to every request."""
    if exchange.response is None and exchange.error_kind != "silent":
        yield Finding(f"no complete response: {exchange.error}", expected="a complete response", actual=exchange.error)
    elif exchange.unsolicited:
        yield Finding(
            "bytes follow the response. Declare the exact length of the body",
            expected="no further bytes",
            actual=excerpt(exchange.unsolicited, 60),
        )
    for violation in exchange.response.violations if exchange.response else ():
        yield Finding(violation, expected="an HTTP/1.1 message", outcome=Outcome.WARN)


@expectation_check
def declared_time(_: Expect, exchange: Exchange) -> Iterator[Finding]:
    """Require a response within the time limit."""
    if exchange.error_kind == "silent":
        yield Finding(f"too slow: {exchange.error}", expected="a complete response in time", actual="none")


@expectation_check
def declared_status(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """Require the declared status."""
    response = exchange.response
    if response and response.status != expect.status:
        yield Finding(
            "wrong status. Correct the service or the request's expect.status",
            expected=f"{expect.status}",
            actual=f"{response.status} {response.reason}: {excerpt(response.body, 80)}",
        )


@expectation_check
def declared_content_type(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """Require the declared media type with the declared parameters."""
    if expect.content_type is None or not _has_expected_status(expect, exchange):
        return
    values = exchange.headers("content-type")
    expected_media, expected_parameters = parse_media_type(expect.content_type)
    media, parameters = parse_media_type(values[0]) if len(values) == 1 else (None, {})
    same = all(parameters.get(name, "").lower() == value.lower() for name, value in expected_parameters.items())
    if media != expected_media or not same:
        yield Finding(
            "wrong Content-Type. Correct the service or the request's expect.content_type",
            expected=expect.content_type,
            actual="; ".join(values) or "none",
        )


@expectation_check
def declared_body(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """Require the declared body and a size in the declared range, if the request declares them."""
    if not _has_expected_status(expect, exchange):
        return
    size = len(exchange.body)
    if expect.size and not expect.size[0] <= size <= expect.size[1]:
        yield Finding(
            "wrong body size. Correct the service or the request's expect.size",
            expected=f"{expect.size[0]} to {expect.size[1]} bytes",
            actual=f"{size} bytes",
        )
    if expect.body is not None and (body := exchange.content) != expect.body.encode():
        yield Finding(
            "wrong body. Correct the service or the request's expect.body",
            expected=excerpt(expect.body),
            actual=excerpt(body),
        )


@expectation_check
def declared_json(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """Require JSON that matches the declared schema and contains the declared members."""
    if (expect.subset is None and expect.json_schema is None) or not _has_expected_status(expect, exchange):
        return
    body = exchange.content
    document = cast("JsonValue", safe_read.parse_json(body, MAX_CONTAINERS, MAX_VALUES))
    if expect.schema_text is not None:
        mismatch = response_schemas.SCHEMA_VALIDATOR.find_mismatch(expect.schema_text, body)
        if mismatch:
            yield Finding(mismatch.message, expected=mismatch.expected, actual=mismatch.actual)
    for path, expected, actual in _differences(expect.subset, document, "$") if expect.subset is not None else ():
        yield Finding(
            f"{path} has an unexpected value. Correct the service or the request's expect.json",
            expected=excerpt(repr(expected)),
            actual=actual,
        )


def _has_expected_status(expect: Expect, exchange: Exchange) -> bool:
    """Return whether a response has the declared status. The ``declared-status`` check reports other statuses."""
    return exchange.response is not None and exchange.response.status == expect.status


def _differences(expected: JsonValue, actual: object, path: str) -> Iterator[tuple[str, JsonValue, str]]:
    """Yield (JSON path, expected value, actual value) of each difference. Additional members are ignored."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key not in actual:
                yield f"{path}.{key}", value, "nothing"
            else:
                yield from _differences(value, actual[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (expected_item, actual_item) in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(expected_item, actual_item, f"{path}[{index}]")
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield path, expected, excerpt(repr(actual))
