"""The registry of test types in the order of measurement. Test types that write to the database are measured last."""

from harness.plan.testtypes import RequestBatch, TestType
from harness.plugins import Extensions
from harness.records.loads import Load, keeps_connections

_CORE_TEST_TYPES = (
    TestType(  # returns a small object
        name="json",
        title="JSON",
        response_shape="message",
        thorough=(RequestBatch(times=400),),
    ),
    TestType(  # returns a constant body; the load uses HTTP pipelining
        name="plaintext",
        title="Plaintext",
        response_shape="greeting",
        sweep="pipeline",
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=400),),
    ),
    TestType(  # returns the same body as plaintext; the load does not use pipelining
        name="hello",
        title="Hello",
        response_shape="greeting",
        concurrency=(1, 100, 1000),
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=400),),
        techempower=False,
    ),
    TestType(  # returns a greeting after 5 ms; meanwhile, the server must process other requests
        name="delay",
        title="Delay",
        response_shape="greeting",
        parameter=5,
        techempower=False,
    ),
    TestType(  # sends twenty requests to a slow upstream server, and returns the sum of the responses
        name="fan-out",
        title="Fan-out",
        response_shape="sum",
        parameter=20,
        calls_upstream=True,
        techempower=False,
    ),
    TestType(  # reads a random row
        name="db",
        title="Single query",
        response_shape="row",
        reads_database=True,
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=800),),
    ),
    TestType(  # reads N random rows, each with a separate SELECT
        name="query",
        title="Multiple queries",
        response_shape="rows",
        sweep="query",
        reads_database=True,
        # Two checks use requests for 20 rows: the exact number of statements, and the randomness of ids.
        brief=(RequestBatch(times=8, rows=20),),
        thorough=(RequestBatch(times=50, rows=20), RequestBatch(times=20, rows=500)),
    ),
    TestType(  # reads N random rows from a cache
        name="cached-query",
        title="Cached queries",
        response_shape="rows",
        sweep="cached-query",
        reads_database=True,
        cached=True,
        brief=(RequestBatch(times=8, rows=20),),
        thorough=(RequestBatch(times=100, rows=20),),
    ),
    TestType(  # returns a page with all fortunes and an added fortune, sorted and escaped
        name="fortune",
        title="Fortunes",
        response_shape="page",
        reads_database=True,
        thorough=(RequestBatch(times=32),),
    ),
    TestType(  # reads, changes and writes N random rows
        name="update",
        title="Updates",
        response_shape="rows",
        sweep="query",
        reads_database=True,
        writes_database=True,
        brief=(RequestBatch(times=8, rows=20),),
        # Concurrent requests for 500 rows update the same rows, which causes deadlocks unless the server writes rows in
        # id order.
        thorough=(RequestBatch(times=40, rows=20), RequestBatch(times=8, rows=500)),
    ),
)
TEST_TYPES: dict[str, TestType] = {
    **{test_type.name: test_type for test_type in _CORE_TEST_TYPES},
    **Extensions[TestType]("test_types").load_all(),
}


def supported_by_wrk(test_type: str, load: Load) -> bool:
    """Return whether wrk supports the load. wrk supports only HTTP/1.1 with persistent connections."""
    kind = TEST_TYPES.get(test_type)
    return keeps_connections(load) and (kind is None or kind.protocol == "http1")


def footnote(test_type: str) -> str:
    """Return the footnote of a test type's tables, or an empty string if the test type is unknown."""
    return TEST_TYPES[test_type].footnote if test_type in TEST_TYPES else ""


def display_name(test_type: str) -> str:
    """Return the title of a test type, or the name itself if there is no title."""
    return (test_type in TEST_TYPES and TEST_TYPES[test_type].title) or test_type


def group(test_type: str) -> str:
    """Return the group of a test type, or an empty string if it has no group."""
    return TEST_TYPES[test_type].group if test_type in TEST_TYPES else ""


def ranked_operation(test_type: str) -> str:
    """Return the operation by which a scenario is ranked, or an empty string if the test type is unknown."""
    return TEST_TYPES[test_type].ranked_operation if test_type in TEST_TYPES else ""
