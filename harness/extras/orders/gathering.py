"""Gathers the evidence of an order service: calls with the tables before and after each, crowds, held commits."""

import random
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace

import psycopg

from harness.errors import StartError
from harness.extras.orders.calls import Calls, refused
from harness.extras.orders.model import Answer, Call, Crowd, Held, OrderEvidence, Orders, answered_id, differences
from harness.extras.orders.tables import ITEMS, ORDERS, OrderTables, order_tables
from harness.verify.checks.asking import Asking, Lane
from harness.verify.checks.evidence import Case, Evidence

LATE_SECONDS = 0.15  # after a write that the tables do not show yet, before they are looked at once more
HELD_SECONDS = 0.3  # in which nobody may answer whose transaction cannot commit
LET_SECONDS = 0.15  # after a part of the commits was let through
CONNECTIONS = 8  # of the crowd


def gather(asking: Asking, evidence: Evidence) -> None:
    """Ask for the list as a load's probe would, then for everything that the service does."""
    plain = Case(name="plain")
    evidence.exchanges = asking.plain().ask([plain] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    evidence.extension = seen = OrderEvidence()
    with ExitStack() as stack:
        view = None
        if asking.database is None:
            seen.unseen = "the tables were not looked at: there is no database"
        else:
            try:
                view = stack.enter_context(order_tables(asking.database))
                view.leave_old()
            except (StartError, psycopg.Error) as error:
                seen.unseen, view = f"the tables cannot be looked at: {str(error).strip()}", None
        lane = stack.enter_context(Lane(asking.client()))
        _Gathering(asking, seen, lane, view).gather()
    # Of rows that were changed behind the server only those tell what is right.
    evidence.declared = [a.exchange for a in seen.answers if not a.changed or a.exchange.response is None]


class _Gathering:
    """One verification."""

    def __init__(self, asking: Asking, found: OrderEvidence, lane: Lane, view: OrderTables | None) -> None:
        self._asking = asking
        self._calls = Calls(asking.url)
        self._found = found
        self._lane = lane
        self._view = view
        self._dice = random.Random(secrets.randbits(64))
        self._made: list[int] = []  # orders that are there, oldest first

    def gather(self) -> None:
        if not self._whole_life():
            return
        if self._asking.thorough:
            # One after the other, for what goes wrong now and then.
            for _ in range(12):
                self._create(2)
            self._refusals()
        self._prices()
        self._behind()
        self._crowd()
        self._competition()
        if self._asking.thorough and self._view:
            self._held(self._view, ORDERS, ITEMS)
            self._held(self._view, ITEMS, ORDERS)
            self._overlap(self._view)
        self._loads()

    # ---- one call at a time ------------------------------------------------------------------------------------------

    def _ask(self, call: Call, lane: Lane | None = None, *, changed: bool = False) -> Answer:
        """Send a call, with all that the tables hold before and after it."""
        view, lane = self._view, lane or self._lane
        if view is None:
            answer = Answer(call=call, exchange=lane.send(call))
        else:
            reads = call.asked is not None and call.asked.method == "GET"
            # What must be refused comes in a row: the tables are as they were after the call before.
            last = self._found.answers[-1].settled if call.status >= 400 else None
            before = view.orders() if last is None else last
            prices = {} if reads or call.status >= 400 else view.prices()
            exchange = lane.send(call)
            after = settled = view.orders() if call.status >= 400 or not reads else before
            answer = Answer(
                call=call,
                exchange=exchange,
                prices=prices,
                before=before,
                after=after,
                settled=settled,
                changed=changed,
            )
            if answer.wrote and next(differences(answer, after), None):
                time.sleep(LATE_SECONDS)
                answer = replace(answer, settled=view.orders())
        self._found.answers.append(answer)
        return answer

    def _new(self, call: Call) -> int | None:
        """Make an order; its id where it is there."""
        answer = self._ask(call)
        number = answered_id(answer) if answer.good else None
        if number is None or (self._view and number not in self._view.orders()):
            return None
        self._made.append(number)
        return number

    def _create(self, lines: int) -> int | None:
        """A random order of so many items."""
        return self._new(
            self._calls.create(self._lines(lines), customer=self._dice.randint(1, 1000), card=self._card())
        )

    def _lines(self, count: int) -> list[tuple[int, int]]:
        return [(item, self._dice.randint(1, 5)) for item in self._dice.sample(range(1, 1001), count)]

    def _card(self) -> str:
        return "".join(self._dice.choices("0123456789", k=16))

    def _whole_life(self) -> bool:
        """Orders of one item, of many, with members to ignore; read, changed, added to, taken from, deleted."""
        calls = self._calls
        first = self._create(2)
        if self._asking.thorough:
            self._new(calls.create([(1000, 100)], customer=1000, card=self._card()[:12]))
            self._new(calls.create(self._lines(20), card=self._card() + "123"))
            # What a client says of prices is nothing to go by, and members that nobody knows are passed over.
            more = {"total": "0.01", "note": "be quick", "id": 1}
            ignored = {"price": "0.01", "name": "x"}
            self._new(calls.create([(900, 2), (17, 3)], more=more, of_items=ignored))
        card = self._card()  # two orders of one customer, who pays with one card
        order, _ = (self._new(calls.create(self._lines(2), customer=7, card=card)) for _ in range(2))
        last = self._create(3)
        if first is None or order is None or last is None:
            return False
        for number in list(self._made):
            self._ask(calls.call("read order", number))
        self._ask(calls.change(order, self._card()))
        items = [item for item, _ in self._lines(40) if item not in self._items_of(order)][:3]
        for item in items:
            self._ask(calls.add(order, item, self._dice.randint(1, 100)))
        self._ask(calls.call("read item", order, items[0]))
        self._ask(calls.call("delete item", order, items[1]))
        self._ask(calls.call("read items", order))
        self._ask(calls.add(order, items[1], 1))
        self._ask(calls.call("read order", order))
        self._ask(calls.call("delete order", last))
        self._made.remove(last)
        self._ask(calls.newest())
        self._create(1)
        self._ask(calls.newest())  # at once: a list may be kept for a moment
        return True

    def _items_of(self, order: int) -> Sequence[int]:
        """The items that the last answers say are in an order."""
        for answer in reversed(self._found.answers):
            if answer.good and answer.call.operation == "create order" and answered_id(answer) == order:
                return [item for item, _ in answer.call.lines]
        return ()

    def _refusals(self) -> None:
        """All that must be refused; the tables stay as they are."""
        order = self._create(2)
        if order is None:
            return
        present = self._items_of(order)[0]
        absent = next(item for item in range(500, 600) if item not in self._items_of(order))
        for call in refused(self._calls, order, present, absent):
            self._ask(call)

    # ---- what changes behind the server ------------------------------------------------------------------------------

    def _prices(self) -> None:
        """Orders of an item before and after its price changes: each has the price of its time."""
        if self._view is None or not self._view.admin:
            return
        item, other = self._dice.sample(range(1, 1001), 2)
        for _ in range(2):
            self._new(self._calls.create([(item, 1)], card=self._card()))
        with self._view.changed_price(item):
            self._new(self._calls.create([(item, 2), (other, 1)], card=self._card()))
            order = self._new(self._calls.create([(other, 1)], card=self._card()))
            if order is not None:
                self._ask(self._calls.add(order, item, 3))

    def _behind(self) -> None:
        """Change, delete and read rows that the server has read before, on several connections."""
        view, calls = self._view, self._calls
        order, doomed = self._create(2), self._create(1)
        if view is None or order is None or doomed is None:
            return
        item = self._items_of(order)[0]
        with ExitStack() as stack:
            lanes = [stack.enter_context(Lane(self._asking.client())) for _ in range(4)]
            reads = [
                calls.call("read order", order),
                calls.call("read items", order),
                calls.call("read item", order, item),
                calls.call("read order", doomed),
            ]
            for lane in lanes:
                for call in (*reads, calls.newest()):
                    self._ask(call, lane)
            view.set_card(order, self._card())
            view.set_quantity(order, item, 77)
            for lane in lanes:
                for call in (*reads[:3], calls.newest()):
                    self._ask(call, lane, changed=True)
            view.delete(doomed)
            self._made.remove(doomed)
            for lane in lanes:
                self._ask(reads[3], lane, changed=True)

    # ---- many at once ------------------------------------------------------------------------------------------------

    def _crowd(self) -> None:
        """Items come and go in one order on all connections, and orders are made between."""
        order = self._create(1)
        if order is None:
            return
        turns = 5 if self._asking.thorough else 2
        own = self._items_of(order)
        free = [item for item in range(1, 1001) if item not in own]
        self._dice.shuffle(free)

        def calls(place: int) -> Iterator[Call]:
            for turn in range(turns):
                one, two = free[(place * turns + turn) * 2 :][:2]
                yield self._calls.add(order, one, turn + 1)
                yield self._calls.add(order, two, 1)
                yield self._calls.create([(one, 1), (two, 2)], card="4" * 16)
                yield self._calls.call("delete item", order, one)

        self._at_once([list(calls(place)) for place in range(CONNECTIONS)])

    def _competition(self) -> None:
        """All add the same item, then all take it out, which one of them can."""
        order = self._create(1)
        if order is None:
            return
        item = next(item for item in range(1, 10) if item not in self._items_of(order))
        for call in (
            self._calls.add(order, item, 2, "one of several"),
            self._calls.call("delete item", order, item, case="one of several"),
        ):
            self._at_once([[call]] * CONNECTIONS)

    def _at_once(self, dealt: Sequence[Sequence[Call]]) -> None:
        """Send each part on a connection of its own, all beginning together; then look at the tables."""
        before = self._view.orders() if self._view else None
        together = threading.Barrier(len(dealt))

        def ask(calls: Sequence[Call]) -> list[Answer]:
            with Lane(self._asking.client()) as lane:
                together.wait()
                return [Answer(call=call, exchange=lane.send(call)) for call in calls]

        with ThreadPoolExecutor(len(dealt)) as pool:
            answers = tuple(answer for part in pool.map(ask, dealt) for answer in part)
        if self._view and before is not None:
            after = self._settled(self._view)
            self._found.crowds.append(Crowd(answers=answers, before=before, after=after))
        else:
            self._found.answers += (answer for answer in answers if not answer.call.name)

    def _settled(self, view: OrderTables) -> Orders:
        """The tables once nobody writes any more, or after so many looks."""
        last = view.orders()
        for _ in range(40):
            time.sleep(LATE_SECONDS / 3)
            now = view.orders()
            if now == last:
                break
            last = now
        return last

    def _held(self, view: OrderTables, first: int, second: int) -> None:
        """Every kind of write while commits are held up, then one part of them let through before the other."""
        orders = [self._create(2) for _ in range(4)]
        if None in orders:
            return
        changed, deleted, longer, shorter = (order for order in orders if order is not None)
        item = next(item for item in range(1, 10) if item not in self._items_of(longer))
        calls = [
            self._calls.create(self._lines(2), card=self._card()),
            self._calls.change(changed, self._card()),
            self._calls.call("delete order", deleted),
            self._calls.add(longer, item, 2),
            self._calls.call("delete item", shorter, self._items_of(shorter)[0]),
            self._calls.load(2),
        ]
        before = view.orders()
        seen: list[Orders] = []
        early: tuple[Answer, ...] = ()
        stuck = None
        with ThreadPoolExecutor(len(calls)) as pool:
            try:
                with view.commits_held() as gate:
                    asked = [pool.submit(self._ask_alone, call) for call in calls]
                    done, _ = wait(asked, HELD_SECONDS)
                    early = tuple(a for a in (one.result() for one in done) if a.good)
                    for part in (first, second):
                        if gate.let_through(part):
                            wait(asked, LET_SECONDS)
                            seen.append(view.orders())
                    if seen:
                        wait(asked, self._asking.patience)
                answers = tuple(one.result() for one in asked)
            except psycopg.errors.LockNotAvailable as error:
                stuck = f"the tables are locked although nothing is asked: {str(error).strip()}"
                answers = ()
        self._settled(view)
        self._found.answers += answers
        self._found.held.append(Held(before=before, early=early, seen=tuple(seen), stuck=stuck))

    def _overlap(self, view: OrderTables) -> None:
        """Changes of one order, all begun before any of them can commit; of another a card behind an item."""
        order, other = self._create(4), self._create(2)
        if order is None or other is None:
            return
        there = (*self._items_of(order), *self._items_of(other))
        items = [item for item in range(1, 20) if item not in there][:4]
        first = [
            *(self._calls.add(order, item, 2) for item in items),
            *(self._calls.call("delete item", order, item) for item in there[:2]),
            self._calls.add(other, items[0], 3),
        ]
        then = self._calls.change(other, self._card())
        before = view.orders()
        with ThreadPoolExecutor(len(first) + 1) as pool:
            try:
                with view.commits_held() as gate:
                    asked = [pool.submit(self._ask_alone, call) for call in first]
                    wait(asked, HELD_SECONDS / 2)
                    asked.append(pool.submit(self._ask_alone, then))
                    wait(asked, HELD_SECONDS / 2)
                    if gate.let_through(ORDERS) and gate.let_through(ITEMS):
                        wait(asked, self._asking.patience)
                answers = tuple(one.result() for one in asked)
            except psycopg.errors.LockNotAvailable:
                return  # the phase before has said so
        self._found.crowds.append(Crowd(answers=answers, before=before, after=self._settled(view)))

    def _ask_alone(self, call: Call) -> Answer:
        """On a connection of its own, with the time that commits are held up for."""
        with Lane(self._asking.client(self._asking.patience + HELD_SECONDS + 2 * LET_SECONDS)) as lane:
            return Answer(call=call, exchange=lane.send(call))

    def _loads(self) -> None:
        """Many orders by one call, then the list of the newest."""
        self._ask(self._calls.load(3))
        if self._asking.thorough:
            # A mapper inserts them one by one, in a virtual machine that has just started.
            with Lane(self._asking.client(4 * self._asking.patience)) as lane:
                # The most that a load makes.
                self._ask(self._calls.load(1_000), lane)
            for limit in (1, 2, 100):
                self._ask(self._calls.newest(limit))
        self._ask(self._calls.newest())
