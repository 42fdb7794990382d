"""Test types: their requests, loads and properties.

``registry`` lists all test types. Other packages depend on a test type's properties, but not on the name. To add a test
type, add an entry to the registry, and add a module with checks to ``harness.verify.checks``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.plan.profile import Profile
from harness.plan.requests import PreparedRequest, Request, prepare_requests
from harness.plan.scenarios import UseCase
from harness.records.loads import ClosedLoop, Load, Scenario

Sweep = Literal["concurrency", "pipeline", "query", "cached-query", "arrivals"]
# Content of a response: a greeting as JSON ("message") or as plain text ("greeting"), one or several database rows, a
# table of fortunes ("page"), the sum of upstream responses, a use case's documents, the content that a service
# declares, items of a data set, a number as plain text, a file, or the message that was sent ("echo").
ResponseShape = Literal[
    "message", "greeting", "row", "rows", "page", "sum", "documents", "declared", "items", "number", "file", "echo"
]
LoadProtocol = Literal["http1", "http2", "websocket"]  # the load generator's names for protocols
DECLARED = "declared"  # name that checks use for all requests declared by services
PIPELINE_DEPTH = 16  # requests in flight per connection, as in TechEmpower

ACCEPT_JSON = "application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"
ACCEPT = {  # Accept header by response shape; other shapes use ACCEPT_JSON
    "greeting": "text/plain,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7",
    "page": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "documents": "application/json",
    "declared": "*/*",
    "number": "text/plain",
    "file": "*/*",
}
# Media type by response shape; other shapes use JSON. The media type of a file depends on the file.
MEDIA_TYPES = {"greeting": "text/plain", "page": "text/html", "number": "text/plain", "file": ""}
# A function that writes input files to a folder. It returns their names, keyed by environment variable.
InputWriter = Callable[[Path], Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class RequestBatch:
    """A batch of ``times`` requests that verification sends. Each asks for ``rows`` rows, unless ``rows`` is None."""

    times: int
    rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class TestType:
    """Requests, loads and properties of a test type."""

    __test__ = False  # prevents pytest from collecting the class

    name: str  # name in --type and results.json
    title: str = ""  # display name; empty to use ``name``
    response_shape: ResponseShape
    sweep: Sweep = "concurrency"
    concurrency: tuple[int, ...] = ()  # numbers of connections to measure; empty to use the profile's numbers
    reads_database: bool = False
    writes_database: bool = False
    cached: bool = False  # the server may cache rows instead of querying the database
    parameter: int | None = None  # number that tfb appends to a URL that ends in "=", at every load
    calls_upstream: bool = False  # the server calls an upstream server at the address in UPSTREAM_URL
    # Requests that a brief or a thorough verification sends concurrently, over many connections.
    brief: tuple[RequestBatch, ...] = ()
    thorough: tuple[RequestBatch, ...] = ()
    techempower: bool = True  # whether TechEmpower defines the test type; --type all selects only these test types
    # Copies of a service's declared request with different values. The load generator draws from them at random.
    requests: tuple[PreparedRequest, ...] = ()
    use_cases: tuple[UseCase, ...] = ()  # use cases, if ``sweep`` is "arrivals"
    footnote: str = ""  # footnote below the test type's tables
    ranked_operation: str = ""  # operation whose response time determines the rank
    group: str = ""  # name of the test type's group; --type with this name selects the whole group
    fixed_loads: tuple[Load, ...] = ()  # loads to use instead of the profile's loads, if any
    draws_requests: bool = False  # whether a plugin draws the requests of each load at random
    example: str = ""  # path appended to a URL that ends in "/", for requests that are not drawn at random
    inputs: tuple[InputWriter, ...] = ()  # functions that write the servers' input files
    port_variable: str = ""  # environment variable with the test type's separate port; empty to use the main port
    tls: bool = False  # whether clients use TLS on the separate port
    protocol: LoadProtocol = "http1"  # protocol of the load

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
        """The name that checks use for the test type."""
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
        return self.reads_database and not self.cached and not self.use_cases

    @property
    def open_loop(self) -> bool:
        """True if the loads are open-loop: customers arrive at given rates, regardless of earlier responses."""
        return self.sweep == "arrivals"

    def target(self, url: str) -> str:
        """Return the URL, with the test type's parameter or example appended if the URL ends in "=" or "/"."""
        if self.example and url.endswith("/"):
            return f"{url}{self.example}"
        return f"{url}{self.parameter}" if self.parameter is not None and url.endswith("=") else url

    def request_target(self, url: str, load: Load) -> str:
        """Return the request target for a load. If the load has a number of queries, append it as TechEmpower does."""
        return self.target(url) if load.queries is None else f"{url}{load.queries}"

    def loads(self, profile: Profile) -> tuple[Load, ...]:
        """Return the loads of the test type in ascending order."""
        levels = profile.levels
        if self.fixed_loads:
            return self.fixed_loads
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
                return tuple(Scenario(connections=64, factor=f) for f in profile.orders.factors)


def declared_test_types(
    requests: Sequence[Request], folder: Path, seed: int, *, root: Path | None = None
) -> Mapping[str, TestType]:
    """Return a test type for each declared request, with up to 1,000 copies of the request."""
    test_types = {}
    for request in requests:
        # The copies differ in the random values of their placeholders.
        table = prepare_requests(request, folder, seed, 1_000, root=root)
        test_types[request.name] = TestType(
            name=request.name, response_shape="declared", techempower=False, requests=table
        )
    return test_types
