"""The registry of test types in the order of measurement. Test types that write to the database come last."""

from harness.plan.testtypes import RequestBatch, TestType
from harness.plugins import Extensions

_CORE_TEST_TYPES = (
    TestType(  # a small object
        name="json",
        response_shape="message",
        thorough=(RequestBatch(times=400),),
    ),
    TestType(  # a constant body, with HTTP pipelining
        name="plaintext",
        response_shape="greeting",
        sweep="pipeline",
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=400),),
    ),
    TestType(  # the body of plaintext without pipelining
        name="hello",
        response_shape="greeting",
        concurrency=(1, 100, 1000),
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=400),),
        techempower=False,
    ),
    TestType(  # the greeting after 5 ms; meanwhile, the server must process other requests
        name="delay",
        response_shape="greeting",
        parameter=5,
        techempower=False,
    ),
    TestType(  # sum of the responses to twenty requests to a slow upstream server
        name="fan-out",
        response_shape="sum",
        parameter=20,
        calls_upstream=True,
        techempower=False,
    ),
    TestType(  # a random row
        name="db",
        response_shape="row",
        reads_database=True,
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=800),),
    ),
    TestType(  # N random rows, each with a separate SELECT
        name="query",
        response_shape="rows",
        sweep="query",
        reads_database=True,
        # The number of statements must be exact. The randomness checks use the ids from the requests for 20 rows.
        brief=(RequestBatch(times=8, rows=20),),
        thorough=(RequestBatch(times=50, rows=20), RequestBatch(times=20, rows=500)),
    ),
    TestType(  # N random rows from a cache
        name="cached-query",
        response_shape="rows",
        sweep="cached-query",
        reads_database=True,
        cached=True,
        brief=(RequestBatch(times=8, rows=20),),
        thorough=(RequestBatch(times=100, rows=20),),
    ),
    TestType(  # a page with all fortunes and an additional fortune, sorted and escaped
        name="fortune",
        response_shape="page",
        reads_database=True,
        thorough=(RequestBatch(times=32),),
    ),
    TestType(  # N random rows, each of which is read, changed and written
        name="update",
        response_shape="rows",
        sweep="query",
        reads_database=True,
        writes_database=True,
        brief=(RequestBatch(times=8, rows=20),),
        # Concurrent requests for 500 rows update the same rows. This causes deadlocks unless the server writes rows in
        # the order of ids.
        thorough=(RequestBatch(times=40, rows=20), RequestBatch(times=8, rows=500)),
    ),
)
TEST_TYPES: dict[str, TestType] = {
    **{test_type.name: test_type for test_type in _CORE_TEST_TYPES},
    **Extensions[TestType]("test_types").load_all(),
}


def footnote(test_type: str) -> str:
    """Return the footnote of a test type's tables, or an empty string if the test type is unknown."""
    return TEST_TYPES[test_type].footnote if test_type in TEST_TYPES else ""


def ranked_operation(test_type: str) -> str:
    """Return the operation by which a scenario is ranked, or an empty string if the test type is unknown."""
    return TEST_TYPES[test_type].ranked_operation if test_type in TEST_TYPES else ""
