"""Orders under a crowd: each answered change is there once, none undoes another's, and the totals add up."""

from collections import Counter
from collections.abc import Iterator

from harness.verify.checks import Check, Finding, check
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.order_evidence import Answer, Crowd
from harness.verify.checks.orders.answers import ORDER, body
from harness.verify.checks.orders.documents import told
from harness.verify.checks.orders.model import answered_id


@check("order.25", ORDER, lambda evidence: bool(evidence.orders and evidence.orders.crowds))
def orders_in_a_crowd(evidence: Evidence) -> Iterator[Finding]:
    """Requests at once have the effect of one after the other."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for crowd in evidence.orders.crowds:
        yield from _failed(crowd)
        yield from _created(crowd)
        yield from _changed(crowd)


def _failed(crowd: Crowd) -> Iterator[Finding]:
    """Nobody in the crowd asks for what is wrong; where one of several can win, the others are refused."""
    for answer in crowd.answers:
        refused = answer.call.case and answer.status in (404, 409)
        if answer.response is not None and not answer.good and not refused:
            yield Finding(
                message=f"{answer.call}: status {answer.status} in a crowd",
                expected=f"{answer.call.status}" + (" or a refusal" if answer.call.case else ""),
                actual=f"{answer.status}: {body(answer)}",
            )


def _created(crowd: Crowd) -> Iterator[Finding]:
    creates = [a for a in crowd.answers if a.call.operation == "create order"]
    ids = [answered_id(answer) for answer in creates if answer.good]
    for number, times in Counter(ids).items():
        if number is not None and times > 1:
            yield Finding(
                message=f"{times} orders that were made at once have one id", expected="1", actual=f"id {number}"
            )
    new = crowd.after.keys() - crowd.before.keys()
    if all(answer.good for answer in creates) and len(new) != len(creates):
        yield Finding(
            message="a crowd's orders are not as many as were answered",
            expected=f"{len(creates)}",
            actual=f"{len(new)}",
        )
    for answer in creates:
        number = answered_id(answer)
        if not answer.good or number is None:
            continue
        order = crowd.after.get(number)
        asked = dict(answer.call.lines)
        if order is None or {item: line.quantity for item, line in order.lines.items()} != asked:
            yield Finding(
                message=f"order {number}, made in a crowd, is stored otherwise",
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
                    message=f"order {number} changed in a crowd, which nobody asked for",
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
                message=f"order {number}: another card than was asked for in a crowd",
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
                message=f"order {number}: item {item} was added and deleted in a crowd otherwise than was answered",
                expected=f"{balance[item]} of it by the answers",
                actual=f"{there} in the table",
            )


def _total(number: int, crowd: Crowd) -> Finding:
    order = crowd.after[number]
    return Finding(
        message=f"order {number}: after a crowd's changes the total is not the sum of its items",
        expected=f"{order.sum}",
        actual=f"{order.total}",
    )


CHECKS: tuple[Check, ...] = (orders_in_a_crowd,)
