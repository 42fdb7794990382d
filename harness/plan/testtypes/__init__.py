"""What a test type is; all of them are in one explicit registry (``registry``).

What else of the harness differs from test type to test type asks the traits that are declared here, never for a name: a
further one is an entry there. Rules of its own are a file of ``harness.verify.checks``.
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
# What an answer is: an object with a greeting, the greeting alone, one row, an array of rows, all fortunes, a sum,
# orders, or what a service has declared of each of its requests.
ResponseShape = Literal["message", "greeting", "row", "rows", "page", "sum", "orders", "declared"]
DECLARED = "declared"  # by this name the checks know every test type of that kind, whatever the service calls it
PIPELINE_DEPTH = 16  # TechEmpower's
ARRIVALS_CONNECTIONS = 64  # at most, that the requests of arrivals go over
PREPARED_REQUESTS = 1_000  # requests of one declared one whose values are drawn

ACCEPT_JSON = "application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"
ACCEPT = {  # header of verification and load, by what an answer is, where it is not JSON's
    "greeting": "text/plain,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7",
    "page": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "orders": "application/json",
    "declared": "*/*",
}
MEDIA_TYPES = {"greeting": "text/plain", "page": "text/html"}  # of answers that are not JSON


@dataclass(frozen=True, kw_only=True)
class RequestBatch:
    """So many equal requests; ``rows`` is what each asks for where the test type counts rows."""

    times: int
    rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class TestType:
    """What a test type asks of a server, how it is swept and how it is verified."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    name: str  # as in --type and results.json
    response_shape: ResponseShape
    sweep: Sweep = "concurrency"
    concurrency: tuple[int, ...] = ()  # levels of its own instead of the profile's
    reads_database: bool = False
    writes_database: bool = False
    cached: bool = False  # rows come out of a cache: no statement has to be made for them
    parameter: int | None = None  # number appended to a declared URL that ends in "=", the same at every level
    calls_upstream: bool = False  # needs the upstream server, whose address is in UPSTREAM_URL
    # What a brief and what a thorough verification asks for on many connections at once.
    brief: tuple[RequestBatch, ...] = ()
    thorough: tuple[RequestBatch, ...] = ()
    techempower: bool = True  # one of TechEmpower's: what --type all means
    requests: tuple[PreparedRequest, ...] = ()  # of a service: each one sent is drawn from these
    use_cases: tuple[UseCase, ...] = ()  # of the sweep "arrivals"
    footnote: str = ""  # what a reader of its tables must know
    ranked_operation: str = ""  # of the use cases: implementations are ranked by its response time

    @property
    def scored(self) -> bool:
        """One of the six of TechEmpower's score: what a run measures unless --type says otherwise."""
        return self.techempower and not self.cached

    @property
    def url_key(self) -> str:
        """Its key of benchmark_config.json."""
        return f"{self.name.replace('-', '_')}_url"

    @property
    def accept(self) -> str:
        """Accept header of verification and load."""
        return ACCEPT.get(self.response_shape, ACCEPT_JSON)

    @property
    def checked_as(self) -> str:
        """The name by which checks know it."""
        return DECLARED if self.response_shape == "declared" else self.name

    @property
    def media_type(self) -> str:
        """Content-Type of its answers, without parameters."""
        return MEDIA_TYPES.get(self.response_shape, "application/json")

    @property
    def has_rows(self) -> bool:
        """Whether answers hold rows of the table ``world``."""
        return self.response_shape in ("row", "rows")

    @property
    def counts_rows(self) -> bool:
        """Whether a request says how many rows it wants."""
        return self.response_shape == "rows"

    @property
    def counts_statements(self) -> bool:
        """Whether each answer asks the database for rows or fortunes, so that its statements can be counted."""
        return self.reads_database and not self.cached and self.response_shape != "orders"

    @property
    def open_loop(self) -> bool:
        """Whether requests come as arrivals of use cases: a closed loop over one URL does not measure it."""
        return self.sweep == "arrivals"

    def target(self, url: str) -> str:
        """The declared URL with the test type's own parameter, where the URL leaves it open."""
        return f"{url}{self.parameter}" if self.parameter is not None and url.endswith("=") else url

    def request_target(self, url: str, level: Load) -> str:
        """The request target at a level: the query count is appended literally, as TechEmpower does."""
        return self.target(url) if level.queries is None else f"{url}{level.queries}"

    def loads(self, profile: Profile) -> tuple[Load, ...]:
        """All levels of this test type, in ascending order of load."""
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
    """Return a test type for each request that a service declares in ``folder``, whose files stay below ``root``.

    Raises ConfigError for files that lack what the requests need.
    """
    found = {}
    for request in requests:
        table = prepare_requests(request, folder, seed, PREPARED_REQUESTS, root=root)
        found[request.name] = TestType(name=request.name, response_shape="declared", techempower=False, requests=table)
    return found
