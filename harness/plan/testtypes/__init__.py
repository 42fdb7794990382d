"""Test types: their requests, loads and properties.

``registry`` lists all test types. Other packages use a test type's properties and never compare its name. To add a test
type, add an entry to the registry and a module with its rules to ``harness.verify.checks``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.plan.profile import Profile
from harness.plan.requests import PreparedRequest, Request, prepare_requests
from harness.plan.scenarios import UseCase
from harness.records.loads import ClosedLoop, Load, Scenario

Sweep = Literal["concurrency", "pipeline", "query", "cached-query", "arrivals"]
# Kinds of responses: an object with a greeting, a greeting, a row, an array of rows, the page of fortunes, a sum,
# orders, or the response that a service declares for a request.
ResponseShape = Literal["message", "greeting", "row", "rows", "page", "sum", "orders", "declared"]
DECLARED = "declared"  # name under which checks treat all requests declared by services
PIPELINE_DEPTH = 16  # requests in flight per connection, as in TechEmpower
ARRIVALS_CONNECTIONS = 64  # connections for loads with arrivals
PREPARED_REQUESTS = 1_000  # copies of a declared request, each with different random values

ACCEPT_JSON = "application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"
ACCEPT = {  # Accept header by response shape; other shapes use ACCEPT_JSON
    "greeting": "text/plain,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7",
    "page": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "orders": "application/json",
    "declared": "*/*",
}
MEDIA_TYPES = {"greeting": "text/plain", "page": "text/html"}  # type by response shape; otherwise JSON


@dataclass(frozen=True, kw_only=True)
class RequestBatch:
    """A number of identical requests, and the number of rows that each request asks for."""

    times: int
    rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class TestType:
    """Requests, loads and properties of a test type."""

    __test__ = False  # not a test class of pytest

    name: str  # as in --type and results.json
    response_shape: ResponseShape
    sweep: Sweep = "concurrency"
    concurrency: tuple[int, ...] = ()  # numbers of connections of the loads; empty: from the profile
    reads_database: bool = False
    writes_database: bool = False
    cached: bool = False  # the server may cache rows instead of querying the database
    parameter: int | None = None  # number appended to URLs that end in "="; the same for all loads
    calls_upstream: bool = False  # needs the upstream server; UPSTREAM_URL contains the address
    # Requests that brief and thorough verification send over many connections at the same time.
    brief: tuple[RequestBatch, ...] = ()
    thorough: tuple[RequestBatch, ...] = ()
    techempower: bool = True  # a test type of TechEmpower, selected by --type all
    requests: tuple[PreparedRequest, ...] = ()  # requests of a service, which are drawn at random
    use_cases: tuple[UseCase, ...] = ()  # use cases of the sweep "arrivals"
    footnote: str = ""  # footnote of the test type's tables
    ranked_operation: str = ""  # operation that determines the rank by response time

    @property
    def scored(self) -> bool:
        """True for the six test types in TechEmpower's score, which a run measures by default."""
        return self.techempower and not self.cached

    @property
    def url_key(self) -> str:
        """Key of the URL in benchmark_config.json."""
        return f"{self.name.replace('-', '_')}_url"

    @property
    def accept(self) -> str:
        """The value of the Accept header."""
        return ACCEPT.get(self.response_shape, ACCEPT_JSON)

    @property
    def checked_as(self) -> str:
        """The name under which checks treat the test type."""
        return DECLARED if self.response_shape == "declared" else self.name

    @property
    def media_type(self) -> str:
        """Content-Type of responses, without parameters."""
        return MEDIA_TYPES.get(self.response_shape, "application/json")

    @property
    def has_rows(self) -> bool:
        """True if responses contain rows of the table ``world``."""
        return self.response_shape in ("row", "rows")

    @property
    def counts_rows(self) -> bool:
        """True if requests specify a number of rows."""
        return self.response_shape == "rows"

    @property
    def counts_statements(self) -> bool:
        """True if each response requires SQL statements that verification can count."""
        return self.reads_database and not self.cached and self.response_shape != "orders"

    @property
    def open_loop(self) -> bool:
        """True if the loads are arrivals of use cases instead of closed loops."""
        return self.sweep == "arrivals"

    def target(self, url: str) -> str:
        """Return the URL, with the test type's parameter appended if the URL ends in "="."""
        return f"{url}{self.parameter}" if self.parameter is not None and url.endswith("=") else url

    def request_target(self, url: str, load: Load) -> str:
        """Return the target of requests at a load. As in TechEmpower, the number of queries is appended to the URL."""
        return self.target(url) if load.queries is None else f"{url}{load.queries}"

    def loads(self, profile: Profile) -> tuple[Load, ...]:
        """Return the loads of the test type in ascending order."""
        levels = profile.levels
        match self.sweep:
            case "concurrency":
                return tuple(ClosedLoop(connections=c) for c in self.concurrency or levels.concurrency)
            case "pipeline":
                return tuple(ClosedLoop(connections=c, depth=PIPELINE_DEPTH) for c in levels.pipeline_concurrency)
            case "query":
                return tuple(ClosedLoop(connections=levels.query_concurrency, queries=q) for q in levels.query)
            case "cached-query":
                return tuple(ClosedLoop(connections=levels.query_concurrency, queries=q) for q in levels.cached_query)
            case "arrivals":
                return tuple(Scenario(connections=ARRIVALS_CONNECTIONS, factor=f) for f in profile.orders.factors)


def declared_test_types(
    requests: Sequence[Request], folder: Path, seed: int, *, root: Path | None = None
) -> Mapping[str, TestType]:
    """Return a test type for each declared request of a service.

    Args:
        requests: The declared requests.
        folder: Folder of the files that the requests name.
        seed: Seed of random values.
        root: Folder that contains all files; default: ``folder``.

    Raises:
        ConfigError: A file cannot be read, or lacks a column.
    """
    test_types = {}
    for request in requests:
        table = prepare_requests(request, folder, seed, PREPARED_REQUESTS, root=root)
        test_types[request.name] = TestType(
            name=request.name, response_shape="declared", techempower=False, requests=table
        )
    return test_types
