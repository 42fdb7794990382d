"""Checks of an order service beyond the API description: table rows, commits, reads and concurrent requests."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from harness.extras.orders.entities import ObservedCall, OrderEvidence, differences, judging, same, told, total, wanted
from harness.verify.checks import Finding, excerpt

order_check = partial(judging, OrderEvidence, "order")


def body(answer: ObservedCall) -> str:
    """Return the body of a response for a message, or "nothing"."""
    return excerpt(answer.exchange.body) if answer.exchange.response else "nothing"


def _written(seen: OrderEvidence) -> Iterator[ObservedCall]:
    return (answer for answer in seen.answers if answer.wrote)


def _wrote(seen: OrderEvidence) -> bool:
    return any(_written(seen))


@order_check("order.3")
def location_named(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that ``Location`` names a created order, as a path or as a URL."""
    for answer in seen.answers:
        if answer.good and answer.call.status == 201 and answer.call.operation == "create order":
            name, value = f"{answer.exchange.target}/{answer.id}", answer.exchange.header("location") or ""
            if not re.fullmatch(rf"(https?://[^/]+)?{re.escape(name)}", value):
                message = f"{answer.call}: Location does not name the order"
                yield Finding(message, expected=name, actual=value or "no Location")


@order_check("order.4")
def tables_seen(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that the tables can be read; otherwise no other check of the tables is possible."""
    if seen.unseen:
        yield Finding(seen.unseen)


# ---- effects of writes on the tables ---------------------------------------------------------------------------------


def _judged(seen: OrderEvidence) -> Iterator[ObservedCall]:
    """Return the responses to successful writes and to correctly refused calls."""
    refused = (a for a in seen.answers if a.before is not None and min(a.call.status, a.status or 0) >= 400)
    return chain(_written(seen), refused)


@order_check("order.5", lambda seen: any(_judged(seen)))
def tables_as_answered(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that a successful write changes the tables as answered, and that a refused call changes no table."""
    for answer in _judged(seen):
        yield from answer.differences(answer.settled)


@order_check("order.6", _wrote)
def answer_agrees(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that the response to a write contains the stored order."""
    for answer in _written(seen):
        number = answer.call.order or answer.id or 0
        stored = answer.settled.get(number)
        if stored and answer.fits and not same(answer.document, wanted(answer.call, number, stored)):
            message = f"{answer.call}: the response differs from the stored order"
            yield Finding(message, expected=told(stored), actual=body(answer))


@order_check("order.7", _wrote)
def committed_before_answered(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that the response comes after the commit."""
    for answer in _written(seen):
        late = next(answer.differences(answer.after), None) if answer.after is not answer.settled else None
        if late and not any(answer.differences(answer.settled)):
            message = f"{late.message} when the response arrives, but is correct shortly afterwards"
            yield Finding(message, expected=late.expected, actual=late.actual)
    for crowd in seen.crowds:
        for answer in crowd.early:
            message = f"{answer.call}: the response came while the transaction could not commit"
            yield Finding(message, expected="no response before the commit", actual=f"{answer.status}: {body(answer)}")
        if crowd.stuck:
            yield Finding(crowd.stuck, expected="no open transaction after all responses", actual="an open transaction")


@order_check("order.8", lambda seen: any(crowd.seen for crowd in seen.crowds))
def one_transaction(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that order, items and total become visible in the same transaction."""
    for crowd in seen.crowds:
        for number, order in (one for state in crowd.seen for one in state.items()):
            if crowd.before.get(number) != order and (order.total != total(order.lines) or not order.lines):
                message = f"order {number} was visible when only a part of it had been written"
                yield Finding(message, expected="a total equal to the sum of the items", actual=told(order))


# ---- reads -----------------------------------------------------------------------------------------------------------


def _reads(seen: OrderEvidence) -> Iterator[ObservedCall]:
    return (a for a in seen.answers if a.before is not None and a.call.reads and a.call.status < 400)


@order_check("order.9", lambda seen: any(_reads(seen)))
def reads_are_current(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that reads return committed data, and lists the newest orders; a stale cache fails."""
    for answer in _reads(seen):
        if answer.exchange.response is None or not (answer.good or answer.changed):
            continue  # a different check reports a wrong status
        due = _due(answer)
        if due is None and answer.status == 404:
            continue
        if due is not None and answer.status == 200 and (not answer.fits or same(answer.document, due)):
            continue
        yield Finding(
            f"{answer.call}: the response differs from the tables"
            + (", which tfb changed directly in the database" if answer.changed else ""),
            expected=excerpt("404" if due is None else json.dumps(due)),
            actual=f"{answer.status}: {body(answer)}",
        )


def _due(answer: ObservedCall) -> object:
    """Return the expected document of a read according to the tables; None without the order or the item."""
    call, held = answer.call, answer.before or {}
    if call.operation == "list orders":
        newest = sorted(held, reverse=True)[: call.limit or 20]
        return [wanted(call, number, held[number]) for number in newest]
    order = held.get(call.order)
    return order and wanted(call, call.order, order)


# ---- concurrent requests ---------------------------------------------------------------------------------------------


@order_check("order.10", lambda seen: any(not crowd.stuck for crowd in seen.crowds))
def orders_in_a_crowd(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that concurrent writes have the effect of sequential writes."""
    for crowd in seen.crowds:
        if not crowd.stuck:
            for found in differences(crowd.answers, crowd.before, crowd.after, crowd.prices):
                yield replace(found, message=f"{found.message} after concurrent requests")
