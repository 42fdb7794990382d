"""Checks requirements of the order service that the API description cannot express.

The checks cover table rows, commits, stale reads and concurrent requests.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from harness.extras.orders.entities import (
    ObservedCall,
    OrderEvidence,
    differences,
    equal_json,
    expected_document,
    format_order,
    judging,
    total,
)
from harness.verify.checks import Finding, excerpt

order_check = partial(judging, OrderEvidence, "order")


def body(observed: ObservedCall) -> str:
    """Return an excerpt of the response body for a message, or "nothing" if there is no response."""
    return excerpt(observed.exchange.body) if observed.exchange.response else "nothing"


def _written(evidence: OrderEvidence) -> Iterator[ObservedCall]:
    return (observed for observed in evidence.observed_calls if observed.wrote)


def _wrote(evidence: OrderEvidence) -> bool:
    return any(_written(evidence))


@order_check("order.3", stricter=True)
def location_named(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that ``Location`` contains the path or the URL of a created order."""
    for observed in evidence.observed_calls:
        if observed.good and observed.call.status == 201 and observed.call.operation == "create order":
            name, value = f"{observed.exchange.target}/{observed.id}", observed.exchange.header("location") or ""
            if not re.fullmatch(rf"(https?://[^/]+)?{re.escape(name)}", value):
                message = f"{observed.call}: Location does not contain the order's path"
                yield Finding(message, expected=name, actual=value or "no Location")


@order_check("order.4", stricter=True)
def tables_seen(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that tfb can read the tables, because other checks depend on them."""
    if evidence.unseen:
        yield Finding(evidence.unseen)


# ---- Checks that compare writes with the tables ----------------------------------------------------------------------


def _observed_effects(evidence: OrderEvidence) -> Iterator[ObservedCall]:
    """Yield the successful writes and the calls that were correctly rejected."""
    refused = (a for a in evidence.observed_calls if a.before is not None and min(a.call.status, a.status or 0) >= 400)
    return chain(_written(evidence), refused)


@order_check("order.5", lambda evidence: any(_observed_effects(evidence)))
def tables_as_answered(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that a successful write changes the tables as stated in the response.

    A rejected call must not change the tables.
    """
    for observed in _observed_effects(evidence):
        yield from observed.differences(observed.settled)


@order_check("order.6", _wrote)
def answer_agrees(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that the response to a write describes the stored order."""
    for observed in _written(evidence):
        number = observed.call.order or observed.id or 0
        stored = observed.settled.get(number)
        if (
            stored
            and observed.fits
            and not equal_json(observed.document, expected_document(observed.call, number, stored))
        ):
            message = f"{observed.call}: the response differs from the stored order"
            yield Finding(message, expected=format_order(stored), actual=body(observed))


@order_check("order.7", _wrote)
def committed_before_answered(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that the server commits before it responds."""
    for observed in _written(evidence):
        late = next(observed.differences(observed.after), None) if observed.after is not observed.settled else None
        if late and not any(observed.differences(observed.settled)):
            message = f"{late.message}: the change became visible only after the response"
            yield Finding(message, expected=late.expected, actual=late.actual)
    for crowd in evidence.crowds:
        for observed in crowd.early_calls:
            message = f"{observed.call}: the server responded before its transaction could commit"
            yield Finding(
                message, expected="no response before the commit", actual=f"{observed.status}: {body(observed)}"
            )
        if crowd.deadlock:
            yield Finding(
                crowd.deadlock, expected="no open transaction after all responses", actual="an open transaction"
            )


@order_check("order.8", lambda evidence: any(crowd.visible_states for crowd in evidence.crowds))
def one_transaction(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that the order, the items and the total become visible in the same transaction."""
    for crowd in evidence.crowds:
        for number, order in (item for state in crowd.visible_states for item in state.items()):
            if crowd.before.get(number) != order and (order.total != total(order.lines) or not order.lines):
                message = f"order {number} was visible before it was completely written"
                yield Finding(message, expected="a total equal to the sum of the items", actual=format_order(order))


# ---- Checks that compare reads with the tables -----------------------------------------------------------------------


def _reads(evidence: OrderEvidence) -> Iterator[ObservedCall]:
    return (a for a in evidence.observed_calls if a.before is not None and a.call.reads and a.call.status < 400)


@order_check("order.9", lambda evidence: any(_reads(evidence)))
def reads_are_current(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that reads return the latest committed data, not stale data from a cache."""
    for observed in _reads(evidence):
        if observed.exchange.response is None or not (observed.good or observed.changed):
            continue  # a separate check reports wrong statuses
        due = _due(observed)
        if due is None and observed.status == 404:
            continue
        if due is not None and observed.status == 200 and (not observed.fits or equal_json(observed.document, due)):
            continue
        yield Finding(
            f"{observed.call}: the response differs from the tables"
            + ("; tfb had changed the rows directly in the database" if observed.changed else ""),
            expected=excerpt("404" if due is None else json.dumps(due)),
            actual=f"{observed.status}: {body(observed)}",
        )


def _due(observed: ObservedCall) -> object:
    """Derive the correct response body for a read from the tables. Return None if the rows do not exist."""
    call, orders = observed.call, observed.before or {}
    if call.operation == "list orders":
        newest = sorted(orders, reverse=True)[: call.limit or 20]
        return [expected_document(call, number, orders[number]) for number in newest]
    order = orders.get(call.order)
    return order and expected_document(call, call.order, order)


# ---- Check of concurrent requests ------------------------------------------------------------------------------------


@order_check("order.10", lambda evidence: any(not crowd.deadlock for crowd in evidence.crowds))
def orders_in_a_crowd(evidence: OrderEvidence) -> Iterator[Finding]:
    """Require that concurrent writes produce the same tables as the same writes executed one at a time."""
    for crowd in evidence.crowds:
        if not crowd.deadlock:
            for finding in differences(crowd.observed_calls, crowd.before, crowd.after, crowd.prices):
                yield replace(finding, message=f"{finding.message} after concurrent requests")
