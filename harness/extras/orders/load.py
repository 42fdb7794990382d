"""A load of arrivals: what each of them was answered, held against the rows. One pass over answers and rows."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

from harness.errors import LoadError
from harness.extras.orders.model import Call, Order, Orders, Prices, applied, judging, told, wanted
from harness.extras.orders.tables import order_tables
from harness.plan.orders import USE_CASES, Step
from harness.records import bounded
from harness.runtime import DatabaseAddress
from harness.verify.checks import LOAD, Finding, shown
from harness.verify.checks.evidence import Evidence

STEPS = {case.name: case.steps for case in USE_CASES}
CUT_OFF = 65_536  # characters of a body that the generator writes out


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """One request of an arrival, as its use case and the arrival's variables make it, and what came."""

    call: Call
    status: int | None  # that came; None where nothing did
    body: str

    @property
    def good(self) -> bool:
        """Answered as wanted."""
        return self.status == self.call.status

    @property
    def open(self) -> bool:
        """Whether nobody knows if it was carried out: without an answer, or with 5xx."""
        return not self.good and (self.status is None or not 400 <= self.status < 500)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """One arrival of the load, with the steps that were sent."""

    use_case: str
    order: int | None  # that its answers name
    steps: tuple[Stepped, ...]


@dataclass(frozen=True, kw_only=True)
class OrderLoad:
    """A whole load of arrivals that began on empty tables, and the tables after it."""

    arrivals: tuple[Arrival, ...]
    prices: Prices
    after: Orders


def empty(database: DatabaseAddress) -> None:
    """Take all orders out of the tables, so that they grow alike in every load."""
    with order_tables(database) as view:
        view.empty()


def seen(answers: Path, database: DatabaseAddress) -> tuple[Evidence, int]:
    """What a load that began on empty tables shows, and how many arrivals it had; ``answers`` is the generator's file.

    Raises LoadError for a file that is not as documented.
    """
    arrivals = tuple(read(answers))
    with order_tables(database) as view:
        view.settle()
        load = OrderLoad(arrivals=arrivals, prices=view.prices(), after=view.orders())
    return Evidence(test_type=LOAD, extension=load), len(arrivals)


def read(answers: Path) -> Iterator[Arrival]:
    """The arrivals of the generator's file (``--answers``), a line each; raises LoadError for one of another form."""
    with answers.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            try:
                document = json.loads(line)
                order, steps = document.get("order"), zip(document["steps"], STEPS[document["use_case"]], strict=False)
                yield Arrival(
                    use_case=document["use_case"],
                    order=order if type(order) is int else None,
                    steps=tuple(_step(came, planned, document["variables"]) for came, planned in steps),
                )
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise LoadError(
                    f"{answers}, line {number}: not an arrival as the generator writes it: {error!r}"
                ) from error


def _step(came: Mapping[str, Any], planned: Step, variables: Mapping[str, object]) -> Stepped:
    """A step with the arrival's variables in their places."""
    if came["operation"] != planned.operation:
        raise ValueError(f"{came['operation']!r} where the use case has {planned.operation!r}")
    text = json.dumps((planned.path.partition("/items/")[2], planned.body or {}))
    item, body = json.loads(Template(text).substitute(variables))
    call = Call(operation=planned.operation, status=planned.status, item=int(item or 0), document=body)
    return Stepped(call=call, status=came.get("status") or None, body=came.get("body") or "")


States = list[Order | None]  # that an order may be in; None: gone


def _story(number: int, steps: Sequence[Stepped], prices: Prices) -> tuple[States, list[tuple[Stepped, Order | None]]]:
    """What an order may be by an arrival's answers; and which of these are not as the order was then."""
    states: States = []
    disagreeing = []
    state: Order | None = None
    for step in steps:
        if step.good:
            state = applied(step.call, state, prices)
            states = [state]
            if not _agrees(step, number, state):
                disagreeing.append((step, state))
        elif step.open:
            states.append(applied(step.call, state, prices))
    return states, disagreeing


def _agrees(step: Stepped, number: int, state: Order | None) -> bool:
    """Whether the body of a good answer is that of the order as it is then."""
    if step.status == 204 or len(step.body) >= CUT_OFF:
        return True
    try:
        found = bounded.parse(step.body.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    return state is not None and found == wanted(step.call, number, state)


load_check = partial(judging, OrderLoad, LOAD)


@load_check("order.11")
def load_as_answered(load: OrderLoad) -> Iterator[Finding]:
    """Each order is as its arrival left it, or gone; it is of one arrival, and none is there that nobody asked for."""
    named = set[int]()
    # A create that was not answered may have been carried out: its order is told by customer, card and items.
    unanswered = Counter[str]()
    for arrival in load.arrivals:
        number, created = arrival.order, next(iter(arrival.steps), None)
        if number is not None:
            if number in named:
                yield Finding(f"order {number} was answered to several arrivals", expected="one", actual="more")
            named.add(number)
            states, _ = _story(number, arrival.steps, load.prices)
            found = load.after.get(number)
            if found not in states:
                message = f"order {number} is not as its answers say after the load"
                yield Finding(message, expected=" or ".join(map(told, states)), actual=told(found))
        elif created and created.good:
            message = f"an order of {arrival.use_case!r} was created without an id"
            yield Finding(message, expected="an id", actual=shown(created.body))
        elif created and created.open:
            unanswered[told(applied(created.call, None, load.prices))] += 1
    for number, order in load.after.items():
        if number not in named:
            unanswered[told(order)] -= 1
            if unanswered[told(order)] < 0:
                yield Finding(f"order {number} is nobody's", expected="no such order", actual=told(order))


@load_check("order.12")
def load_answers_agree(load: OrderLoad) -> Iterator[Finding]:
    """Bodies agree with what the arrival did."""
    for arrival in load.arrivals:
        if arrival.order is not None:
            for step, state in _story(arrival.order, arrival.steps, load.prices)[1]:
                message = f"order {arrival.order}: {step.call.operation} was answered otherwise than the order was then"
                yield Finding(message, expected=told(state), actual=shown(step.body))
