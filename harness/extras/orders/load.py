"""A load of arrivals: what each of them was answered, held against the rows and the statements that were made."""

import json
import math
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any

from harness.errors import LoadError
from harness.extras.orders.model import Call, Order, Orders, Prices, applied, judging, same, told, wanted
from harness.extras.orders.tables import OrderTables, order_tables
from harness.plan.orders import USE_CASES, Step
from harness.records import bounded
from harness.runtime import DatabaseAddress
from harness.verify.checks import LOAD, Finding, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.statement_counts import Snapshot, Statement, bare

STEPS = {case.name: case.steps for case in USE_CASES}
CUT_OFF = 65_536  # characters of a body that the generator writes out
APART_SECONDS = (0.2, 0.8)  # between two looks at the tables while a load is on
INSERTS = re.compile(r'insert\s+into\s+(?:\w+\.)?"?orders"?(?!\w)', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """One request of an arrival, as its use case and the arrival's variables make it, and what came."""

    call: Call
    status: int | None  # that came; None where nothing did
    body: str
    received: float  # when, in nanoseconds of the monotonic clock; infinite where nothing did

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
class Look:
    """The orders of a moment with ids above one."""

    since: float = math.inf  # nanoseconds of the monotonic clock: what was answered by then has to be there
    above: int = 0
    orders: Orders


@dataclass(frozen=True, kw_only=True)
class OrderLoad:
    """A whole load of arrivals that began on empty tables, and the tables during and after it."""

    arrivals: tuple[Arrival, ...]
    prices: Prices
    looks: Sequence[Look]  # the last one after it
    counts: Sequence[Statement] | None = None  # None: not counted, or not exactly
    waiting: int = 0  # transactions that are still open: the last statement of each is not counted yet

    @property
    def after(self) -> Orders:
        """The tables after it."""
        return self.looks[-1].orders


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What is seen of a load while it is on."""

    begun: Snapshot | None  # statements before it
    looks: list[Look] = field(default_factory=list)


@contextmanager
def watched(database: DatabaseAddress) -> Iterator[Watched]:
    """Take all orders out of the tables, so that they grow alike in every load, and look at them while one is on."""
    over = threading.Event()
    with order_tables(database) as view, ThreadPoolExecutor(1) as pool:
        view.empty()
        found = Watched(begun=view.statements())
        looking = pool.submit(_look, view, found.looks, over)
        try:
            yield found
        finally:
            over.set()
        looking.result()


def _look(view: OrderTables, looks: list[Look], over: threading.Event) -> None:
    while not over.wait(random.uniform(*APART_SECONDS)):
        view.leave_old()
        since = float(time.monotonic_ns())
        looks.append(Look(since=since, above=view.above, orders=view.orders()))


def seen(answers: Path, database: DatabaseAddress, meanwhile: Watched) -> tuple[Evidence, int]:
    """What a load that began on empty tables shows, and how many arrivals it had; ``answers`` is the generator's file.

    Raises LoadError for a file that is not as documented.
    """
    arrivals = tuple(read(answers))
    with order_tables(database) as view:
        view.settle()
        now = view.statements() if meanwhile.begun else None
        load = OrderLoad(
            arrivals=arrivals,
            prices=view.prices(),
            looks=(*meanwhile.looks, Look(orders=view.orders())),
            counts=now.since(meanwhile.begun) if now and meanwhile.begun else None,
            waiting=len(now.waiting) if now else 0,
        )
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
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
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
    received = float(came.get("received_ns") or math.inf)
    return Stepped(call=call, status=came.get("status") or None, body=came.get("body") or "", received=received)


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
    return state is not None and same(found, wanted(step.call, number, state))


load_check = partial(judging, OrderLoad, LOAD)


@load_check("order.11")
def load_as_answered(load: OrderLoad) -> Iterator[Finding]:
    """Each order is as its answers left it, or gone; it is of one arrival, and none is there that nobody asked for."""
    named = set[int]()
    # A create that was not answered may have been carried out: its order is told by customer, card and items.
    unanswered = Counter[str]()
    for arrival in load.arrivals:
        number, created = arrival.order, next(iter(arrival.steps), None)
        if number is not None:
            if number in named:
                yield Finding(f"order {number} was answered to several arrivals", expected="one", actual="more")
            named.add(number)
            yield from _seen_otherwise(arrival, number, load)
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


def _seen_otherwise(arrival: Arrival, number: int, load: OrderLoad) -> Iterator[Finding]:
    """Looks, while the load was on and after it, that found an order otherwise than it had been answered by then."""
    for look in load.looks:
        answered = sum(step.received <= look.since for step in arrival.steps)
        if not answered or number <= look.above:
            continue
        # What was asked for next may have been carried out, or not yet.
        may = [_story(number, arrival.steps[:count], load.prices)[0] for count in (answered, answered + 1)]
        states, found = list(chain(*may)), look.orders.get(number)
        if found not in states:
            when = "after the load" if look is load.looks[-1] else "although it was answered before"
            message = f"order {number} is not as its answers say {when}"
            yield Finding(message, expected=" or ".join(dict.fromkeys(map(told, states))), actual=told(found))


@load_check("order.12")
def load_answers_agree(load: OrderLoad) -> Iterator[Finding]:
    """Bodies agree with what the arrival did."""
    for arrival in load.arrivals:
        if arrival.order is not None:
            for step, state in _story(arrival.order, arrival.steps, load.prices)[1]:
                message = f"order {arrival.order}: {step.call.operation} was answered otherwise than the order was then"
                yield Finding(message, expected=told(state), actual=shown(step.body))


@load_check("order.13", lambda load: load.counts is not None)
def load_statements(load: OrderLoad) -> Iterator[Finding]:
    """Orders and prices are read for each request, and each order is inserted for its own."""
    good = Counter(step.call.operation for arrival in load.arrivals for step in arrival.steps if step.good)
    counts = load.counts or ()
    for what, due, made in (
        ("prices", good["create order"] + good["add item"], [s for s in counts if s.names("item")]),
        ("orders", good["read order"] + good["read items"], [s for s in counts if not s.writes and _of_orders(s)]),
        ("new orders", good["create order"], [s for s in counts if INSERTS.search(bare(s.text))]),
    ):
        calls = sum(min(s.calls, s.rows) for s in made) + load.waiting
        if calls < due:
            message = f"{due - calls} of {due} requests were answered without a statement for {what}"
            yield Finding(message, expected=f"{due}, one a request at least", actual=f"{calls}")


def _of_orders(statement: Statement) -> bool:
    return statement.names("orders") or statement.names("order_item")
