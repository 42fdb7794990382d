"""Checks the order service under load, by comparing responses with table rows and SQL statement counts."""

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
from harness.extras.orders.entities import (
    Call,
    Order,
    OrdersById,
    Prices,
    applied,
    equal_json,
    expected_document,
    format_order,
    judging,
)
from harness.extras.orders.test_type import USE_CASES
from harness.plan.scenarios import RequestStep
from harness.records import safe_read
from harness.runtime import DatabaseAddress
from harness.verify.checks import LOAD, Finding, excerpt
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.statement_counts import NormalisedStatement, StatementSnapshot, strip_comments

STEPS = {case.name: case.steps for case in USE_CASES}
CUT_OFF = 65_536  # maximum length of a response body in the generator's file, in characters
SNAPSHOT_INTERVAL_SECONDS = (0.2, 0.8)  # bounds of the random interval between two reads of the tables during a load
INSERT_ORDER = re.compile(r'insert\s+into\s+(?:\w+\.)?"?orders"?(?!\w)', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedStep:
    """A request of an arrival, with the response."""

    call: Call
    status: int | None  # status of the response; None if there was no response
    body: str
    received: float  # monotonic nanoseconds at which the response was received; infinity if there was no response

    @property
    def good(self) -> bool:
        """Return whether the response has the expected status."""
        return self.status == self.call.status

    @property
    def open(self) -> bool:
        """Return whether the effect of the request is unknown, because there was no response or a 5xx status."""
        return not self.good and (self.status is None or not 400 <= self.status < 500)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """An execution of a use case by the load generator."""

    use_case: str
    order: int | None  # order id that the server returned; None if it returned no id
    steps: tuple[ObservedStep, ...]


@dataclass(frozen=True, kw_only=True)
class OrdersSnapshot:
    """A snapshot of the orders with ids greater than ``above``."""

    since: float = math.inf  # monotonic nanoseconds; writes with a response before this time must be visible
    above: int = 0
    orders: OrdersById


@dataclass(frozen=True, kw_only=True)
class OrderLoad:
    """Observations during and after a load that started with empty tables."""

    arrivals: tuple[Arrival, ...]
    prices: Prices
    snapshots: Sequence[OrdersSnapshot]  # the last snapshot was taken after the load
    # Counts of SQL statements during the load; None if PostgreSQL has no exact counts.
    counts: Sequence[NormalisedStatement] | None = None
    open_statements: int = 0  # number of open transactions, whose last statements PostgreSQL has not counted yet

    @property
    def after(self) -> OrdersById:
        """Return the orders after the load."""
        return self.snapshots[-1].orders


@dataclass(frozen=True, kw_only=True)
class OrderObservations:
    """Statement counts before a load, and table snapshots during the load."""

    statements_before: StatementSnapshot | None  # None if PostgreSQL does not count statements
    snapshots: list[OrdersSnapshot] = field(default_factory=list)


@contextmanager
def observe_load(database: DatabaseAddress) -> Iterator[OrderObservations]:
    """Empty the tables, so that every load starts with the same rows. Take snapshots while the context is active."""
    ended = threading.Event()
    with order_tables(database) as tables, ThreadPoolExecutor(1) as pool:
        tables.empty()
        observations = OrderObservations(statements_before=tables.statements())
        recording = pool.submit(_take_snapshots, tables, observations.snapshots, ended)
        try:
            yield observations
        finally:
            ended.set()
        recording.result()


def _take_snapshots(tables: OrderTables, snapshots: list[OrdersSnapshot], ended: threading.Event) -> None:
    while not ended.wait(random.uniform(*SNAPSHOT_INTERVAL_SECONDS)):
        tables.ignore_old()
        since = float(time.monotonic_ns())
        snapshots.append(OrdersSnapshot(since=since, above=tables.above, orders=tables.orders()))


def gather_evidence(
    responses_file: Path, database: DatabaseAddress, observations: OrderObservations
) -> tuple[Evidence, int]:
    """Return (evidence about a load, number of arrivals). Raises LoadError for an unreadable file."""
    arrivals = tuple(read(responses_file))
    with order_tables(database) as tables:
        tables.settle()
        counters = tables.statements() if observations.statements_before else None
        load = OrderLoad(
            arrivals=arrivals,
            prices=tables.prices(),
            snapshots=(*observations.snapshots, OrdersSnapshot(orders=tables.orders())),
            counts=counters.since(observations.statements_before)
            if counters and observations.statements_before
            else None,
            open_statements=len(counters.open_statements) if counters else 0,
        )
    return Evidence(test_type=LOAD, extension=load), len(arrivals)


def read(responses_file: Path) -> Iterator[Arrival]:
    """Yield the arrivals in the generator's file (``--responses``). Raises LoadError for an invalid line."""
    with responses_file.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            try:
                document = json.loads(line)
                order, steps = document.get("order"), zip(document["steps"], STEPS[document["use_case"]], strict=False)
                yield Arrival(
                    use_case=document["use_case"],
                    order=order if type(order) is int else None,
                    steps=tuple(_step(recorded, planned, document["variables"]) for recorded, planned in steps),
                )
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
                raise LoadError(
                    f"line {number} of {responses_file} is not in the load generator's format: {error!r}"
                ) from error


def _step(recorded: Mapping[str, Any], planned: RequestStep, variables: Mapping[str, object]) -> ObservedStep:
    """Substitute the arrival's variables in the planned request, and combine it with the recorded response."""
    if recorded["operation"] != planned.operation:
        raise ValueError(f"the operation is {recorded['operation']!r}, but the use case requires {planned.operation!r}")
    text = json.dumps((planned.path.partition("/items/")[2], planned.body or {}))
    item, body = json.loads(Template(text).substitute(variables))
    call = Call(operation=planned.operation, status=planned.status, item=int(item or 0), document=body)
    received = float(recorded.get("received_ns") or math.inf)
    return ObservedStep(
        call=call, status=recorded.get("status") or None, body=recorded.get("body") or "", received=received
    )


States = list[Order | None]  # possible states of an order; None means that it was deleted


def _replay_steps(
    number: int, steps: Sequence[ObservedStep], prices: Prices
) -> tuple[States, list[tuple[ObservedStep, Order | None]]]:
    """Replay an arrival's requests. Return the order's possible final states and the wrong responses.

    Each wrong response is paired with the state that it should describe.
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
    """Return whether the body of a successful response describes the order ``state``."""
    if step.status == 204 or len(step.body) >= CUT_OFF:
        return True
    try:
        document = safe_read.parse_json(step.body.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    return state is not None and equal_json(document, expected_document(step.call, number, state))


load_check = partial(judging, OrderLoad, LOAD)


@load_check("order.11")
def load_as_answered(load: OrderLoad) -> Iterator[Finding]:
    """Require that each stored order belongs to an arrival and matches the responses."""
    created_orders = set[int]()
    # A request without a response may have created an order. tfb finds this order by customer, card and items.
    unanswered = Counter[str]()
    for arrival in load.arrivals:
        number, creation = arrival.order, next(iter(arrival.steps), None)
        if number is not None:
            if number in created_orders:
                yield Finding(f"order {number} was returned to several arrivals", expected="one", actual="several")
            created_orders.add(number)
            yield from _contradicting_snapshots(arrival, number, load)
        elif creation and creation.good:
            message = f"the response that created an order in {arrival.use_case!r} contains no id"
            yield Finding(message, expected="an id", actual=excerpt(creation.body))
        elif creation and creation.open:
            unanswered[format_order(applied(creation.call, None, load.prices))] += 1
    for number, order in load.after.items():
        if number not in created_orders:
            unanswered[format_order(order)] -= 1
            if unanswered[format_order(order)] < 0:
                yield Finding(f"no request created order {number}", expected="no order", actual=format_order(order))


def _contradicting_snapshots(arrival: Arrival, number: int, load: OrderLoad) -> Iterator[Finding]:
    """Yield a finding for each snapshot that contradicts earlier responses."""
    for snapshot in load.snapshots:
        answered = sum(step.received <= snapshot.since for step in arrival.steps)
        if not answered or number <= snapshot.above:
            continue
        # When the snapshot was taken, the server may already have processed the next request.
        possible = [_replay_steps(number, arrival.steps[:count], load.prices)[0] for count in (answered, answered + 1)]
        states, stored = list(chain(*possible)), snapshot.orders.get(number)
        if stored not in states:
            when = "after the load" if snapshot is load.snapshots[-1] else "during the load"
            message = f"order {number} contradicts earlier responses {when}"
            yield Finding(
                message, expected=" or ".join(dict.fromkeys(map(format_order, states))), actual=format_order(stored)
            )


@load_check("order.12")
def load_answers_agree(load: OrderLoad) -> Iterator[Finding]:
    """Require that each response body reflects the arrival's requests up to this response."""
    for arrival in load.arrivals:
        if arrival.order is not None:
            for step, state in _replay_steps(arrival.order, arrival.steps, load.prices)[1]:
                message = f'order {arrival.order}: the response to "{step.call.operation}" differs from the order'
                yield Finding(message, expected=format_order(state), actual=excerpt(step.body))


@load_check("order.13", lambda load: load.counts is not None)
def load_statements(load: OrderLoad) -> Iterator[Finding]:
    """Require that requests read orders and prices from the database, and that each order causes a separate INSERT."""
    successful = Counter(step.call.operation for arrival in load.arrivals for step in arrival.steps if step.good)
    counts = load.counts or ()
    for operation, expected, statements in (
        ("prices", successful["create order"] + successful["add item"], [s for s in counts if s.names_table("item")]),
        (
            "orders",
            successful["read order"] + successful["read items"],
            [s for s in counts if not s.writes and _of_orders(s)],
        ),
        ("new orders", successful["create order"], [s for s in counts if INSERT_ORDER.search(strip_comments(s.text))]),
    ):
        calls = sum(min(s.calls, s.rows) for s in statements) + load.open_statements
        if calls < expected:
            message = f"{expected - calls} of {expected} successful requests triggered no SQL statement for {operation}"
            yield Finding(message, expected=f"at least {expected}, one per request", actual=f"{calls}")


def _of_orders(statement: NormalisedStatement) -> bool:
    return statement.names_table("orders") or statement.names_table("order_item")
