"""The answers of an order service: there, with the status, media type, members and money that they must have."""

import re
from collections.abc import Iterator

from harness.verify.checks import Finding, check, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.http import parse_media_type
from harness.verify.checks.json_text import JsonError
from harness.verify.checks.order_evidence import Answer
from harness.verify.checks.orders.documents import LINE_KEYS, MONEY, ORDER_KEYS, SUMMARY_KEYS, document, monies

ORDER = frozenset({"order"})
INTEGERS = ("id", "customerId", "itemId", "quantity", "created")
SHAPES = {
    "create order": "order",
    "read order": "order",
    "change card": "order",
    "add item": "order",
    "list orders": "summaries",
    "read items": "lines",
    "read item": "line",
    "load orders": "created",
}
EXPECTED = {
    "order": '{"id","customerId","card","total","items":[{"itemId","quantity","price"}]}, items by itemId',
    "summaries": 'an array of {"id","customerId","card","total"}',
    "lines": 'an array of {"itemId","quantity","price"}, by itemId',
    "line": '{"itemId","quantity","price"}',
    "created": '{"created"}',
}


def has_orders(evidence: Evidence) -> bool:
    """Whether an order service was asked."""
    return evidence.orders is not None


def answers(evidence: Evidence) -> Iterator[Answer]:
    """Of all calls."""
    if evidence.orders:
        yield from evidence.orders.answers
        for crowd in evidence.orders.crowds:
            yield from crowd.answers


def regular(evidence: Evidence) -> Iterator[Answer]:
    """Those that had to succeed, one by one, and did."""
    if evidence.orders:
        yield from (a for a in evidence.orders.answers if a.good and a.call.status < 300)


def body(answer: Answer) -> str:
    """What came, for a message."""
    return shown(answer.response.body) if answer.response else "nothing"


@check("order.1", ORDER, has_orders)
def orders_answered(evidence: Evidence) -> Iterator[Finding]:
    """Every request is answered, as HTTP asks."""
    for answer in answers(evidence):
        if answer.response is None:
            yield Finding(message=f"{answer.call}: {answer.error}", expected="an answer", actual=answer.error)
        elif answer.response.violations:
            violations = "; ".join(answer.response.violations)
            yield Finding(message=f"{answer.call}: {violations}", expected="an HTTP/1.1 message", actual=violations)


@check("order.2", ORDER, has_orders)
def order_status(evidence: Evidence) -> Iterator[Finding]:
    """What is right is answered with its status."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for answer in evidence.orders.answers:
        if answer.response and answer.call.status < 300 and not answer.good:
            yield Finding(
                message=f"{answer.call}: status {answer.status}",
                expected=f"{answer.call.status}",
                actual=f"{answer.status}: {body(answer)}",
            )


@check("order.3", ORDER, has_orders)
def order_media_type(evidence: Evidence) -> Iterator[Finding]:
    """A body is ``application/json``; a charset, if there is one, is UTF-8."""
    for answer in regular(evidence):
        if answer.response is None or answer.call.status == 204:
            continue
        value = answer.response.get("content-type") or ""
        media, parameters = parse_media_type(value)
        if media != "application/json" or {k: v.lower() for k, v in parameters.items()} not in (
            {},
            {"charset": "utf-8"},
        ):
            yield Finding(
                message=f"{answer.call}: Content-Type {value!r}", expected="application/json", actual=value or "none"
            )


@check("order.4", ORDER, has_orders)
def order_shape(evidence: Evidence) -> Iterator[Finding]:
    """Bodies have exactly their members; ids and quantities are integers, items stand by their ids."""
    for answer in regular(evidence):
        shape = SHAPES.get(answer.call.operation)
        if shape is None:
            continue
        try:
            found = answer.document
        except JsonError as error:
            yield Finding(message=f"{answer.call}: {error}", expected=EXPECTED[shape], actual=body(answer))
            continue
        if not _shaped(shape, found):
            yield Finding(
                message=f"{answer.call}: not the members that it has", expected=EXPECTED[shape], actual=body(answer)
            )


def _shaped(shape: str, found: object) -> bool:
    match shape:
        case "order":
            return _keys(found, ORDER_KEYS) and isinstance(found, dict) and _shaped("lines", found["items"])
        case "summaries":
            return isinstance(found, list) and all(_keys(one, SUMMARY_KEYS) for one in found)
        case "lines":
            if not isinstance(found, list) or not all(_keys(one, LINE_KEYS) for one in found):
                return False
            ids = [one["itemId"] for one in found]
            return ids == sorted(set(ids))
        case "line":
            return _keys(found, LINE_KEYS)
        case _:
            return _keys(found, frozenset({"created"}))


def _keys(found: object, keys: frozenset[str]) -> bool:
    """An object with exactly these members, integers where there must be, and a card of characters."""
    if not isinstance(found, dict) or found.keys() != keys:
        return False
    return all(type(found[key]) is int for key in INTEGERS if key in found) and isinstance(found.get("card", ""), str)


@check("order.5", ORDER, has_orders)
def money_exact(evidence: Evidence) -> Iterator[Finding]:
    """Money is a string with two decimals."""
    for answer in regular(evidence):
        for value in monies(document(answer)):
            if not isinstance(value, str) or not MONEY.fullmatch(value):
                yield Finding(
                    message=f"{answer.call}: money that is not exact",
                    expected='a string such as "12.50"',
                    actual=f"{value!r}",
                )


@check("order.6", ORDER, has_orders)
def location_named(evidence: Evidence) -> Iterator[Finding]:
    """A created order is named by ``Location``, as a path or a whole URL."""
    for answer in regular(evidence):
        if answer.call.operation != "create order" or answer.response is None:
            continue
        found = document(answer)
        number = found.get("id") if isinstance(found, dict) else None
        value = answer.response.get("location") or ""
        if not re.fullmatch(rf"(https?://[^/]+)?{re.escape(answer.call.path)}/{number}", value):
            yield Finding(
                message=f"{answer.call}: Location does not name the order",
                expected=f"{answer.call.path}/{number}",
                actual=value or "no Location",
            )


CHECKS = (orders_answered, order_status, order_media_type, order_shape, money_exact, location_named)
