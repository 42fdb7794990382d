"""Gathers evidence about an order service through sequential calls, concurrent calls and delayed commits."""

import random
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import replace

import psycopg

from harness.errors import StartError
from harness.extras.orders import checks, load
from harness.extras.orders.calls import Calls, refused
from harness.extras.orders.database import ITEMS, ORDERS, OrderTables, order_tables
from harness.extras.orders.entities import Call, Crowd, ObservedCall, OrderEvidence, OrdersById
from harness.runtime import NO_DATABASE
from harness.verify.checks.evidence import Evidence, QueryVariant
from harness.verify.checks.verification_client import CONCURRENT_CONNECTIONS, ReconnectingConnection, VerificationTask

LATE_SECONDS = 0.15  # delay before tfb reads the tables again if they do not show a write yet
HELD_SECONDS = 0.3  # commit delay; a successful response to a write during this time is an error
LET_SECONDS = 0.15  # wait after tfb unblocks commits to a table


class _NotCreatedError(Exception):
    """Failure to create an order. tfb stops gathering evidence, and the checks report the failure."""


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Request the list of orders three times, then call every operation. Store the results in ``evidence``."""
    plain = QueryVariant(name="plain")
    evidence.exchanges = task.load_client().send_in_order([plain] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    evidence.extension = order_evidence = OrderEvidence()
    with ExitStack() as stack:
        try:
            tables = stack.enter_context(order_tables(task.database or NO_DATABASE))
            tables.ignore_old()
        except (StartError, psycopg.Error) as error:
            order_evidence.unseen = f"cannot read the tables: {str(error).strip()}"
            return
        connection = stack.enter_context(ReconnectingConnection(task.variant_client()))
        with suppress(_NotCreatedError):
            _Gathering(task, order_evidence, connection, tables).gather()
    all_calls = (
        *order_evidence.observed_calls,
        *(observed for crowd in order_evidence.crowds for observed in crowd.observed_calls),
    )
    # Exclude reads of rows that tfb has changed in the database, because rule order.9 checks them.
    evidence.declared_exchanges = [a.exchange for a in all_calls if not a.changed or a.exchange.response is None]


class _Gathering:
    """A client for a single verification, which sends the calls and collects the evidence."""

    def __init__(
        self, task: VerificationTask, evidence: OrderEvidence, connection: ReconnectingConnection, tables: OrderTables
    ) -> None:
        self._task = task
        self._calls = Calls(task.url)
        self._evidence = evidence
        self._connection = connection
        self._tables = tables
        self._random = random.Random(secrets.randbits(64))
        self._created: dict[int, list[int]] = {}  # order id -> ids of the order's initial items

    def gather(self) -> None:
        self._send_all_operations()
        if self._task.thorough:
            # Create several orders in sequence to find intermittent errors.
            for _ in range(12):
                self._create(2)
            order, item = self._create(1), self._unused_items(1)[0]
            for call in refused(self._calls, order, self._created[order][0], item):
                self._send(call)
        if self._tables.admin:
            self._change_prices()
        self._change_directly()
        self._send_concurrently()
        if self._task.thorough:
            self._send_held_writes((ORDERS, ITEMS))
            self._send_held_writes((ITEMS, ORDERS))
            self._send_overlapping()
        self._load_orders()

    # ---- Sequential calls --------------------------------------------------------------------------------------------

    def _send(
        self, call: Call, connection: ReconnectingConnection | None = None, *, changed: bool = False
    ) -> ObservedCall:
        """Send a call and record the tables before and after the call."""
        tables, must_fail = self._tables, call.status >= 400
        # Calls that must be rejected are sent sequentially, so the tables after the previous call are still current.
        before = self._evidence.observed_calls[-1].settled if must_fail else tables.orders()
        prices = {} if must_fail or call.reads else tables.prices()
        exchange = (connection or self._connection).send(call)
        after = before if call.reads and not must_fail else tables.orders()
        observed = ObservedCall(
            call=call, exchange=exchange, prices=prices, before=before, after=after, settled=after, changed=changed
        )
        if observed.wrote and any(observed.differences(after)):
            time.sleep(LATE_SECONDS)
            observed = replace(observed, settled=tables.orders())
        self._evidence.observed_calls.append(observed)
        return observed

    def _send_create(self, call: Call) -> int:
        """Create an order and return the id. Raises _NotCreatedError if the tables do not contain the order."""
        observed = self._send(call)
        number = observed.id
        if number is None or not observed.good or number not in observed.settled:
            raise _NotCreatedError
        self._created[number] = [*call.lines]
        return number

    def _create(self, lines: int) -> int:
        """Create a random order with a given number of items and return the id."""
        customer = self._random.randint(1, 1000)
        return self._send_create(self._calls.create(self._lines(lines), customer=customer, card=self._card()))

    def _lines(self, count: int) -> list[tuple[int, int]]:
        return [(item, self._random.randint(1, 5)) for item in self._random.sample(range(1, 1001), count)]

    def _unused_items(self, count: int) -> list[int]:
        """Return the ids of ``count`` random items that are not in any order created so far."""
        taken = {item for items in self._created.values() for item in items}
        return self._random.sample([item for item in range(1, 1001) if item not in taken], count)

    def _card(self) -> str:
        return "".join(self._random.choices("0123456789", k=16))

    def _send_all_operations(self) -> None:
        """Call every operation. If thorough, also send extreme values and members that the server must ignore."""
        calls = self._calls
        self._create(2)
        if self._task.thorough:
            self._send_create(calls.create([(1000, 100)], customer=1000, card=self._card()[:12]))
            self._send_create(calls.create(self._lines(20), card=self._card() + "123"))
            # The server must ignore prices sent by the client and unknown members.
            more = {"total": "0.01", "note": "be quick", "id": 1}
            ignored = {"price": "0.01", "name": "x"}
            self._send_create(calls.create([(900, 2), (17, 3)], extra_members=more, of_items=ignored))
        card = self._card()  # used for two orders of the same customer
        order, _ = (self._send_create(calls.create(self._lines(2), customer=7, card=card)) for _ in range(2))
        last = self._create(3)
        for number in self._created:
            self._send(calls.call("read order", number))
        self._send(calls.call("change card", order, body={"card": self._card()}))
        items = self._unused_items(3)
        for item in items:
            self._send(calls.add(order, item, self._random.randint(1, 100)))
        self._send(calls.call("read item", order, items[0]))
        self._send(calls.call("delete item", order, items[1]))
        self._send(calls.call("read items", order))
        self._send(calls.add(order, items[1], 1))
        self._send(calls.call("read order", order))
        self._send(calls.call("delete order", last))
        self._send(calls.call("list orders"))
        self._create(1)
        self._send(calls.call("list orders"))  # immediately, to detect lists that are cached for a short time

    # ---- Calls before and after direct changes to the database -------------------------------------------------------

    def _change_prices(self) -> None:
        """Order items before and after a price change. Each ordered item must keep its price at the time of order."""
        item, other_item = self._random.sample(range(1, 1001), 2)
        for _ in range(2):
            self._send_create(self._calls.create([(item, 1)], card=self._card()))
        with self._tables.changed_price(item):
            self._send_create(self._calls.create([(item, 2), (other_item, 1)], card=self._card()))
            order = self._send_create(self._calls.create([(other_item, 1)], card=self._card()))
            self._send(self._calls.add(order, item, 3))

    def _change_directly(self) -> None:
        """Read rows through the server before and after tfb changes or deletes the rows in the database."""
        calls = self._calls
        order, doomed = self._create(2), self._create(1)
        item = self._created[order][0]
        of_order = [
            calls.call("read order", order),
            calls.call("read items", order),
            calls.call("read item", order, item),
            calls.call("list orders"),
        ]
        of_doomed = [calls.call("read order", doomed)]
        with ExitStack() as stack:
            connections = [stack.enter_context(ReconnectingConnection(self._task.variant_client())) for _ in range(4)]

            def read(calls_to_send: Sequence[Call], *, changed: bool) -> None:
                for connection in connections:
                    for call in calls_to_send:
                        self._send(call, connection, changed=changed)

            read((*of_order, *of_doomed), changed=False)
            self._tables.change(order, self._card(), item, 77)
            read(of_order, changed=True)
            self._tables.delete(doomed)
            read(of_doomed, changed=True)

    # ---- Calls sent concurrently -------------------------------------------------------------------------------------

    def _send_concurrently(self) -> None:
        """Change the items of a single order and create new orders, on all connections at the same time."""
        order = self._create(1)
        turns = 5 if self._task.thorough else 2
        unused_items = iter(self._unused_items(2 * turns * CONCURRENT_CONNECTIONS))

        def calls() -> Iterator[Call]:
            for turn in range(turns):
                one, two = next(unused_items), next(unused_items)
                yield self._calls.add(order, one, turn + 1)
                yield self._calls.add(order, two, 1)
                yield self._calls.create([(one, 1), (two, 2)], card="4" * 16)
                yield self._calls.call("delete item", order, one)

        def send(connection_calls: Sequence[Call]) -> list[ObservedCall]:
            with ReconnectingConnection(self._task.variant_client()) as connection:
                return [ObservedCall(call=call, exchange=connection.send(call)) for call in connection_calls]

        calls_by_connection, before = [list(calls()) for _ in range(CONCURRENT_CONNECTIONS)], self._tables.orders()
        with ThreadPoolExecutor(CONCURRENT_CONNECTIONS) as pool:
            observed_calls = tuple(observed for part in pool.map(send, calls_by_connection) for observed in part)
        self._add_crowd(Crowd(observed_calls=observed_calls, before=before))

    def _add_crowd(self, crowd: Crowd) -> None:
        """Wait until the server is idle, then record the concurrent calls and the resulting tables."""
        if self._tables.admin:
            self._tables.settle(2.0)
        else:  # only an administrator can see whether the server is idle
            time.sleep(LATE_SECONDS)
        self._evidence.crowds.append(replace(crowd, prices=self._tables.prices(), after=self._tables.orders()))

    def _send_held_writes(self, parts: Sequence[int]) -> None:
        """Send a call of each write operation while commits are blocked."""
        changed, deleted, extended, shortened = (self._create(2) for _ in range(4))
        calls = [
            self._calls.create(self._lines(2), card=self._card()),
            self._calls.call("change card", changed, body={"card": self._card()}),
            self._calls.call("delete order", deleted),
            self._calls.add(extended, self._unused_items(1)[0], 2),
            self._calls.call("delete item", shortened, self._created[shortened][0]),
            self._calls.call("load orders", body={"orders": 2}),
        ]
        self._send_while_held([calls], parts)

    def _send_overlapping(self) -> None:
        """Start several changes to the items of an order before any of them can commit.

        In a second order, add an item while a concurrent call changes the card.
        """
        order, other_order = self._create(4), self._create(2)
        items = self._unused_items(5)
        first = [
            *(self._calls.add(order, item, 2) for item in items[1:]),
            *(self._calls.call("delete item", order, item) for item in self._created[order][:2]),
            self._calls.add(other_order, items[0], 3),
        ]
        self._send_while_held(
            [first, [self._calls.call("change card", other_order, body={"card": self._card()})]], (ORDERS, ITEMS)
        )

    def _send_while_held(self, groups: Sequence[Sequence[Call]], parts: Sequence[int]) -> None:
        """Send groups of calls while commits are blocked, then unblock commits to one table of ``parts`` at a time."""
        tables, before = self._tables, self._tables.orders()
        early_calls: tuple[ObservedCall, ...] = ()
        observed_calls: tuple[ObservedCall, ...] = ()
        visible_states: list[OrdersById] = []
        deadlock = None
        with ThreadPoolExecutor(sum(map(len, groups))) as pool:
            try:
                with tables.commits_held() as release:
                    futures: list[Future[ObservedCall]] = []
                    for calls in groups:
                        futures += [pool.submit(self._send_alone, call) for call in calls]
                        wait(futures, HELD_SECONDS)
                    early_calls = tuple(a for a in (future.result() for future in futures if future.done()) if a.good)
                    for part in parts:
                        if release(part):
                            wait(futures, LET_SECONDS)
                            visible_states.append(tables.orders())
                    if visible_states:
                        wait(futures, self._task.timeout)
                observed_calls = tuple(future.result() for future in futures)
            except psycopg.errors.LockNotAvailable as error:
                deadlock = f"the tables are locked although no request is in progress: {str(error).strip()}"
        self._add_crowd(
            Crowd(
                observed_calls=observed_calls,
                before=before,
                early_calls=early_calls,
                visible_states=tuple(visible_states),
                deadlock=deadlock,
            )
        )

    def _send_alone(self, call: Call) -> ObservedCall:
        """Send a call on a new connection, with a timeout that allows for blocked commits."""
        with ReconnectingConnection(
            self._task.variant_client(self._task.timeout + 2 * HELD_SECONDS + 2 * LET_SECONDS)
        ) as connection:
            return ObservedCall(call=call, exchange=connection.send(call))

    def _load_orders(self) -> None:
        """Create many orders with a single call, then list the newest orders."""
        self._send(self._calls.call("load orders", body={"orders": 3}))
        if self._task.thorough:
            # Use a longer timeout, because an ORM may insert the rows individually, and the code is not warmed up.
            with ReconnectingConnection(self._task.variant_client(4 * self._task.timeout)) as connection:
                # 1,000 is the API's maximum.
                self._send(self._calls.call("load orders", body={"orders": 1_000}), connection)
            for limit in (1, 2, 100):
                self._send(self._calls.call("list orders", limit))
        self._send(self._calls.call("list orders"))


check_modules, drawing = (checks, load), None
__all__ = ["check_modules", "drawing", "gather", "load"]
