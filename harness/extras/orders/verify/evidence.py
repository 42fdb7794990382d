"""What was seen of an order service: calls with what came of them, and the tables before and after each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Literal

from harness.verify.checks import LOAD, Check, Finding, check
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.json_text import parse_json
from harness.verify.wire import Response

Operation = Literal[
    "create order",
    "read order",
    "list orders",
    "change card",
    "delete order",
    "read items",
    "read item",
    "add item",
    "delete item",
    "load orders",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A row of ``order_item``."""

    quantity: int
    price: Decimal  # of one piece, when it was ordered


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A row of ``orders`` with its items, by the id of the item."""

    customer: int
    card: str
    total: Decimal
    lines: Mapping[int, Line]

    @property
    def sum(self) -> Decimal:
        """What the total must be."""
        return total(self.lines)


def total(lines: Mapping[int, Line]) -> Decimal:
    """What items cost together."""
    return sum((line.quantity * line.price for line in lines.values()), Decimal(0))


Orders = Mapping[int, Order]  # all of the table, by id
Prices = Mapping[int, Decimal]  # of the table ``item``, by id


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request: what is sent, what it means, and the status that must come."""

    operation: Operation
    method: str
    path: str
    body: bytes | None = None
    status: int
    case: str = ""  # what is odd about it
    order: int = 0  # that it is about; 0: a new one, or none
    item: int = 0
    customer: int = 0
    card: str = ""
    lines: tuple[tuple[int, int], ...] = ()  # item and quantity that are asked for
    count: int = 0  # orders of a load, or of a list

    def __str__(self) -> str:
        """The request as a person names it."""
        return f"{self.method} {self.path}" + (f" ({self.case})" if self.case else "")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of a call."""

    call: Call
    response: Response | None
    error: str | None = None  # why there is no response

    @property
    def status(self) -> int | None:
        """Of the response."""
        return self.response.status if self.response else None

    @property
    def good(self) -> bool:
        """Whether the status is the one that must come."""
        return self.status == self.call.status

    @cached_property
    def document(self) -> object:
        """The JSON document; raises JsonError."""
        return parse_json(self.response.body if self.response else b"")


@dataclass(frozen=True, kw_only=True)
class Write:
    """A call that changes the tables, sent while nothing else is on; all that they held before it and after it."""

    answer: Answer
    prices: Prices
    before: Orders
    after: Orders  # at once
    settled: Orders  # a while later, where it was not at once what it should be


@dataclass(frozen=True, kw_only=True)
class Read:
    """A call that reads, and what the tables held then."""

    answer: Answer
    held: Orders
    changed: bool = False  # the rows were changed behind the server since it was asked last


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A call that must be refused, and the tables around it."""

    answer: Answer
    before: Orders
    after: Orders


@dataclass(frozen=True, kw_only=True)
class Held:
    """Writes under way while no transaction could commit: who answered all the same, and what became visible."""

    before: Orders
    early: tuple[Answer, ...] = ()  # came while the commit was held
    seen: tuple[Orders, ...] = ()  # the tables while a part of the commits was let through
    answers: tuple[Answer, ...] = ()  # once all were
    stuck: str | None = None  # why the tables could not be had: a transaction that is left open


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Many calls at once, on several connections, and the tables around them."""

    answers: tuple[Answer, ...]
    before: Orders
    after: Orders


@dataclass(kw_only=True)
class OrderEvidence:
    """All that was seen of one order service; what was not looked at is empty."""

    answers: list[Answer] = field(default_factory=list)  # of every call of the phases below but a crowd's
    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    crowds: list[Crowd] = field(default_factory=list)
    unseen: str | None = None  # why the database could not be looked at


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """One request of an arrival of the load, as its use case and the arrival's variables make it."""

    operation: str
    wanted: int  # status of a good answer
    status: int | None  # that came; None where nothing did
    body: str
    item: int = 0
    customer: int = 0
    card: str = ""
    lines: tuple[tuple[int, int], ...] = ()

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


@dataclass(frozen=True, kw_only=True)
class OrderLoad:
    """A whole load of arrivals, and the tables before and after it."""

    arrivals: tuple[Arrival, ...]
    prices: Prices
    before: Orders
    after: Orders


def of_orders(
    rule: str, needs: Callable[[OrderEvidence], bool] = lambda _: True
) -> Callable[[Callable[[OrderEvidence], Iterator[Finding]]], Check]:
    """Make a check of a function of what was seen of an order service (``harness.verify.checks.check``)."""

    def make(function: Callable[[OrderEvidence], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            return function(evidence.extension) if isinstance(evidence.extension, OrderEvidence) else iter(())

        def holds(evidence: Evidence) -> bool:
            return isinstance(evidence.extension, OrderEvidence) and needs(evidence.extension)

        find.__name__ = function.__name__
        return check(rule, frozenset({"order"}), holds)(find)

    return make


def of_load(rule: str) -> Callable[[Callable[[OrderLoad], Iterator[Finding]]], Check]:
    """Make a check of a function of a whole load of arrivals."""

    def make(function: Callable[[OrderLoad], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            return function(evidence.extension) if isinstance(evidence.extension, OrderLoad) else iter(())

        find.__name__ = function.__name__
        return check(rule, frozenset({LOAD}), lambda evidence: isinstance(evidence.extension, OrderLoad))(find)

    return make
