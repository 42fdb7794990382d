"""The answers of an order service: status, media type, members, money; and what it must refuse without a trace."""

import re
from collections.abc import Iterator

from harness.extras.orders.verify.evidence import Answer, OrderEvidence, of_orders
from harness.extras.orders.verify.model import LINE_KEYS, MONEY, ORDER_KEYS, SUMMARY_KEYS, document, monies, told
from harness.verify.checks import Finding, shown
from harness.verify.checks.http import parse_media_type
from harness.verify.checks.json_text import JsonError

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


def answers(seen: OrderEvidence) -> Iterator[Answer]:
    """Of all calls."""
    yield from seen.answers
    for crowd in seen.crowds:
        yield from crowd.answers


def regular(seen: OrderEvidence) -> Iterator[Answer]:
    """Those that had to succeed, one by one, and did."""
    return (a for a in seen.answers if a.good and a.call.status < 300)


def body(answer: Answer) -> str:
    """What came, for a message."""
    return shown(answer.response.body) if answer.response else "nothing"


@of_orders("order.1")
def orders_answered(seen: OrderEvidence) -> Iterator[Finding]:
    """Every request is answered, as HTTP asks."""
    for answer in answers(seen):
        if answer.response is None:
            yield Finding(f"{answer.call}: {answer.error}", expected="an answer", actual=answer.error)
        elif answer.response.violations:
            violations = "; ".join(answer.response.violations)
            yield Finding(f"{answer.call}: {violations}", expected="an HTTP/1.1 message", actual=violations)


@of_orders("order.2")
def order_status(seen: OrderEvidence) -> Iterator[Finding]:
    """What is right is answered with its status."""
    for answer in seen.answers:
        if answer.response and answer.call.status < 300 and not answer.good:
            yield Finding(
                f"{answer.call}: status {answer.status}",
                expected=f"{answer.call.status}",
                actual=f"{answer.status}: {body(answer)}",
            )


@of_orders("order.3")
def order_media_type(seen: OrderEvidence) -> Iterator[Finding]:
    """A body is ``application/json``; a charset, if there is one, is UTF-8."""
    for answer in regular(seen):
        if answer.response is None or answer.call.status == 204:
            continue
        value = answer.response.get("content-type") or ""
        media, parameters = parse_media_type(value)
        if media != "application/json" or {k: v.lower() for k, v in parameters.items()} not in (
            {},
            {"charset": "utf-8"},
        ):
            yield Finding(f"{answer.call}: Content-Type {value!r}", expected="application/json", actual=value or "none")


@of_orders("order.4")
def order_shape(seen: OrderEvidence) -> Iterator[Finding]:
    """Bodies have exactly their members; ids and quantities are integers, items stand by their ids."""
    for answer in regular(seen):
        shape = SHAPES.get(answer.call.operation)
        if shape is None:
            continue
        try:
            found = answer.document
        except JsonError as error:
            yield Finding(f"{answer.call}: {error}", expected=EXPECTED[shape], actual=body(answer))
            continue
        if not _shaped(shape, found):
            yield Finding(f"{answer.call}: not the members that it has", expected=EXPECTED[shape], actual=body(answer))


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


@of_orders("order.5")
def money_exact(seen: OrderEvidence) -> Iterator[Finding]:
    """Money is a string with two decimals."""
    for answer in regular(seen):
        for value in monies(document(answer)):
            if not isinstance(value, str) or not MONEY.fullmatch(value):
                yield Finding(
                    f"{answer.call}: money that is not exact", expected='a string such as "12.50"', actual=f"{value!r}"
                )


@of_orders("order.6")
def location_named(seen: OrderEvidence) -> Iterator[Finding]:
    """A created order is named by ``Location``, as a path or a whole URL."""
    for answer in regular(seen):
        if answer.call.operation != "create order" or answer.response is None:
            continue
        found = document(answer)
        number = found.get("id") if isinstance(found, dict) else None
        value = answer.response.get("location") or ""
        if not re.fullmatch(rf"(https?://[^/]+)?{re.escape(answer.call.path)}/{number}", value):
            yield Finding(
                f"{answer.call}: Location does not name the order",
                expected=f"{answer.call.path}/{number}",
                actual=value or "no Location",
            )


def _refused(seen: OrderEvidence, status: int) -> Iterator[Finding]:
    """Those that had to be refused with this status, and were not."""
    for answer in seen.answers:
        if answer.call.status == status and answer.response is not None and not answer.good:
            yield Finding(
                f"{answer.call}: status {answer.status}",
                expected=f"{status}",
                actual=f"{answer.status}: {body(answer)}",
            )


@of_orders("order.7")
def bad_orders_refused(seen: OrderEvidence) -> Iterator[Finding]:
    """What is no order, or speaks of what there is not, is 400."""
    yield from _refused(seen, 400)


@of_orders("order.8")
def unknown_orders(seen: OrderEvidence) -> Iterator[Finding]:
    """An order or an item of it that there is not is 404."""
    yield from _refused(seen, 404)


@of_orders("order.9")
def item_already_there(seen: OrderEvidence) -> Iterator[Finding]:
    """An item that is in the order is not added again: 409."""
    yield from _refused(seen, 409)


def _refusals(seen: OrderEvidence) -> Iterator[Answer]:
    return (a for a in seen.answers if a.call.status >= 400 and (a.status or 0) >= 400)


@of_orders("order.10")
def problem_details(seen: OrderEvidence) -> Iterator[Finding]:
    """A refusal is a problem of RFC 9457, with its own status."""
    for answer in _refusals(seen):
        value = (answer.response.get("content-type") if answer.response else None) or ""
        found = document(answer)
        if parse_media_type(value)[0] != "application/problem+json":
            yield Finding(
                f"{answer.call}: the problem's Content-Type",
                expected="application/problem+json",
                actual=value or "none",
            )
        elif (
            not isinstance(found, dict)
            or found.get("status") != answer.status
            or not all(isinstance(found.get(key), str) for key in ("title", "detail", "type"))
        ):
            yield Finding(
                f"{answer.call}: not a problem of RFC 9457",
                expected=f'{{"type","title","status":{answer.status},"detail"}}',
                actual=body(answer),
            )


@of_orders("order.11", lambda seen: bool(seen.refusals))
def refused_changes_nothing(seen: OrderEvidence) -> Iterator[Finding]:
    """What is refused leaves the tables as they were."""
    for refusal in seen.refusals:
        if (refusal.answer.status or 0) < 400 or refusal.before == refusal.after:
            continue
        numbers = refusal.before.keys() | refusal.after.keys()
        number = next(n for n in sorted(numbers) if refusal.before.get(n) != refusal.after.get(n))
        yield Finding(
            f"{refusal.answer.call}: was refused, and changed order {number} all the same",
            expected=told(refusal.before.get(number)),
            actual=told(refusal.after.get(number)),
        )
