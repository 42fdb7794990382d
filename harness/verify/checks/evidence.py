"""The data that checks examine: exchanges, table contents, statement counts and facts about processes."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from harness.plan.implementation import Rules
from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import TestType
from harness.records import safe_read
from harness.runtime import UpstreamStats
from harness.verify.checks.statement_counts import HIGHEST_ID, NormalisedStatement
from harness.verify.content_codings import decode_body
from harness.verify.wire import Response, WireError

T = TypeVar("T")

SEEDED_FORTUNES = 12
HIGHEST_NUMBER = 10_000  # random numbers range from 1 to HIGHEST_NUMBER
CHANCE_SIGMAS = 6.0  # standard deviations; a deviation this large occurs by chance with a probability below 1e-8
# Limits for a JSON response: containers (arrays and objects), and values.
MAX_CONTAINERS, MAX_VALUES = 10_000, 100_000
MAX_CODED_DOCUMENT_BYTES = 64 * 1024  # limit for a JSON document after decompression; 50 items take 9 kB
CLOCK_SLACK_SECONDS = 0.0005  # maximum error of the measured offset between the generator's clock and tfb's clock

# Values that are not integers but that lenient parsers accept: floats, other notations, non-ASCII digits, and numbers
# with white space. "010" is an integer (ten) and therefore not in this list, although some parsers read it as octal.
NOT_INTEGERS = ("5.0", "5e1", "0x10", "0b11", "5_0", "5f", "%205", "5%20", "5%0A", "%EF%BC%95")
TECHEMPOWER_VARIANTS = frozenset({"empty", "foo", "0", "1", "2", "500"})


@dataclass(frozen=True, kw_only=True)
class QueryVariant:
    """A variant of a request: a suffix for the declared URL, and the expected number of rows."""

    name: str
    suffix: str = ""
    count: int | None = None  # expected number of rows; None if the request does not specify a number
    alternative_count: int | None = None  # another accepted number of rows, if the requirements are ambiguous
    declared: PreparedRequest | None = None  # a service's declared request, sent instead of the URL
    drawn: PreparedRequest | None = None  # a request that a plugin drew at random, sent instead of the URL

    @property
    def method(self) -> str:
        """Return the request's HTTP method."""
        return self.drawn.method if self.drawn else "GET"

    @property
    def expected_status(self) -> int:
        """Return the status code of a correct response."""
        return self.drawn.expect.status if self.drawn else 200

    @property
    def accepts_coding(self) -> bool:
        """Return whether the request accepts compressed responses."""
        headers = self.drawn.headers if self.drawn else ()
        return any(name == "Accept-Encoding" and value != "identity" for name, value in headers)

    @property
    def checked_by_techempower(self) -> bool:
        """Return whether TechEmpower's verification also sends this variant, and rejects wrong responses to it."""
        return self.count is None or self.name in TECHEMPOWER_VARIANTS or self.name.endswith(" rows")


def parameter_variants(*numbers: int) -> list[QueryVariant]:
    """Return variants of a numeric parameter: absent, empty, malformed, out of range, and each of ``numbers``."""
    suffixes = ("foo", "1.5", "-1", "0", *map(str, numbers), "12345678901234567890", "010", *NOT_INTEGERS)
    return [
        QueryVariant(name="absent"),
        QueryVariant(name="empty"),
        *(QueryVariant(name=suffix, suffix=suffix) for suffix in suffixes),
    ]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request and the response. The request's headers are those that the load generator sends."""

    case: QueryVariant
    target: str
    sent_at: float  # epoch seconds
    received_at: float
    connection: int  # connection number; exchanges on the same connection are sequential
    response: Response | None
    error: str | None = None  # why there is no response
    error_kind: str | None = None  # ``WireError.kind``
    unsolicited: bytes = b""  # bytes received after the response, without a request
    closed: bool = False  # whether the server closed the connection after the response
    reconnected: bool = False  # whether the server had closed the previous connection before this request
    requests_on_connection: int = 0  # requests on this or, if ``reconnected``, the previous connection; 0 if unknown

    @property
    def ok(self) -> bool:
        """Return whether the response has status 200."""
        return self.response is not None and self.response.status == 200

    @property
    def body(self) -> bytes:
        """Return the response's body; empty if there is no response."""
        return self.response.body if self.response else b""

    def headers(self, name: str) -> list[str]:
        """Return all values of a header, given the lower-case name."""
        return self.response.get_all(name) if self.response else []

    def header(self, name: str) -> str | None:
        """Return the first value of a header, given the lower-case name, or None if the header is missing."""
        return self.response.get(name) if self.response else None

    @property
    def content(self) -> bytes:
        """Return the body after decoding the content codings. Raises ValueError if decoding fails."""
        return decode_body(self.body, self.headers("content-encoding"))

    @cached_property
    def document(self) -> object:
        """Return the parsed JSON body or, if the body is invalid, the ValueError that explains why."""
        try:
            content = self.content if self.case.accepts_coding else self.body
            if content is not self.body and len(content) > MAX_CODED_DOCUMENT_BYTES:
                return ValueError(f"the decoded body has {len(content)} bytes; the limit is {MAX_CODED_DOCUMENT_BYTES}")
            return safe_read.parse_json(content, MAX_CONTAINERS, MAX_VALUES)
        except ValueError as error:
            return error

    @cached_property
    def row_objects(self) -> tuple[object, ...]:
        """Return the elements of the JSON array. If the request asks for a single object, return only this object.

        The result is empty if the document is invalid, or is not an array although the request specifies a number of
        rows.
        """
        if isinstance(self.document, list):
            return tuple(self.document)
        return () if isinstance(self.document, ValueError) or self.case.count is not None else (self.document,)

    @cached_property
    def rows(self) -> tuple[tuple[int, int], ...]:
        """Return the (id, randomNumber) pairs of all row objects that ``parse_row`` accepts."""
        return tuple(row for row in map(parse_row, self.row_objects) if row)


def clamp_parameter(target: str, least: int, most: int) -> int:
    """Return the integer after "=" at the end of a target, clamped to ``least``..``most``, or 0 if there is none."""
    number = re.search(r"=(-?\d+)\Z", target)
    return min(max(int(number[1]), least), most) if number else 0


def parse_row(item: object) -> tuple[int, int] | None:
    """Return (id, randomNumber) of a row object, or None if a value is missing, ambiguous or out of range.

    Like TechEmpower's verification, accept keys in any case and numbers as strings, so that these rows are still
    compared with the table. The ``rows-exact`` check reports them.
    """
    if not isinstance(item, dict):
        return None
    identifier, number = item.get("id"), item.get("randomNumber")
    # Fast path: nearly all rows have the exact form and skip this block.
    if len(item) != 2 or type(identifier) is not int or type(number) is not int:
        lowercased = {str(key).lower(): value for key, value in item.items()}
        if len(lowercased) != len(item):
            return None  # two keys differ only in case
        identifier, number = _parse_integer(lowercased.get("id")), _parse_integer(lowercased.get("randomnumber"))
    if identifier is None or number is None or not (1 <= identifier <= HIGHEST_ID and 1 <= number <= HIGHEST_NUMBER):
        return None
    return identifier, number


def _parse_integer(value: object) -> int | None:
    """Convert an integer, a decimal string, or a float without a fraction to an integer. Return None otherwise."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


RandomNumbers = Mapping[int, int]  # id -> randomNumber
# Contents of the tables "world" and "World" at a point in time. An implementation uses only one of them.
WorldTables = Mapping[str, RandomNumbers]


@dataclass(frozen=True, kw_only=True)
class TableVersion(Generic[T]):
    """A table's contents between two changes. tfb changes tables during verification to detect stale responses."""

    rows: Mapping[int, T]  # rows by id
    since: float = float("-inf")  # epoch seconds
    until: float = float("inf")

    def overlaps(self, exchange: Exchange) -> bool:
        """Return whether the server could have read this version of the table while it handled the exchange."""
        return self.since <= exchange.received_at and exchange.sent_at <= self.until


def append_version(
    versions: list[TableVersion[T]], rows: Mapping[int, T], started_at: float, ended_at: float, slack: float = 0.0
) -> None:
    """Append the version that results from changing ``rows`` in the latest version.

    The change became visible between the two epoch times, each of which is uncertain by ``slack`` seconds.
    """
    versions[-1] = replace(versions[-1], until=ended_at + slack)
    versions.append(TableVersion(rows={**versions[-1].rows, **rows}, since=min(started_at, ended_at) - slack))


TableHistory = Mapping[str, Sequence[TableVersion[int]]]  # versions of the tables "world" and "World"


class TableSnapshot(NamedTuple):
    """The world tables at some time between ``since`` and ``until``. By default, the time precedes all requests."""

    world: WorldTables
    since: float = -math.inf  # epoch seconds
    until: float = -math.inf


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The responses to a probe, which sends unusual requests."""

    responses: tuple[Response, ...] = ()
    failure: WireError | None = None  # why there are fewer responses than requests
    closed: bool | None = None  # whether the server closed the connection afterwards; None if not observed
    alive: bool = True  # whether the server responded on a new connection afterwards

    @property
    def status(self) -> int | None:
        """Return the status of the first response, or None if there was no response."""
        return self.responses[0].status if self.responses else None

    @property
    def error(self) -> str | None:
        """Return the failure's message, or None if there was no failure."""
        return str(self.failure) if self.failure else None


@dataclass(frozen=True, kw_only=True)
class ExpectedWork:
    """The minimum database work that a correct server needs to produce a load's responses."""

    reads: int = 0  # rows read from world
    writes: int = 0  # rows written to world
    pages: int = 0  # fortunes pages; each requires all rows of the fortune table
    updates: int = 0  # statements that write to world; a correct server executes at least one per request

    def __add__(self, other: "ExpectedWork") -> "ExpectedWork":
        return ExpectedWork(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __sub__(self, other: "ExpectedWork") -> "ExpectedWork":
        """Subtract field by field. Negative differences become zero."""
        return ExpectedWork(**{f.name: max(0, getattr(self, f.name) - getattr(other, f.name)) for f in fields(self)})

    @classmethod
    def for_responses(cls, test_type: TestType, rows_each: int, responses: int) -> "ExpectedWork":
        """Return the minimum work for successful responses with ``rows_each`` rows each."""
        if not test_type.counts_statements:
            return cls()
        if test_type.response_shape == "page":
            return cls(pages=responses)
        rows = responses * rows_each
        # If a request draws a row twice, a single write suffices. If the new number equals the old number, no write is
        # needed.
        spared = rows * ((rows_each - 1) / 2 + 1) / HIGHEST_ID
        least = max(0, math.floor(rows - spared - CHANCE_SIGMAS * math.sqrt(spared) - CHANCE_SIGMAS))
        if not test_type.writes_database:
            return cls(reads=rows)
        return cls(reads=rows, writes=least, updates=least if rows_each == 1 else responses)

    @classmethod
    def for_exchanges(cls, test_type: TestType, exchanges: Sequence[Exchange]) -> "ExpectedWork":
        """Return the minimum work for the successful exchanges of a verification."""
        responses = Counter(exchange.case.count or 1 for exchange in exchanges if exchange.ok)
        return sum((cls.for_responses(test_type, rows, number) for rows, number in responses.items()), cls())

    @classmethod
    def in_open_transactions(cls, texts: Sequence[str], rows: int) -> "ExpectedWork":
        """Return the uncounted work of open transactions, given their last statements and the ``rows`` per write."""
        on_world = [statement for text in texts if (statement := NormalisedStatement(text=text)).names_table("world")]
        writes = sum(statement.writes for statement in on_world)
        pages = sum(NormalisedStatement(text=text).names_table("fortune") for text in texts)
        return cls(reads=len(on_world) - writes, writes=writes * rows, pages=pages, updates=writes)


@dataclass(frozen=True, kw_only=True)
class DatabaseActivity:
    """A server process's database activity, according to PostgreSQL's statistics."""

    fetched: int | None  # rows of the world tables fetched through an index; None if unknown
    updated: int | None  # rows of the world tables updated
    deadlocks: int | None
    left_behind: tuple[tuple[str, str, str], ...]  # other permanent changes: (what changed, state before, state after)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Instructions for the load generator to record a random sample of the responses."""

    share: float  # probability of recording a response; the generator lowers it for the whole load to meet the limits
    max_responses: int
    max_bytes: int  # limit for the total size of the recorded headers and bodies


@dataclass(frozen=True, kw_only=True)
class RequestCounts:
    """The load generator's counts of requests and responses, including responses after the end of the load."""

    sent: int
    received: int
    successes: int  # responses with a 2xx status
    failed: int  # responses with other statuses
    unsolicited: int  # responses without a request
    unsolicited_bytes: int  # bytes outside any response, and bytes of unsolicited responses
    unfinished: int  # requests in progress when the generator stopped; 0 if it waited for the full timeout
    hung_connections: int  # connections on which no response arrived within the timeout
    closed_connections: int  # connections that the server closed
    interrupted: int  # requests in progress on connections that the server closed
    malformed: int  # responses with invalid framing, or with an unexpected body or length
    statuses: Mapping[str, int]  # status code -> number of responses
    all_recorded: bool  # whether the generator recorded all responses
    # Number of TLS connections by version, cipher suite, group, protocol, and whether the handshake was full.
    tls_sessions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FolderFacts:
    """Facts about an implementation's folder, gathered by ``harness.verify.process_conduct``."""

    config_file: str  # name of the configuration file, for messages
    dockerfile: str
    dockerfile_defects: tuple[str, ...]
    image_command: tuple[str, ...]  # the image's command; empty if inherited from the base image
    same_command: bool  # whether the image and the local runtime start the same program with the same arguments
    local_command: tuple[str, ...]  # the local runtime's command
    missing_variables: tuple[str, ...] = ()  # NAME=value pairs of local.env that the image does not set
    readme_defect: str | None


@dataclass(frozen=True, kw_only=True)
class ConductFacts:
    """Facts about a server's process and the implementation's folder. A fact is None if it was not observed."""

    # A description of each ignored environment variable, for example "connects as user a, but DBUSER is b".
    database_mistakes: tuple[str, ...] = ()
    stop_requested: bool = False  # whether tfb has sent SIGTERM to the server
    stop_seconds: float | None = None  # seconds until the server stopped; None if it did not stop
    root_processes: tuple[str, ...] | None = None  # names of processes that run as root; None if not in a container
    folder: FolderFacts | None = None
    strict: bool = False  # whether violating a rule for pull requests is a failure instead of a warning


@dataclass(kw_only=True)
class Evidence:
    """All observations of a verification or a trial. Fields that do not apply are empty or None."""

    test_type: str
    rules: Rules = "tfb"
    thorough: bool = True
    under_load: bool = False  # whether the exchanges are a sample from a load
    exchanges: list[Exchange] = field(default_factory=list)  # sequential exchanges
    # Exchanges on several connections at the same time; their SQL statements are counted.
    concurrent: list[Exchange] = field(default_factory=list)
    declared_exchanges: Sequence[Exchange] = ()  # exchanges of requests that declare their expected response
    history: TableHistory | None = None  # table versions, if the test type only reads tables
    cached_rows: Collection[tuple[int, int]] = ()  # (id, number) pairs that the server's cache may still contain
    # Snapshots of written tables before, during and after the requests.
    snapshots: list[TableSnapshot] = field(default_factory=list)
    complete: bool = True  # whether ``concurrent`` contains all requests instead of a sample
    rows_per_response: float = 0.0  # rows that the whole load wrote, divided by the number of sampled responses
    # Sum of ``values.count_age_pairs`` over the process's trials so far; empty unless the exchanges are a sample.
    age_pairs: Mapping[tuple[float, bool], int] = field(default_factory=dict)
    statements: Sequence[NormalisedStatement] | None = None  # statements with exact counts; None if not counted
    # For each update request: the number of pages that the SELECTs touched, and the two page counts of ``moved_rows``,
    # each summed over the returned rows.
    pages_read: list[tuple[int, int, int]] = field(default_factory=list)
    uncounted_reason: str | None = None  # why statements could not be counted
    all_statements: Sequence[str] = ()  # texts of all distinct statements since the server started
    fortunes: Sequence[TableVersion[str]] = ()
    probes: dict[str, ProbeResult] = field(default_factory=dict)
    database_activity: DatabaseActivity | None = None  # activity between the start and the end of the server process
    expected_work: ExpectedWork = ExpectedWork()
    request_counts: RequestCounts | None = None
    extension: object = None  # a plugin's observations, for the plugin's checks
    upstream: UpstreamStats | None = None  # requests that the upstream service received
    conduct: ConductFacts | None = None

    @property
    def all_exchanges(self) -> Iterator[Exchange]:
        """Yield the sequential exchanges, then the concurrent exchanges."""
        yield from self.exchanges
        yield from self.concurrent

    @property
    def ok_exchanges(self) -> Iterator[Exchange]:
        """Yield the exchanges with status 200. The ``status-ok`` check reports all other statuses."""
        return (exchange for exchange in self.all_exchanges if exchange.ok)
