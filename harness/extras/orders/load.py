"""Checks of a load of orders: all responses are compared with the rows and with the number of SQL statements."""

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
from harness.extras.orders.database import OrderTables, order_tables
from harness.extras.orders.entities import Call, Order, OrdersById, Prices, applied, judging, same, told, wanted
from harness.extras.orders.test_type import USE_CASES
from harness.plan.scenarios import RequestStep
from harness.records import safe_read
from harness.runtime import DatabaseAddress
from harness.verify.checks import LOAD, Finding, excerpt
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.statement_counts import NormalisedStatement, StatementSnapshot, strip_comments

STEPS = {case.name: case.steps for case in USE_CASES}
CUT_OFF = 65_536  # maximum number of characters of a response body in the generator's file
SNAPSHOT_INTERVAL_SECONDS = (0.2, 0.8)  # bounds of the random interval between two reads of the tables during a load
INSERT_ORDER = re.compile(r'insert\s+into\s+(?:\w+\.)?"?orders"?(?!\w)', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedStep:
    """A request of an arrival, with the response. The call follows from the use case and the arrival's variables."""

    call: Call
    status: int | None  # status of the response; None without a response
    body: str
    received: float  # monotonic nanoseconds at which the response was received; infinity without a response

    @property
    def good(self) -> bool:
        """Return whether the response has the expected status."""
        return self.status == self.call.status

    @property
    def open(self) -> bool:
        """Return whether the outcome of the request is unknown: there was no response, or a status 5xx."""
        return not self.good and (self.status is None or not 400 <= self.status < 500)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """An arrival of the load, with the requests that were sent."""

    use_case: str
    order: int | None  # order id in the responses
    steps: tuple[ObservedStep, ...]


@dataclass(frozen=True, kw_only=True)
class OrdersSnapshot:
    """A snapshot of the orders whose ids are greater than ``above``."""

    since: float = math.inf  # monotonic nanoseconds; writes whose responses were received earlier must be visible
    above: int = 0
    orders: OrdersById


@dataclass(frozen=True, kw_only=True)
class OrderLoad:
    """A load that started with empty tables, and snapshots of the tables during and after the load."""

    arrivals: tuple[Arrival, ...]
    prices: Prices
    looks: Sequence[OrdersSnapshot]  # the last snapshot was taken after the load
    counts: Sequence[NormalisedStatement] | None = None  # None: not counted, or not exact
    waiting: int = 0  # number of open transactions, whose last statements have not been counted yet

    @property
    def after(self) -> OrdersById:
        """Return the orders after the load."""
        return self.looks[-1].orders


@dataclass(frozen=True, kw_only=True)
class OrderObservations:
    """Observations during a load."""

    begun: StatementSnapshot | None  # statement counts before the load
    looks: list[OrdersSnapshot] = field(default_factory=list)


@contextmanager
def observe_load(database: DatabaseAddress) -> Iterator[OrderObservations]:
    """Empty the tables, so that all loads start equally. Take snapshots while the context is active."""
    over = threading.Event()
    with order_tables(database) as view, ThreadPoolExecutor(1) as pool:
        view.empty()
        found = OrderObservations(begun=view.statements())
        looking = pool.submit(_take_snapshots, view, found.looks, over)
        try:
            yield found
        finally:
            over.set()
        looking.result()


def _take_snapshots(view: OrderTables, looks: list[OrdersSnapshot], over: threading.Event) -> None:
    while not over.wait(random.uniform(*SNAPSHOT_INTERVAL_SECONDS)):
        view.leave_old()
        since = float(time.monotonic_ns())
        looks.append(OrdersSnapshot(since=since, above=view.above, orders=view.orders()))


def gather_evidence(
    responses_file: Path, database: DatabaseAddress, meanwhile: OrderObservations
) -> tuple[Evidence, int]:
    """Return the evidence of a load and the number of arrivals.

    Args:
        responses_file: The generator's file with the responses.
        database: Address of the database.
        meanwhile: The observations during the load.

    Raises:
        LoadError: The file is not in the documented format.
    """
    arrivals = tuple(read(responses_file))
    with order_tables(database) as view:
        view.settle()
        now = view.statements() if meanwhile.begun else None
        load = OrderLoad(
            arrivals=arrivals,
            prices=view.prices(),
            looks=(*meanwhile.looks, OrdersSnapshot(orders=view.orders())),
            counts=now.since(meanwhile.begun) if now and meanwhile.begun else None,
            waiting=len(now.open_statements) if now else 0,
        )
    return Evidence(test_type=LOAD, extension=load), len(arrivals)


def read(responses_file: Path) -> Iterator[Arrival]:
    """Yield the arrivals in the generator's file (``--answers``). Raises LoadError for an invalid line."""
    with responses_file.open(encoding="utf-8", errors="surrogateescape") as lines:
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
                    f"{responses_file}, line {number}: is not in the format of the load generator: {error!r}"
                ) from error


def _step(came: Mapping[str, Any], planned: RequestStep, variables: Mapping[str, object]) -> ObservedStep:
    """Combine a planned request, its recorded response and the arrival's variables."""
    if came["operation"] != planned.operation:
        raise ValueError(f"{came['operation']!r} where the use case has {planned.operation!r}")
    text = json.dumps((planned.path.partition("/items/")[2], planned.body or {}))
    item, body = json.loads(Template(text).substitute(variables))
    call = Call(operation=planned.operation, status=planned.status, item=int(item or 0), document=body)
    received = float(came.get("received_ns") or math.inf)
    return ObservedStep(call=call, status=came.get("status") or None, body=came.get("body") or "", received=received)


States = list[Order | None]  # possible states of an order; None means that it was deleted


def _replay_steps(
    number: int, steps: Sequence[ObservedStep], prices: Prices
) -> tuple[States, list[tuple[ObservedStep, Order | None]]]:
    """Replay the requests of an arrival.

    Returns:
        The possible final states of the order, and each response that contradicts the order, with that order.
    """
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


def _agrees(step: ObservedStep, number: int, state: Order | None) -> bool:
    """Return whether the body of a successful response describes the order in this state."""
    if step.status == 204 or len(step.body) >= CUT_OFF:
        return True
    try:
        found = safe_read.parse_json(step.body.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    return state is not None and same(found, wanted(step.call, number, state))


load_check = partial(judging, OrderLoad, LOAD)


@load_check("order.11")
def load_as_answered(load: OrderLoad) -> Iterator[Finding]:
    """Require that each order matches the responses and belongs to an arrival, and that no other order exists."""
    named = set[int]()
    # A create without a response may have been carried out. Customer, card and items identify the order.
    unanswered = Counter[str]()
    for arrival in load.arrivals:
        number, created = arrival.order, next(iter(arrival.steps), None)
        if number is not None:
            if number in named:
                yield Finding(f"order {number} was returned to several arrivals", expected="one", actual="several")
            named.add(number)
            yield from _seen_otherwise(arrival, number, load)
        elif created and created.good:
            message = f"the response to a created order of {arrival.use_case!r} contains no id"
            yield Finding(message, expected="an id", actual=excerpt(created.body))
        elif created and created.open:
            unanswered[told(applied(created.call, None, load.prices))] += 1
    for number, order in load.after.items():
        if number not in named:
            unanswered[told(order)] -= 1
            if unanswered[told(order)] < 0:
                yield Finding(f"no request created order {number}", expected="no order", actual=told(order))


def _seen_otherwise(arrival: Arrival, number: int, load: OrderLoad) -> Iterator[Finding]:
    """Yield a finding for each snapshot that contradicts the responses received before it."""
    for look in load.looks:
        answered = sum(step.received <= look.since for step in arrival.steps)
        if not answered or number <= look.above:
            continue
        # The next request may already have been carried out.
        may = [_replay_steps(number, arrival.steps[:count], load.prices)[0] for count in (answered, answered + 1)]
        states, found = list(chain(*may)), look.orders.get(number)
        if found not in states:
            when = "after the load" if look is load.looks[-1] else "during the load"
            message = f"order {number} contradicts earlier responses {when}"
            yield Finding(message, expected=" or ".join(dict.fromkeys(map(told, states))), actual=told(found))


@load_check("order.12")
def load_answers_agree(load: OrderLoad) -> Iterator[Finding]:
    """Require that response bodies agree with the requests of the arrival."""
    for arrival in load.arrivals:
        if arrival.order is not None:
            for step, state in _replay_steps(arrival.order, arrival.steps, load.prices)[1]:
                message = f"order {arrival.order}: the response to {step.call.operation} contradicts the order"
                yield Finding(message, expected=told(state), actual=excerpt(step.body))


@load_check("order.13", lambda load: load.counts is not None)
def load_statements(load: OrderLoad) -> Iterator[Finding]:
    """Require that orders and prices are read from the database, and that each order is inserted separately."""
    good = Counter(step.call.operation for arrival in load.arrivals for step in arrival.steps if step.good)
    counts = load.counts or ()
    for what, due, made in (
        ("prices", good["create order"] + good["add item"], [s for s in counts if s.names_table("item")]),
        ("orders", good["read order"] + good["read items"], [s for s in counts if not s.writes and _of_orders(s)]),
        ("new orders", good["create order"], [s for s in counts if INSERT_ORDER.search(strip_comments(s.text))]),
    ):
        calls = sum(min(s.calls, s.rows) for s in made) + load.waiting
        if calls < due:
            message = f"{due - calls} of {due} requests were answered without a statement for {what}"
            yield Finding(message, expected=f"{due}, at least one per request", actual=f"{calls}")


def _of_orders(statement: NormalisedStatement) -> bool:
    return statement.names_table("orders") or statement.names_table("order_item")
