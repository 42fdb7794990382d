"""What an order service reads is what the tables hold, and requests at once have the effect of one after another."""

from collections import Counter
from collections.abc import Iterator

from harness.extras.orders.verify.answers import body
from harness.extras.orders.verify.evidence import Answer, Crowd, Order, OrderEvidence, Read, of_orders
from harness.extras.orders.verify.model import answered_id, document, line_of, lines_of, order_of, told, whole
from harness.verify.checks import Finding, shown


@of_orders("order.23", lambda seen: bool(seen.reads))
def reads_are_current(seen: OrderEvidence) -> Iterator[Finding]:
    """A read answers what was committed before it: nothing is kept between requests."""
    for read in seen.reads:
        if read.answer.response is None or not (read.answer.good or read.changed) or _agrees(read):
            continue  # another status than it should be is another check's business
        order = read.held.get(read.answer.call.order)
        listed = read.answer.call.operation == "list orders"
        yield Finding(
            f"{read.answer.call}: not what the tables hold"
            + (", which were changed behind the server" if read.changed else ""),
            expected="the newest orders as they are" if listed else told(order),
            actual=f"{read.answer.status}: {body(read.answer)}",
        )


def _agrees(read: Read) -> bool:
    """Whether the answer is that of the rows; what cannot be read at all is another check's business."""
    call, found = read.answer.call, document(read.answer)
    order = read.held.get(call.order)
    if call.operation == "list orders":
        one_by_one = [order_of(one, summary=True) for one in found] if isinstance(found, list) else []
        summaries = {one[0]: one[1] for one in one_by_one if one}
        return all(_head(summaries[n]) == _head(read.held[n]) for n in summaries if n in read.held)
    if read.answer.status == 404:
        return order is None
    if read.answer.status != 200 or order is None:
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


@of_orders("order.24", lambda seen: bool(seen.reads))
def newest_first(seen: OrderEvidence) -> Iterator[Finding]:
    """The list holds the newest orders, as many as asked for, the highest id first."""
    for read in seen.reads:
        found = document(read.answer)
        if read.answer.call.operation != "list orders" or not read.answer.good or not isinstance(found, list):
            continue
        ids = [whole(one.get("id")) if isinstance(one, dict) else None for one in found]
        expected = sorted(read.held, reverse=True)[: read.answer.call.count]
        if ids != expected:
            yield Finding(
                f"{read.answer.call}: other orders than the newest {read.answer.call.count}",
                expected=shown(f"{expected}"),
                actual=shown(f"{ids}"),
            )


@of_orders("order.25", lambda seen: bool(seen.crowds))
def orders_in_a_crowd(seen: OrderEvidence) -> Iterator[Finding]:
    """Requests at once have the effect of one after the other."""
    for crowd in seen.crowds:
        yield from _failed(crowd)
        yield from _created(crowd)
        yield from _changed(crowd)


def _failed(crowd: Crowd) -> Iterator[Finding]:
    """Nobody in the crowd asks for what is wrong; where one of several can win, the others are refused."""
    for answer in crowd.answers:
        refused = answer.call.case and answer.status in (404, 409)
        if answer.response is not None and not answer.good and not refused:
            yield Finding(
                f"{answer.call}: status {answer.status} in a crowd",
                expected=f"{answer.call.status}" + (" or a refusal" if answer.call.case else ""),
                actual=f"{answer.status}: {body(answer)}",
            )


def _created(crowd: Crowd) -> Iterator[Finding]:
    creates = [a for a in crowd.answers if a.call.operation == "create order"]
    ids = [answered_id(answer) for answer in creates if answer.good]
    for number, times in Counter(ids).items():
        if number is not None and times > 1:
            yield Finding(f"{times} orders that were made at once have one id", expected="1", actual=f"id {number}")
    new = crowd.after.keys() - crowd.before.keys()
    if all(answer.good for answer in creates) and len(new) != len(creates):
        yield Finding(
            "a crowd's orders are not as many as were answered", expected=f"{len(creates)}", actual=f"{len(new)}"
        )
    for answer in creates:
        number = answered_id(answer)
        if not answer.good or number is None:
            continue
        order = crowd.after.get(number)
        asked = dict(answer.call.lines)
        if order is None or {item: line.quantity for item, line in order.lines.items()} != asked:
            yield Finding(
                f"order {number}, made in a crowd, is stored otherwise",
                expected=", ".join(f"{quantity} of item {item}" for item, quantity in asked.items()),
                actual=told(order),
            )
        elif order.total != order.sum:
            yield _total(number, crowd)


def _changed(crowd: Crowd) -> Iterator[Finding]:
    for number, before in crowd.before.items():
        own = [a for a in crowd.answers if a.call.order == number]
        after = crowd.after.get(number)
        if after is None or not own:
            if after != before:
                yield Finding(
                    f"order {number} changed in a crowd, which nobody asked for",
                    expected=told(before),
                    actual=told(after),
                )
            continue
        if all(answer.response is not None for answer in own):
            yield from _items(number, own, crowd)
        if after.total != after.sum:
            yield _total(number, crowd)
        cards = [answer.call.card for answer in own if answer.call.operation == "change card"]
        if after.card not in (cards or [before.card]):
            yield Finding(
                f"order {number}: another card than was asked for in a crowd",
                expected=" or ".join(cards or [before.card]),
                actual=after.card,
            )


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


def _total(number: int, crowd: Crowd) -> Finding:
    order = crowd.after[number]
    return Finding(
        f"order {number}: after a crowd's changes the total is not the sum of its items",
        expected=f"{order.sum}",
        actual=f"{order.total}",
    )
