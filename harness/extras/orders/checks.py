"""Checks of an order service that go beyond the API description: rows, commits, reads and concurrent requests."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from harness.extras.orders.entities import ObservedCall, OrderEvidence, differences, judging, same, told, total, wanted
from harness.verify.checks import Finding, excerpt

order_check = partial(judging, OrderEvidence, "order")


def body(observed: ObservedCall) -> str:
    """Return the body of a response for a message, or "nothing" without a response."""
    return excerpt(observed.exchange.body) if observed.exchange.response else "nothing"


def _written(seen: OrderEvidence) -> Iterator[ObservedCall]:
    return (observed for observed in seen.observed_calls if observed.wrote)


def _wrote(seen: OrderEvidence) -> bool:
    return any(_written(seen))


@order_check("order.3")
def location_named(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that ``Location`` identifies a created order, by a path or a URL."""
    for observed in seen.observed_calls:
        if observed.good and observed.call.status == 201 and observed.call.operation == "create order":
            name, value = f"{observed.exchange.target}/{observed.id}", observed.exchange.header("location") or ""
            if not re.fullmatch(rf"(https?://[^/]+)?{re.escape(name)}", value):
                message = f"{observed.call}: Location does not name the order"
                yield Finding(message, expected=name, actual=value or "no Location")


@order_check("order.4")
def tables_seen(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that the tables can be read, because all other checks of the tables depend on it."""
    if seen.unseen:
        yield Finding(seen.unseen)


# ---- effects of writes on the tables ---------------------------------------------------------------------------------


def _judged(seen: OrderEvidence) -> Iterator[ObservedCall]:
    """Yield the responses to successful writes and to correctly refused calls."""
    refused = (a for a in seen.observed_calls if a.before is not None and min(a.call.status, a.status or 0) >= 400)
    return chain(_written(seen), refused)


@order_check("order.5", lambda seen: any(_judged(seen)))
def tables_as_answered(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that successful writes change the tables as the response reports, and refused calls change none."""
    for observed in _judged(seen):
        yield from observed.differences(observed.settled)


@order_check("order.6", _wrote)
def answer_agrees(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that the response to a write contains the stored order."""
    for observed in _written(seen):
        number = observed.call.order or observed.id or 0
        stored = observed.settled.get(number)
        if stored and observed.fits and not same(observed.document, wanted(observed.call, number, stored)):
            message = f"{observed.call}: the response differs from the stored order"
            yield Finding(message, expected=told(stored), actual=body(observed))


@order_check("order.7", _wrote)
def committed_before_answered(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that the response follows the commit."""
    for observed in _written(seen):
        late = next(observed.differences(observed.after), None) if observed.after is not observed.settled else None
        if late and not any(observed.differences(observed.settled)):
            message = f"{late.message} when the response arrives, but is correct shortly afterwards"
            yield Finding(message, expected=late.expected, actual=late.actual)
    for crowd in seen.crowds:
        for observed in crowd.early:
            message = f"{observed.call}: the response came while the transaction could not commit"
            yield Finding(
                message, expected="no response before the commit", actual=f"{observed.status}: {body(observed)}"
            )
        if crowd.stuck:
            yield Finding(crowd.stuck, expected="no open transaction after all responses", actual="an open transaction")


@order_check("order.8", lambda seen: any(crowd.seen for crowd in seen.crowds))
def one_transaction(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that the order, the items and the total become visible in the same transaction."""
    for crowd in seen.crowds:
        for number, order in (one for state in crowd.seen for one in state.items()):
            if crowd.before.get(number) != order and (order.total != total(order.lines) or not order.lines):
                message = f"order {number} was visible when only a part of it had been written"
                yield Finding(message, expected="a total equal to the sum of the items", actual=told(order))


# ---- reads -----------------------------------------------------------------------------------------------------------


def _reads(seen: OrderEvidence) -> Iterator[ObservedCall]:
    return (a for a in seen.observed_calls if a.before is not None and a.call.reads and a.call.status < 400)


@order_check("order.9", lambda seen: any(_reads(seen)))
def reads_are_current(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that reads return committed data, and that lists contain the newest orders. A stale cache fails."""
    for observed in _reads(seen):
        if observed.exchange.response is None or not (observed.good or observed.changed):
            continue  # a separate check reports wrong statuses
        due = _due(observed)
        if due is None and observed.status == 404:
            continue
        if due is not None and observed.status == 200 and (not observed.fits or same(observed.document, due)):
            continue
        yield Finding(
            f"{observed.call}: the response differs from the tables"
            + (", which tfb changed directly in the database" if observed.changed else ""),
            expected=excerpt("404" if due is None else json.dumps(due)),
            actual=f"{observed.status}: {body(observed)}",
        )


def _due(observed: ObservedCall) -> object:
    """Return the document that a read should return according to the tables; None without the order or item."""
    call, held = observed.call, observed.before or {}
    if call.operation == "list orders":
        newest = sorted(held, reverse=True)[: call.limit or 20]
        return [wanted(call, number, held[number]) for number in newest]
    order = held.get(call.order)
    return order and wanted(call, call.order, order)


# ---- concurrent requests ---------------------------------------------------------------------------------------------


@order_check("order.10", lambda seen: any(not crowd.stuck for crowd in seen.crowds))
def orders_in_a_crowd(seen: OrderEvidence) -> Iterator[Finding]:
    """Require that concurrent writes have the same effect as a sequence of these writes."""
    for crowd in seen.crowds:
        if not crowd.stuck:
            for found in differences(crowd.observed_calls, crowd.before, crowd.after, crowd.prices):
                yield replace(found, message=f"{found.message} after concurrent requests")
