"""Gathers evidence about an order service: sequential and concurrent calls, the tables, and held commits."""

import random
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import replace

import psycopg

from harness.errors import StartError
from harness.extras.orders.calls import Calls, refused
from harness.extras.orders.database import ITEMS, ORDERS, OrderTables, order_tables
from harness.extras.orders.entities import Call, Crowd, ObservedCall, OrderEvidence, OrdersById
from harness.runtime import NO_DATABASE
from harness.verify.checks.evidence import Evidence, QueryVariant
from harness.verify.checks.verification_client import ReconnectingConnection, VerificationTask

LATE_SECONDS = 0.15  # seconds after which the tables are read again if a write is not visible
HELD_SECONDS = 0.3  # seconds for which commits are held; no write may be answered during this time
LET_SECONDS = 0.15  # seconds to wait after releasing some of the commits
SETTLED_SECONDS = 2.0  # maximum seconds to wait after concurrent calls
CONNECTIONS = 8  # number of connections for concurrent calls


class _NotMadeError(Exception):
    """An order was not created. Gathering stops, because checks of the evidence report the problem."""


def gather(asking: VerificationTask, evidence: Evidence) -> None:
    """Request the list as a probe does, then call every operation, and store the evidence in ``evidence``."""
    plain = QueryVariant(name="plain")
    evidence.exchanges = asking.load_client().send_in_order([plain] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    evidence.extension = seen = OrderEvidence()
    with ExitStack() as stack:
        try:
            view = stack.enter_context(order_tables(asking.database or NO_DATABASE))
            view.leave_old()
        except (StartError, psycopg.Error) as error:
            seen.unseen = f"the tables cannot be read: {str(error).strip()}"
            return
        lane = stack.enter_context(ReconnectingConnection(asking.variant_client()))
        with suppress(_NotMadeError):
            _Gathering(asking, seen, lane, view).gather()
    every = (*seen.observed_calls, *(observed for crowd in seen.crowds for observed in crowd.observed_calls))
    # Exclude reads of rows that tfb has changed in the database, because the API description cannot judge them. Rule
    # order.9 compares these reads.
    evidence.declared_exchanges = [a.exchange for a in every if not a.changed or a.exchange.response is None]


class _Gathering:
    """The state of gathering for a single verification."""

    def __init__(
        self, asking: VerificationTask, found: OrderEvidence, lane: ReconnectingConnection, view: OrderTables
    ) -> None:
        self._asking = asking
        self._calls = Calls(asking.url)
        self._found = found
        self._lane = lane
        self._view = view
        self._dice = random.Random(secrets.randbits(64))
        self._made: dict[int, list[int]] = {}  # existing orders with the items they were created with

    def gather(self) -> None:
        self._whole_life()
        if self._asking.thorough:
            # Create several orders in sequence to find intermittent errors.
            for _ in range(12):
                self._create(2)
            order, item = self._create(1), self._free(1)[0]
            for call in refused(self._calls, order, self._made[order][0], item):
                self._ask(call)
        if self._view.admin:
            self._prices()
        self._behind()
        self._crowd()
        if self._asking.thorough:
            self._writes_held((ORDERS, ITEMS))
            self._writes_held((ITEMS, ORDERS))
            self._overlap()
        self._loads()

    # ---- sequential calls --------------------------------------------------------------------------------------------

    def _ask(self, call: Call, lane: ReconnectingConnection | None = None, *, changed: bool = False) -> ObservedCall:
        """Send a call, and record the tables before and after the call."""
        view, must_fail = self._view, call.status >= 400
        # Calls that must be refused follow each other, so the tables are in the state after the previous call.
        before = self._found.observed_calls[-1].settled if must_fail else view.orders()
        prices = {} if must_fail or call.reads else view.prices()
        exchange = (lane or self._lane).send(call)
        after = before if call.reads and not must_fail else view.orders()
        observed = ObservedCall(
            call=call, exchange=exchange, prices=prices, before=before, after=after, settled=after, changed=changed
        )
        if observed.wrote and any(observed.differences(after)):
            time.sleep(LATE_SECONDS)
            observed = replace(observed, settled=view.orders())
        self._found.observed_calls.append(observed)
        return observed

    def _new(self, call: Call) -> int:
        """Create an order, and return the id. Raises _NotMadeError if the tables do not contain the order."""
        observed = self._ask(call)
        number = observed.id
        if number is None or not observed.good or number not in observed.settled:
            raise _NotMadeError
        self._made[number] = [*call.lines]
        return number

    def _create(self, lines: int) -> int:
        """Create a random order with a given number of items, and return the id."""
        customer = self._dice.randint(1, 1000)
        return self._new(self._calls.create(self._lines(lines), customer=customer, card=self._card()))

    def _lines(self, count: int) -> list[tuple[int, int]]:
        return [(item, self._dice.randint(1, 5)) for item in self._dice.sample(range(1, 1001), count)]

    def _free(self, count: int) -> list[int]:
        """Return random items that are in no created order."""
        taken = {item for items in self._made.values() for item in items}
        return self._dice.sample([item for item in range(1, 1001) if item not in taken], count)

    def _card(self) -> str:
        return "".join(self._dice.choices("0123456789", k=16))

    def _whole_life(self) -> None:
        """Create, read, change, extend, shorten and delete orders. Include extreme orders and members to be ignored."""
        calls = self._calls
        self._create(2)
        if self._asking.thorough:
            self._new(calls.create([(1000, 100)], customer=1000, card=self._card()[:12]))
            self._new(calls.create(self._lines(20), card=self._card() + "123"))
            # The server must ignore prices sent by the client and unknown members.
            more = {"total": "0.01", "note": "be quick", "id": 1}
            ignored = {"price": "0.01", "name": "x"}
            self._new(calls.create([(900, 2), (17, 3)], more=more, of_items=ignored))
        card = self._card()  # two orders of the same customer with the same card
        order, _ = (self._new(calls.create(self._lines(2), customer=7, card=card)) for _ in range(2))
        last = self._create(3)
        for number in self._made:
            self._ask(calls.call("read order", number))
        self._ask(calls.call("change card", order, body={"card": self._card()}))
        items = self._free(3)
        for item in items:
            self._ask(calls.add(order, item, self._dice.randint(1, 100)))
        self._ask(calls.call("read item", order, items[0]))
        self._ask(calls.call("delete item", order, items[1]))
        self._ask(calls.call("read items", order))
        self._ask(calls.add(order, items[1], 1))
        self._ask(calls.call("read order", order))
        self._ask(calls.call("delete order", last))
        self._ask(calls.call("list orders"))
        self._create(1)
        self._ask(calls.call("list orders"))  # immediate, to detect lists that are cached for a short time

    # ---- changes directly in the database ----------------------------------------------------------------------------

    def _prices(self) -> None:
        """Order an item before and after a price change. Each order must contain the price at the time of creation."""
        item, other = self._dice.sample(range(1, 1001), 2)
        for _ in range(2):
            self._new(self._calls.create([(item, 1)], card=self._card()))
        with self._view.changed_price(item):
            self._new(self._calls.create([(item, 2), (other, 1)], card=self._card()))
            order = self._new(self._calls.create([(other, 1)], card=self._card()))
            self._ask(self._calls.add(order, item, 3))

    def _behind(self) -> None:
        """Change and delete rows in the database. Read the rows before and after on several connections."""
        calls = self._calls
        order, doomed = self._create(2), self._create(1)
        item = self._made[order][0]
        of_order = [
            calls.call("read order", order),
            calls.call("read items", order),
            calls.call("read item", order, item),
            calls.call("list orders"),
        ]
        of_doomed = [calls.call("read order", doomed)]
        with ExitStack() as stack:
            lanes = [stack.enter_context(ReconnectingConnection(self._asking.variant_client())) for _ in range(4)]

            def read(asked: Sequence[Call], *, changed: bool) -> None:
                for lane in lanes:
                    for call in asked:
                        self._ask(call, lane, changed=changed)

            read((*of_order, *of_doomed), changed=False)
            self._view.change(order, self._card(), item, 77)
            read(of_order, changed=True)
            self._view.delete(doomed)
            read(of_doomed, changed=True)

    # ---- concurrent calls --------------------------------------------------------------------------------------------

    def _crowd(self) -> None:
        """Add and delete items of the same order on all connections, and create orders at the same time."""
        order = self._create(1)
        turns = 5 if self._asking.thorough else 2
        free = iter(self._free(2 * turns * CONNECTIONS))

        def calls() -> Iterator[Call]:
            for turn in range(turns):
                one, two = next(free), next(free)
                yield self._calls.add(order, one, turn + 1)
                yield self._calls.add(order, two, 1)
                yield self._calls.create([(one, 1), (two, 2)], card="4" * 16)
                yield self._calls.call("delete item", order, one)

        def ask(own: Sequence[Call]) -> list[ObservedCall]:
            with ReconnectingConnection(self._asking.variant_client()) as lane:
                return [ObservedCall(call=call, exchange=lane.send(call)) for call in own]

        dealt, before = [list(calls()) for _ in range(CONNECTIONS)], self._view.orders()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            observed_calls = tuple(observed for part in pool.map(ask, dealt) for observed in part)
        self._add(Crowd(observed_calls=observed_calls, before=before))

    def _add(self, crowd: Crowd) -> None:
        """Wait until the server is idle, and record the concurrent calls with the resulting tables."""
        if self._view.admin:
            self._view.settle(SETTLED_SECONDS)
        else:  # only an administrator can see the sessions of other roles
            time.sleep(LATE_SECONDS)
        self._found.crowds.append(replace(crowd, prices=self._view.prices(), after=self._view.orders()))

    def _writes_held(self, parts: Sequence[int]) -> None:
        """Send every kind of write while commits are held back."""
        changed, deleted, longer, shorter = (self._create(2) for _ in range(4))
        calls = [
            self._calls.create(self._lines(2), card=self._card()),
            self._calls.call("change card", changed, body={"card": self._card()}),
            self._calls.call("delete order", deleted),
            self._calls.add(longer, self._free(1)[0], 2),
            self._calls.call("delete item", shorter, self._made[shorter][0]),
            self._calls.call("load orders", body={"orders": 2}),
        ]
        self._held([calls], parts)

    def _overlap(self) -> None:
        """Start several changes of an order before any of them commits. Also change a card after adding an item."""
        order, other = self._create(4), self._create(2)
        items = self._free(5)
        first = [
            *(self._calls.add(order, item, 2) for item in items[1:]),
            *(self._calls.call("delete item", order, item) for item in self._made[order][:2]),
            self._calls.add(other, items[0], 3),
        ]
        self._held([first, [self._calls.call("change card", other, body={"card": self._card()})]], (ORDERS, ITEMS))

    def _held(self, turns: Sequence[Sequence[Call]], parts: Sequence[int]) -> None:
        """Send calls while commits are held back. Then release the commits, and record the calls.

        Args:
            turns: Groups of calls. Each group is sent ``HELD_SECONDS`` after the previous group.
            parts: Order in which the parts of the commits are released (``ORDERS``, ``ITEMS``).
        """
        view, before = self._view, self._view.orders()
        early: tuple[ObservedCall, ...] = ()
        observed_calls: tuple[ObservedCall, ...] = ()
        seen: list[OrdersById] = []
        stuck = None
        with ThreadPoolExecutor(sum(map(len, turns))) as pool:
            try:
                with view.commits_held() as let_through:
                    asked: list[Future[ObservedCall]] = []
                    for calls in turns:
                        asked += [pool.submit(self._ask_alone, call) for call in calls]
                        wait(asked, HELD_SECONDS)
                    early = tuple(a for a in (one.result() for one in asked if one.done()) if a.good)
                    for part in parts:
                        if let_through(part):
                            wait(asked, LET_SECONDS)
                            seen.append(view.orders())
                    if seen:
                        wait(asked, self._asking.timeout)
                observed_calls = tuple(one.result() for one in asked)
            except psycopg.errors.LockNotAvailable as error:
                stuck = f"the tables are locked although no request is in progress: {str(error).strip()}"
        self._add(Crowd(observed_calls=observed_calls, before=before, early=early, seen=tuple(seen), stuck=stuck))

    def _ask_alone(self, call: Call) -> ObservedCall:
        """Send a call on a separate connection. The timeout includes the time for which commits are held back."""
        with ReconnectingConnection(
            self._asking.variant_client(self._asking.timeout + 2 * HELD_SECONDS + 2 * LET_SECONDS)
        ) as lane:
            return ObservedCall(call=call, exchange=lane.send(call))

    def _loads(self) -> None:
        """Create many orders with a single call, then list the newest orders."""
        self._ask(self._calls.call("load orders", body={"orders": 3}))
        if self._asking.thorough:
            # The timeout is longer, because an ORM on a cold virtual machine may insert the rows individually.
            with ReconnectingConnection(self._asking.variant_client(4 * self._asking.timeout)) as lane:
                # The API allows no more orders.
                self._ask(self._calls.call("load orders", body={"orders": 1_000}), lane)
            for limit in (1, 2, 100):
                self._ask(self._calls.call("list orders", limit))
        self._ask(self._calls.call("list orders"))
