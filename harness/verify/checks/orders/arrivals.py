"""After a load of arrivals: what each of them was answered, held against the rows. One pass over answers and rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from harness.verify.checks import LOAD, Check, Finding, check, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.json_text import JsonError, parse_json
from harness.verify.checks.order_evidence import Line, Order, OrderLoad, Prices, Stepped
from harness.verify.checks.orders.documents import lines_of, order_of, told

HERE = frozenset({LOAD})
MOST_BODY = 65_536  # characters of a body that the generator writes out: a longer one is cut off


@dataclass(kw_only=True)
class _Story:
    """An arrival's order as its answers tell it."""

    number: int
    states: list[Order | None] = field(default_factory=list)  # that it may be in now; None: gone
    disagreeing: list[tuple[Stepped, Order | None]] = field(default_factory=list)  # answer, what it should be


def _step(state: Order | None, step: Stepped, prices: Prices) -> Order | None:
    """The order after a step that was carried out."""
    if step.operation == "create order":
        state = Order(customer=step.customer, card=step.card, total=Decimal(0), lines={})
    if state is None:
        return None
    lines: Mapping[int, Line] = state.lines
    match step.operation:
        case "create order" | "add item":
            added = {i: Line(quantity=q, price=prices.get(i, Decimal(0))) for i, q in step.lines}
            lines = {**lines, **added}
        case "delete item":
            lines = {item: line for item, line in lines.items() if item != step.item}
        case "delete order":
            return None
    card = step.card if step.operation == "change card" else state.card
    total = sum((line.quantity * line.price for line in lines.values()), Decimal(0))
    return Order(customer=state.customer, card=card, total=total, lines=lines)


def _agrees(step: Stepped, number: int, state: Order | None) -> bool:
    """Whether the body of a good answer is that of the order as it is then."""
    if step.status == 204 or len(step.body) >= MOST_BODY:
        return True
    try:
        found = parse_json(step.body.encode("utf-8", "surrogatepass"))
    except (JsonError, UnicodeError):
        return False
    if step.operation == "read items":
        return state is not None and lines_of(found) == state.lines
    return order_of(found) == (number, state)


def _story(number: int, steps: Sequence[Stepped], prices: Prices) -> _Story:
    """What the answers of one arrival say."""
    story = _Story(number=number)
    state: Order | None = None
    for step in steps:
        if step.good:
            state = _step(state, step, prices)
            if not _agrees(step, number, state):
                story.disagreeing.append((step, state))
            story.states = [state]
        elif not step.refused:  # nobody knows whether it was carried out
            story.states.append(_step(state, step, prices))
    return story


def _stories(load: OrderLoad) -> Iterator[_Story]:
    return (_story(a.order, a.steps, load.prices) for a in load.arrivals if a.order is not None)


def _load(evidence: Evidence) -> OrderLoad:
    assert evidence.order_load is not None  # noqa: S101 - needs
    return evidence.order_load


def _loaded(evidence: Evidence) -> bool:
    return evidence.order_load is not None


@check("order.26", HERE, _loaded)
def load_orders_kept(evidence: Evidence) -> Iterator[Finding]:
    """Each order is as its arrival left it, or gone."""
    load = _load(evidence)
    for arrival in load.arrivals:
        if arrival.order is None and any(s.operation == "create order" and s.good for s in arrival.steps):
            yield Finding(
                message=f"an order of {arrival.use_case!r} was created without an id",
                expected="an id",
                actual=shown(arrival.steps[0].body),
            )
    for story in _stories(load):
        found = load.after.get(story.number)
        if found not in story.states:
            expected = " or ".join(told(state) for state in story.states)
            yield Finding(
                message=f"order {story.number} is not as its answers say after the load",
                expected=expected,
                actual=told(found),
            )


@check("order.27", HERE, _loaded)
def load_orders_apart(evidence: Evidence) -> Iterator[Finding]:
    """No two arrivals have one order."""
    for number, times in Counter(a.order for a in _load(evidence).arrivals if a.order is not None).items():
        if times > 1:
            yield Finding(message=f"order {number} was answered to {times} arrivals", expected="1", actual=f"{times}")


@check("order.28", HERE, _loaded)
def load_no_other_order(evidence: Evidence) -> Iterator[Finding]:
    """No order is there that nobody asked for; those of before are unchanged."""
    load = _load(evidence)
    named = {arrival.order for arrival in load.arrivals if arrival.order is not None}
    # A create that was not answered may have been carried out: its order is told by customer, card and items.
    unanswered: Counter[object] = Counter(
        _mark(_step(None, arrival.steps[0], load.prices))
        for arrival in load.arrivals
        if arrival.order is None and arrival.steps and not arrival.steps[0].good and not arrival.steps[0].refused
    )
    for number, order in load.after.items():
        if number in named or number in load.before:
            continue
        unanswered[_mark(order)] -= 1
        if unanswered[_mark(order)] < 0:
            yield Finding(message=f"order {number} is nobody's", expected="no such order", actual=told(order))
    for number, order in load.before.items():
        if number not in named and load.after.get(number) != order:
            yield Finding(
                message=f"order {number} of before the load has changed",
                expected=told(order),
                actual=told(load.after.get(number)),
            )


def _mark(order: Order | None) -> object:
    """What tells an order without its id."""
    lines = sorted((i, line.quantity, line.price) for i, line in order.lines.items()) if order else []
    return (order.customer, order.card, order.total, tuple(lines)) if order else None


@check("order.29", HERE, _loaded)
def load_answers_agree(evidence: Evidence) -> Iterator[Finding]:
    """Bodies agree with what the arrival did."""
    for story in _stories(_load(evidence)):
        for step, state in story.disagreeing:
            yield Finding(
                message=f"order {story.number}: {step.operation} was answered otherwise than the order was then",
                expected=told(state),
                actual=shown(step.body),
            )


CHECKS: tuple[Check, ...] = (load_orders_kept, load_orders_apart, load_no_other_order, load_answers_agree)
