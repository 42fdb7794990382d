"""What an order service must do beside answering as its description says: rows, commits, reads and crowds."""

import re
from collections import Counter
from collections.abc import Iterator

from harness.extras.orders.model import (
    Answer,
    Crowd,
    Kind,
    Order,
    OrderEvidence,
    answered_id,
    differences,
    judging,
    line_of,
    lines_of,
    order_of,
    told,
    whole,
)
from harness.records.models import Outcome
from harness.verify.checks import Check, Finding, shown

ORDER = frozenset({"order"})


def body(answer: Answer) -> str:
    """What came, for a message."""
    return shown(answer.exchange.body) if answer.exchange.response else "nothing"


def _right(seen: OrderEvidence, *operations: str) -> Iterator[Answer]:
    """Those that had to succeed, and did."""
    return (a for a in seen.answers if a.good and a.call.status < 300 and a.call.operation in operations)


def _written(seen: OrderEvidence) -> Iterator[Answer]:
    return (answer for answer in seen.answers if answer.wrote)


def _wrote(seen: OrderEvidence) -> bool:
    return any(_written(seen))


@judging(OrderEvidence, ORDER, "order.3")
def items_in_order(seen: OrderEvidence) -> Iterator[Finding]:
    """Items stand by their ids, each once, and no integer has a fraction."""
    for answer in _right(seen, "create order", "read order", "change card", "add item", "read items"):
        found = answer.document
        items = found.get("items") if isinstance(found, dict) else found
        lines = lines_of(items)
        if lines is not None and list(lines) != sorted(lines):
            yield Finding(f"{answer.call}: items in another order", expected="by itemId", actual=body(answer))
        elif isinstance(items, list) and lines is None:
            message = f"{answer.call}: items that cannot be read"
            yield Finding(message, expected="each item once, of whole numbers", actual=body(answer))


@judging(OrderEvidence, ORDER, "order.4")
def location_named(seen: OrderEvidence) -> Iterator[Finding]:
    """A created order is named by ``Location``, as a path or a whole URL."""
    for answer in _right(seen, "create order"):
        number = answer.document.get("id") if isinstance(answer.document, dict) else None
        path, value = answer.exchange.target, answer.exchange.header("location") or ""
        if not re.fullmatch(rf"(https?://[^/]+)?{re.escape(path)}/{number}", value):
            message = f"{answer.call}: Location does not name the order"
            yield Finding(message, expected=f"{path}/{number}", actual=value or "no Location")


@judging(OrderEvidence, ORDER, "order.5", lambda seen: any(a.before is not None for a in seen.answers))
def refused_changes_nothing(seen: OrderEvidence) -> Iterator[Finding]:
    """What is refused leaves the tables as they were."""
    for answer in seen.answers:
        before, after = answer.before or {}, answer.after or {}
        if answer.call.status < 400 or (answer.status or 0) < 400 or before == after:
            continue
        number = next(n for n in sorted(before.keys() | after.keys()) if before.get(n) != after.get(n))
        message = f"{answer.call}: was refused, and changed order {number} all the same"
        yield Finding(message, expected=told(before.get(number)), actual=told(after.get(number)))


@judging(OrderEvidence, ORDER, "order.6")
def tables_seen(seen: OrderEvidence) -> Iterator[Finding]:
    """The database can be looked at."""
    if seen.unseen:
        yield Finding(seen.unseen, outcome=Outcome.WARN)


# ---- what an answered write makes of the tables ----------------------------------------------------------------------


def _stored(rule: str, name: str, kind: Kind) -> Check:
    """A check that the tables do not differ in this way from what a write must make of them."""

    def find(seen: OrderEvidence) -> Iterator[Finding]:
        for answer in _written(seen):
            yield from (finding for of, finding in differences(answer, answer.settled or {}) if of == kind)

    find.__name__ = name
    return judging(OrderEvidence, ORDER, rule, _wrote)(find)


STORED = (
    _stored("order.7", "order_stored", "stored"),
    _stored("order.8", "order_once", "once"),
    _stored("order.9", "price_of_the_item", "price"),
    _stored("order.10", "total_of_the_items", "total"),
    _stored("order.11", "order_deleted", "deleted"),
    _stored("order.12", "no_other_order_changed", "other"),
    _stored("order.13", "orders_loaded", "load"),
)


@judging(OrderEvidence, ORDER, "order.14", _wrote)
def answer_agrees(seen: OrderEvidence) -> Iterator[Finding]:
    """What a write answers is what the tables hold then."""
    for answer in _written(seen):
        found = order_of(answer.document)
        stored = (answer.settled or {}).get(found[0]) if found else None
        if found and stored and found[1] != stored:
            message = f"{answer.call}: the answer is not the order that is stored"
            yield Finding(message, expected=told(stored), actual=told(found[1]))


@judging(OrderEvidence, ORDER, "order.15", _wrote)
def committed_before_answered(seen: OrderEvidence) -> Iterator[Finding]:
    """The answer comes after the commit."""
    for answer in _written(seen):
        if answer.after is answer.settled:
            continue  # nothing was missing at once
        late = next(differences(answer, answer.after or {}), None)
        if late and next(differences(answer, answer.settled or {}), None) is None:
            message = f"{late[1].message}, when the answer comes; a little later it is"
            yield Finding(message, expected=late[1].expected, actual=late[1].actual)
    for held in seen.held:
        for answer in held.early:
            message = f"{answer.call}: answered while its transaction could not commit"
            yield Finding(message, expected="no answer before the commit", actual=f"{answer.status}: {body(answer)}")
        if held.stuck:
            yield Finding(held.stuck, expected="no transaction open once all is answered", actual="one is")


@judging(OrderEvidence, ORDER, "order.16", lambda seen: any(h.seen for h in seen.held))
def one_transaction(seen: OrderEvidence) -> Iterator[Finding]:
    """Order, items and total become visible together."""
    for held in seen.held:
        for number, order in (one for state in held.seen for one in state.items()):
            if held.before.get(number) != order and (order.total != order.sum or not order.lines):
                message = f"order {number} could be read while only a part of it was written"
                yield Finding(message, expected="an order whose total is the sum of its items", actual=told(order))


# ---- reads -----------------------------------------------------------------------------------------------------------


def _reads(seen: OrderEvidence) -> Iterator[Answer]:
    methods = ((answer, answer.call.asked) for answer in seen.answers if answer.before is not None)
    return (answer for answer, asked in methods if asked and asked.method == "GET" and answer.call.status < 400)


@judging(OrderEvidence, ORDER, "order.17", lambda seen: any(_reads(seen)))
def reads_are_current(seen: OrderEvidence) -> Iterator[Finding]:
    """A read answers what was committed before it: nothing is kept between requests."""
    for answer in _reads(seen):
        if answer.exchange.response is None or not (answer.good or answer.changed) or _agrees(answer):
            continue  # another status than it should be is another check's business
        listed = answer.call.operation == "list orders"
        yield Finding(
            f"{answer.call}: not what the tables hold"
            + (", which were changed behind the server" if answer.changed else ""),
            expected="the newest orders as they are" if listed else told((answer.before or {}).get(answer.call.order)),
            actual=f"{answer.status}: {body(answer)}",
        )


def _agrees(answer: Answer) -> bool:
    """Whether the answer is that of the rows; what cannot be read at all is another check's business."""
    call, found, held = answer.call, answer.document, answer.before or {}
    order = held.get(call.order)
    if call.operation == "list orders":
        one_by_one = [order_of(one, summary=True) for one in found] if isinstance(found, list) else []
        return all(_head(one[1]) == _head(held[one[0]]) for one in one_by_one if one and one[0] in held)
    if answer.status == 404:
        return order is None
    if answer.status != 200 or order is None:
        return False
    match call.operation:
        case "read items":
            lines = lines_of(found)
            return lines is None or lines == order.lines
        case "read item":
            line = line_of(found)
            return line is None or (line[0] == call.item and order.lines.get(call.item) == line[1])
        case _:
            whole_order = order_of(found)
            return whole_order is None or whole_order == (call.order, order)


def _head(order: Order) -> tuple[object, ...]:
    return order.customer, order.card, order.total


@judging(OrderEvidence, ORDER, "order.18", lambda seen: any(_reads(seen)))
def newest_first(seen: OrderEvidence) -> Iterator[Finding]:
    """The list holds the newest orders, as many as asked for, the highest id first."""
    for answer in _reads(seen):
        found, many = answer.document, answer.call.many
        if answer.call.operation != "list orders" or not answer.good or not isinstance(found, list):
            continue
        ids = [whole(one.get("id")) if isinstance(one, dict) else None for one in found]
        expected = sorted(answer.before or {}, reverse=True)[:many]
        if ids != expected:
            message = f"{answer.call}: other orders than the newest {many}"
            yield Finding(message, expected=shown(f"{expected}"), actual=shown(f"{ids}"))


# ---- many at once ----------------------------------------------------------------------------------------------------


@judging(OrderEvidence, ORDER, "order.19", lambda seen: bool(seen.crowds))
def orders_in_a_crowd(seen: OrderEvidence) -> Iterator[Finding]:
    """Requests at once have the effect of one after the other."""
    for crowd in seen.crowds:
        yield from _failed(crowd)
        yield from _created(crowd)
        yield from _changed(crowd)


def _failed(crowd: Crowd) -> Iterator[Finding]:
    """Nobody in the crowd asks for what is wrong; where one of several can win, the others are refused."""
    for answer in crowd.answers:
        if not answer.good and not (answer.call.name and answer.status in (404, 409)):
            expected = f"{answer.call.status}" + (" or a refusal" if answer.call.name else "")
            actual = f"{answer.status}: {body(answer)}" if answer.status else answer.exchange.error
            yield Finding(f"{answer.call}: not answered as it should be in a crowd", expected=expected, actual=actual)


def _created(crowd: Crowd) -> Iterator[Finding]:
    creates = [a for a in crowd.answers if a.call.operation == "create order"]
    made = [(answer, number) for answer in creates if answer.good and (number := answered_id(answer)) is not None]
    for number, times in Counter(number for _, number in made).items():
        if times > 1:
            yield Finding(f"{times} orders that were made at once have one id", expected="1", actual=f"id {number}")
    new = crowd.after.keys() - crowd.before.keys()
    if all(answer.good for answer in creates) and len(new) != len(creates):
        message = "a crowd's orders are not as many as were answered"
        yield Finding(message, expected=f"{len(creates)}", actual=f"{len(new)}")
    for answer, number in made:
        order, asked = crowd.after.get(number), dict(answer.call.lines)
        if order is None or order.quantities != asked:
            expected = ", ".join(f"{quantity} of item {item}" for item, quantity in asked.items())
            message = f"order {number}, made in a crowd, is stored otherwise"
            yield Finding(message, expected=expected, actual=told(order))
        else:
            yield from _total(number, order)


def _changed(crowd: Crowd) -> Iterator[Finding]:
    for number, before in crowd.before.items():
        own = [a for a in crowd.answers if a.call.order == number]
        after = crowd.after.get(number)
        if after is None or not own:
            if after != before:
                message = f"order {number} changed in a crowd, which nobody asked for"
                yield Finding(message, expected=told(before), actual=told(after))
            continue
        if all(answer.exchange.response is not None for answer in own):
            yield from _items(number, own, crowd)
        yield from _total(number, after)
        cards = [answer.call.card for answer in own if answer.call.operation == "change card"] or [before.card]
        if after.card not in cards:
            message = f"order {number}: another card than was asked for in a crowd"
            yield Finding(message, expected=" or ".join(cards), actual=after.card)


def _items(number: int, own: list[Answer], crowd: Crowd) -> Iterator[Finding]:
    """How often each item was added and taken out, by the answers, says whether it is there."""
    balance = Counter(dict.fromkeys(crowd.before[number].lines, 1))
    for answer in own:
        if answer.good and answer.call.operation in ("add item", "delete item"):
            balance[answer.call.item] += 1 if answer.call.operation == "add item" else -1
    for item in sorted(balance):
        there = int(item in crowd.after[number].lines)
        if balance[item] != there:
            yield Finding(
                f"order {number}: item {item} was added and deleted in a crowd otherwise than was answered",
                expected=f"{balance[item]} of it by the answers",
                actual=f"{there} in the table",
            )


def _total(number: int, order: Order) -> Iterator[Finding]:
    if order.total != order.sum:
        message = f"order {number}: after a crowd's changes the total is not the sum of its items"
        yield Finding(message, expected=f"{order.sum}", actual=f"{order.total}")
