"""What was seen of one test type: exchanges, tables before and after, statements counted."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from harness.plan.discovery import Rules
from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import TestType
from harness.records import safe_read
from harness.runtime import UpstreamStats
from harness.verify.checks.statement_counts import NormalisedStatement
from harness.verify.wire import Response, WireError

T = TypeVar("T")

HIGHEST_ID = 10_000
HIGHEST_NUMBER = 10_000
SIGMAS = 6.0  # less than once in 10^8
MOST_OPENED, MOST_VALUES = 10_000, 100_000  # arrays and objects, and values, of an answer
CLOCKS_SECONDS = 0.0005  # by which the generator's clock and the harness's are read apart, beyond what was seen of it

TRIED = frozenset({"empty", "foo", "0", "1", "2", "500"})


@dataclass(frozen=True, kw_only=True)
class QueryVariant:
    """One way of asking: what is appended to the declared URL, and how many rows must come."""

    name: str
    suffix: str = ""
    count: int | None = None  # rows in the array; None where the test has no count
    or_count: int | None = None  # as good, where the requirements leave it open
    asked: PreparedRequest | None = None  # of a service that declares its requests: this one, whatever the URL

    @property
    def tried(self) -> bool:
        """Whether TechEmpower's verification asks so too, and refuses what goes wrong: not for all odd numbers."""
        return self.count is None or self.name in TRIED or self.name.endswith(" rows")


def odd(*numbers: int) -> list[QueryVariant]:
    """Ways of asking for a number: with none, with what is none, and with these."""
    suffixes = ("foo", "1.5", "-1", "0", *map(str, numbers), "12345678901234567890")
    return [
        QueryVariant(name="absent"),
        QueryVariant(name="empty"),
        *(QueryVariant(name=suffix, suffix=suffix) for suffix in suffixes),
    ]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One GET of the declared URL with the generator's headers, and what came."""

    case: QueryVariant
    target: str
    sent_at: float  # epoch seconds
    received_at: float
    connection: int  # which of the connections of the phase; exchanges of one are in order
    response: Response | None
    error: str | None = None  # why there is no response
    error_kind: str | None = None
    stray: bytes = b""  # bytes after the response that nobody asked for
    closed: bool = False  # the connection was closed after the response
    reconnected: bool = False  # it had been closed when this request was sent: sent again on a new one
    requests: int = 0  # on the connection that was closed, until then; 0: not counted

    @property
    def ok(self) -> bool:
        """A response with status 200."""
        return self.response is not None and self.response.status == 200

    @property
    def body(self) -> bytes:
        """Of the response; empty without one."""
        return self.response.body if self.response else b""

    def headers(self, name: str) -> list[str]:
        """All values of a header, whose name is given in lower case."""
        return self.response.all(name) if self.response else []

    def header(self, name: str) -> str | None:
        """The first of them."""
        return self.response.get(name) if self.response else None

    @cached_property
    def parsed(self) -> object:
        """The JSON document, or the ValueError that says why there is none."""
        try:
            return safe_read.parse_json(self.body, MOST_OPENED, MOST_VALUES)
        except ValueError as error:
            return error

    @cached_property
    def items(self) -> tuple[object, ...]:
        """The row objects of the answer, sound or not, in an array or alone; empty where the body is no document."""
        if isinstance(self.parsed, list):
            return tuple(self.parsed)
        return () if isinstance(self.parsed, ValueError) or self.case.count is not None else (self.parsed,)

    @cached_property
    def rows(self) -> tuple[tuple[int, int], ...]:
        """(id, randomNumber) of the row objects that can be read: both keys in any case, whole numbers, in range."""
        return tuple(row for row in map(sound_row, self.items) if row)


def clamped(target: str, least: int, most: int) -> int:
    """The integer that a target ends in, within these bounds; 0 for anything else."""
    number = re.search(r"=(-?\d+)\Z", target)
    return min(max(int(number[1]), least), most) if number else 0


def sound_row(item: object) -> tuple[int, int] | None:
    """A row object's id and randomNumber, or None where they cannot be told.

    Read as generously as TechEmpower's verification does, so that what is answered is held against the table however it
    is spelt; the spelling is the business of ``rows-exact``.
    """
    if not isinstance(item, dict):
        return None
    identifier, number = item.get("id"), item.get("randomNumber")
    if len(item) != 2 or type(identifier) is not int or type(number) is not int:  # nearly all are plain
        folded = {str(key).lower(): value for key, value in item.items()}
        if len(folded) != len(item):
            return None  # one key in two spellings
        identifier, number = _whole(folded.get("id")), _whole(folded.get("randomnumber"))
    if identifier is None or number is None or not (1 <= identifier <= HIGHEST_ID and 1 <= number <= HIGHEST_NUMBER):
        return None
    return identifier, number


def _whole(value: object) -> int | None:
    """A whole number, or a decimal one in a string or with a fraction of zero, as a number."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


RandomNumbers = Mapping[int, int]  # id -> randomNumber
WorldTables = Mapping[str, RandomNumbers]  # both twins at one moment, "world" and "World": implementations read either


@dataclass(frozen=True, kw_only=True)
class Version(Generic[T]):
    """What a table held for a time, in epoch seconds: it is changed behind the server, so that a stale copy shows."""

    rows: Mapping[int, T]  # by id
    since: float = float("-inf")
    until: float = float("inf")

    def may_answer(self, exchange: Exchange) -> bool:
        """Whether a request of this exchange's time may have read this version."""
        return self.since <= exchange.received_at and exchange.sent_at <= self.until


def supersede(versions: list[Version[T]], rows: Mapping[int, T], begun: float, done: float, slack: float = 0.0) -> None:
    """Add the next version, in which these rows became visible between two moments that the harness knows.

    ``slack``: seconds by which the clock of the exchanges may differ.
    """
    versions[-1] = replace(versions[-1], until=done + slack)
    versions.append(Version(rows={**versions[-1].rows, **rows}, since=min(begun, done) - slack))


History = Mapping[str, Sequence[Version[int]]]  # of both twins


class TableSnapshot(NamedTuple):
    """What the tables held at a moment between ``since`` and ``until``, epoch seconds; else before all requests."""

    world: WorldTables
    since: float = -math.inf
    until: float = -math.inf


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What came of one odd request or sequence of requests to the server as a whole."""

    responses: tuple[Response, ...] = ()
    failed: WireError | None = None  # why fewer responses came than requests went
    ended: bool | None = None  # did the server close the connection afterwards? None: not looked at
    alive: bool = True  # did a new connection get its answer afterwards?

    @property
    def status(self) -> int | None:
        """Of the first response."""
        return self.responses[0].status if self.responses else None

    @property
    def error(self) -> str | None:
        """What is wrong, in words."""
        return str(self.failed) if self.failed else None


@dataclass(frozen=True, kw_only=True)
class Due:
    """What the database has to have done, at least, for what a load was answered."""

    reads: int = 0  # rows of world
    writes: int = 0
    pages: int = 0  # of fortunes
    updates: int = 0  # statements that write: one a request

    def __add__(self, other: "Due") -> "Due":
        return Due(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

    def __sub__(self, other: "Due") -> "Due":
        """Nothing less than nothing."""
        return Due(**{one.name: max(0, getattr(self, one.name) - getattr(other, one.name)) for one in fields(self)})

    @classmethod
    def of(cls, kind: TestType, each: int, answers: int) -> "Due":
        """For so many good answers of a test type, to requests for so many rows each."""
        if not kind.counts_statements:
            return cls()
        if kind.response_shape == "page":
            return cls(pages=answers)
        rows = answers * each
        # A row that one request draws twice is written once, and one whose new number is the old one need not be.
        spared = rows * ((each - 1) / 2 + 1) / HIGHEST_ID
        least = max(0, math.floor(rows - spared - SIGMAS * math.sqrt(spared) - SIGMAS))
        if not kind.writes_database:
            return cls(reads=rows)
        return cls(reads=rows, writes=least, updates=least if each == 1 else answers)

    @classmethod
    def of_crowd(cls, kind: TestType, crowd: Sequence[Exchange]) -> "Due":
        """For the answers of verification."""
        answers = Counter(exchange.case.count or 1 for exchange in crowd if exchange.ok)
        return sum((cls.of(kind, each, number) for each, number in answers.items()), cls())

    @classmethod
    def waiting(cls, texts: Sequence[str], rows: int) -> "Due":
        """What these statements, of ``rows`` where they write, will have done once their transactions end."""
        of_world = [statement for text in texts if (statement := NormalisedStatement(text=text)).names("world")]
        writes = sum(statement.writes for statement in of_world)
        pages = sum(NormalisedStatement(text=text).names("fortune") for text in texts)
        return cls(reads=len(of_world) - writes, writes=writes * rows, pages=pages, updates=writes)


@dataclass(frozen=True, kw_only=True)
class TableUse:
    """What a process did to the database, as the database counted it."""

    fetched: int | None  # rows of the world tables, by index; None: not known
    updated: int | None
    deadlocks: int | None
    left_behind: tuple[tuple[str, str, str], ...]  # what changed beside the rows of world: name, before, after


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Which answers a generator writes out: a share drawn by its seed over the whole load, within both limits."""

    share: float  # 0..1; where it would pass a limit, the generator lowers it for the whole load
    answers: int  # at most
    bytes: int  # of heads and bodies, at most


@dataclass(frozen=True, kw_only=True)
class RequestAccount:
    """What became of each request of a load, by the generator's account; answers after its end included."""

    sent: int
    received: int
    successes: int  # 2xx
    failed: int  # answers with another status
    unasked: int  # responses that nobody had asked for
    unasked_bytes: int  # of them, and of whatever else came outside of a response
    unfinished: int  # under way when the generator stopped listening; 0 where it listened for as long as it ever does
    hung: int  # connections
    closed: int  # connections, by the server
    cut: int  # requests that were under way on them then
    unsound: int  # answers with a broken framing, or another body or length than the rule allows
    statuses: Mapping[str, int]
    whole: bool  # every answer was written out


@dataclass(frozen=True, kw_only=True)
class Folder:
    """What the folder of an implementation says, as ``harness.verify.process_conduct`` reads it."""

    file: str  # benchmark_config.json as messages name it
    dockerfile: str  # its name
    whole: tuple[str, ...]  # what is wrong with the Dockerfile, one sentence each
    image_command: tuple[str, ...]  # of the container; empty: that of the base image
    same_command: bool  # image_command and run start the same program with the same arguments
    run: tuple[str, ...]  # local.run
    unset: tuple[str, ...] = ()  # NAME=value of local.env that the image does not set
    readme: str | None  # what is wrong with README.md
    maintainers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Conduct:
    """What was seen of a server beside its answers; None where it was not looked at."""

    mistakes: tuple[str, ...] = ()  # with DBHOST, DBPORT, DBNAME, DBUSER and DBPASS
    stopped: bool = False  # whether it was asked to stop
    stop_seconds: float | None = None  # that it took; None: it did not stop
    as_root: tuple[str, ...] | None = None  # its processes that run as root; None: not in a container
    folder: Folder | None = None
    strict: bool = False  # whether what a pull request needs fails instead of warning


@dataclass(kw_only=True)
class Evidence:
    """All that was seen; fields that were not looked at are empty or None."""

    test_type: str
    rules: Rules = "tfb"  # by which it is judged
    thorough: bool = True
    under_load: bool = False  # sampled from a load
    exchanges: list[Exchange] = field(default_factory=list)  # outside the crowd that is counted
    crowd: list[Exchange] = field(default_factory=list)  # many requests on several connections at once
    declared: Sequence[Exchange] = ()  # beside the declared URL: requests that say what a right answer is
    history: History | None = None  # of the tables that are only read
    cached: Collection[tuple[int, int]] = ()  # rows (id, number) that a cache may still hold
    looks: list[TableSnapshot] = field(
        default_factory=list
    )  # at what is written, in order: before all requests to after them
    whole: bool = True  # the crowd is all that was asked
    rows_each: float = 0.0  # that were written for each of the crowd, where it is not
    pairs: Mapping[tuple[float, bool], int] = field(default_factory=dict)  # likewise: values.pairs of the process
    counts: Sequence[NormalisedStatement] | None = None  # None: not counted, or not exactly
    uncounted: str | None = None  # why statements could not be counted
    different: int = 0  # statements that the server has made since it began, by their form
    fortunes: Sequence[Version[str]] = ()
    wire: dict[str, Wire] = field(default_factory=dict)
    use: TableUse | None = None  # of the table, over a whole process
    due: Due = Due()  # for what the load was answered
    account: RequestAccount | None = None  # of a load
    extension: object = None  # what is seen for the checks of an extension alone
    upstream: UpstreamStats | None = None  # what the exchanges made the server ask its upstream
    conduct: Conduct | None = None  # what was seen of the server beside its answers

    @property
    def all(self) -> Iterator[Exchange]:
        """Every exchange with the declared URL."""
        yield from self.exchanges
        yield from self.crowd

    @property
    def good(self) -> Iterator[Exchange]:
        """Those with status 200: what other statuses carry is the status check's business."""
        return (exchange for exchange in self.all if exchange.ok)
