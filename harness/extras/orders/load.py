"""A load of arrivals: what each of them was answered, held against the rows. One pass over answers and rows."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import LoadError
from harness.extras.orders.model import Call, Order, Orders, Prices, applied, judging, lines_of, order_of, told
from harness.extras.orders.tables import order_tables
from harness.plan.orders import USE_CASES, Step, UseCase
from harness.runtime import DatabaseAddress
from harness.verify.checks import LOAD, Finding, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.json_text import JsonError, parse_json

HERE = frozenset({LOAD})
VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """One request of an arrival, as its use case and the arrival's variables make it, and what came."""

    call: Call
    wanted: int  # status of a good answer
    status: int | None  # that came; None where nothing did
    body: str

    @property
    def good(self) -> bool:
        """Answered as wanted."""
        return self.status == self.wanted

    @property
    def refused(self) -> bool:
        """Answered that it was not carried out: 5xx leaves that open."""
        return self.status is not None and 400 <= self.status < 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """One arrival of the load, with the steps that were sent."""

    use_case: str
    order: int | None  # that its answers name
    steps: tuple[Stepped, ...]

    @property
    def created(self) -> bool:
        """Whether it was answered an order."""
        return bool(self.steps) and self.steps[0].good


@dataclass(frozen=True, kw_only=True)
class OrderLoad:
    """A whole load of arrivals, and the tables before and after it."""

    arrivals: tuple[Arrival, ...]
    prices: Prices
    before: Orders
    after: Orders


def empty(database: DatabaseAddress) -> None:
    """Take all orders out of the tables, so that they grow alike in every load."""
    with order_tables(database) as view:
        view.empty()


def seen(answers: Path, database: DatabaseAddress) -> tuple[Evidence, int]:
    """What a load that began on empty tables shows, and how many arrivals it had; ``answers`` is the generator's file.

    Raises LoadError for a file that is not as documented.
    """
    arrivals = tuple(read(answers, USE_CASES))
    with order_tables(database) as view:
        view.settle()
        load = OrderLoad(arrivals=arrivals, prices=view.prices(), before={}, after=view.orders())
    return evidence_of(load), len(arrivals)


def evidence_of(load: OrderLoad) -> Evidence:
    """For the checks of a load."""
    return Evidence(test_type=LOAD, url="", extension=load)


def read(answers: Path, use_cases: Sequence[UseCase]) -> Iterator[Arrival]:
    """The arrivals of the generator's file (``--answers``), a line each; raises LoadError for one of another form."""
    known = {case.name: case.steps for case in use_cases}
    with answers.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _arrival(json.loads(line), known)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise LoadError(
                    f"{answers}, line {number}: not an arrival as the generator writes it: {error!r}"
                ) from error


def _arrival(document: Mapping[str, object], known: Mapping[str, Sequence[Step]]) -> Arrival:
    name, variables, steps = document["use_case"], document["variables"], document["steps"]
    if not isinstance(variables, dict) or not isinstance(steps, list) or not isinstance(name, str):
        raise TypeError("use_case, variables and steps are a string, an object and an array")
    values = {str(key).lstrip("$"): value for key, value in variables.items()}
    order = document.get("order")
    return Arrival(
        use_case=name,
        order=order if type(order) is int else None,
        steps=tuple(_step(step, planned, values) for step, planned in zip(steps, known[name], strict=False)),
    )


def _step(came: Mapping[str, object], planned: Step, values: Mapping[str, object]) -> Stepped:
    """A step with the arrival's variables in their places."""
    if came["operation"] != planned.operation:
        raise ValueError(f"{came['operation']!r} where the use case has {planned.operation!r}")
    body = filled(planned.body, values)
    asked = body if isinstance(body, dict) else {}
    item = int(f"{filled(planned.path.rpartition('/')[2], values)}") if "/items/" in planned.path else 0
    quantity = asked.get("quantity")
    lines = [(int(one["itemId"]), int(one["quantity"])) for one in asked.get("items", ())]
    status = came.get("status")
    return Stepped(
        call=Call(
            name="",
            operation=planned.operation,
            item=item,
            customer=int(asked.get("customerId", 0)),
            card=str(asked.get("card", "")),
            lines=tuple(lines or ([(item, int(quantity))] if quantity else [])),
        ),
        wanted=planned.status,
        status=status if type(status) is int and status else None,
        body=str(came.get("body") or ""),
    )


def filled(template: object, values: Mapping[str, object]) -> object:
    """A template of a use case with its variables in their places."""
    if isinstance(template, Mapping):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled(value, values) for value in template]
    if isinstance(template, str):
        if whole := VARIABLE.fullmatch(template):
            return values[whole[1]]
        return VARIABLE.sub(lambda found: f"{values[found[1]]}", template)
    return template


@dataclass(kw_only=True)
class _Story:
    """An arrival's order as its answers tell it."""

    number: int
    states: list[Order | None] = field(default_factory=list)  # that it may be in now; None: gone
    disagreeing: list[tuple[Stepped, Order | None]] = field(default_factory=list)  # answer, what it should be


def _agrees(step: Stepped, number: int, state: Order | None) -> bool:
    """Whether the body of a good answer is that of the order as it is then."""
    # The generator writes out so many characters of a body: a longer one is cut off.
    if step.status == 204 or len(step.body) >= 65_536:
        return True
    try:
        found = parse_json(step.body.encode("utf-8", "surrogatepass"))
    except (JsonError, UnicodeError):
        return False
    if step.call.operation == "read items":
        return state is not None and lines_of(found) == state.lines
    return order_of(found) == (number, state)


def _story(number: int, steps: Sequence[Stepped], prices: Prices) -> _Story:
    """What the answers of one arrival say."""
    story = _Story(number=number)
    state: Order | None = None
    for step in steps:
        if step.good:
            state = applied(step.call, state, prices)
            if not _agrees(step, number, state):
                story.disagreeing.append((step, state))
            story.states = [state]
        elif not step.refused:  # nobody knows whether it was carried out
            story.states.append(applied(step.call, state, prices))
    return story


def _stories(load: OrderLoad) -> Iterator[_Story]:
    return (_story(a.order, a.steps, load.prices) for a in load.arrivals if a.order is not None)


@judging(OrderLoad, HERE, "order.20")
def load_orders_kept(load: OrderLoad) -> Iterator[Finding]:
    """Each order is as its arrival left it, or gone."""
    for arrival in load.arrivals:
        if arrival.order is None and arrival.created:
            yield Finding(
                f"an order of {arrival.use_case!r} was created without an id",
                expected="an id",
                actual=shown(arrival.steps[0].body),
            )
    for story in _stories(load):
        found = load.after.get(story.number)
        if found not in story.states:
            expected = " or ".join(told(state) for state in story.states)
            yield Finding(
                f"order {story.number} is not as its answers say after the load", expected=expected, actual=told(found)
            )


@judging(OrderLoad, HERE, "order.21")
def load_orders_apart(load: OrderLoad) -> Iterator[Finding]:
    """No two arrivals have one order."""
    for number, times in Counter(a.order for a in load.arrivals if a.order is not None).items():
        if times > 1:
            yield Finding(f"order {number} was answered to {times} arrivals", expected="1", actual=f"{times}")


@judging(OrderLoad, HERE, "order.22")
def load_no_other_order(load: OrderLoad) -> Iterator[Finding]:
    """No order is there that nobody asked for; those of before are unchanged."""
    named = {arrival.order for arrival in load.arrivals if arrival.order is not None}
    # A create that was not answered may have been carried out: its order is told by customer, card and items.
    unanswered: Counter[object] = Counter(
        _mark(applied(arrival.steps[0].call, None, load.prices))
        for arrival in load.arrivals
        if arrival.order is None and arrival.steps and not arrival.steps[0].good and not arrival.steps[0].refused
    )
    for number, order in load.after.items():
        if number in named or number in load.before:
            continue
        unanswered[_mark(order)] -= 1
        if unanswered[_mark(order)] < 0:
            yield Finding(f"order {number} is nobody's", expected="no such order", actual=told(order))
    for number, order in load.before.items():
        if number not in named and load.after.get(number) != order:
            yield Finding(
                f"order {number} of before the load has changed",
                expected=told(order),
                actual=told(load.after.get(number)),
            )


def _mark(order: Order | None) -> object:
    """What tells an order without its id."""
    lines = sorted((i, line.quantity, line.price) for i, line in order.lines.items()) if order else []
    return (order.customer, order.card, order.total, tuple(lines)) if order else None


@judging(OrderLoad, HERE, "order.23")
def load_answers_agree(load: OrderLoad) -> Iterator[Finding]:
    """Bodies agree with what the arrival did."""
    for story in _stories(load):
        for step, state in story.disagreeing:
            yield Finding(
                f"order {story.number}: {step.call.operation} was answered otherwise than the order was then",
                expected=told(state),
                actual=shown(step.body),
            )
