"""The test types, in the order in which a process is loaded with them: writes come last."""

from harness.plan.testtypes import RequestBatch, TestType
from harness.plugins import Extensions

_KNOWN = (
    TestType(  # one small object a request
        name="json",
        response_shape="message",
        thorough=(RequestBatch(times=400),),
    ),
    TestType(  # a constant body, requested in pipelines of 16
        name="plaintext",
        response_shape="greeting",
        sweep="pipeline",
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=400),),
    ),
    TestType(  # plaintext's body without pipelining, from one connection to a thousand
        name="hello",
        response_shape="greeting",
        concurrency=(1, 100, 1000),
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=400),),
        techempower=False,
    ),
    TestType(  # the greeting after 5 ms of waiting, which holds no other request up
        name="delay",
        response_shape="greeting",
        parameter=5,
        techempower=False,
    ),
    TestType(  # twenty requests to a slow upstream for each answer, which holds their sum
        name="fan-out",
        response_shape="sum",
        parameter=20,
        calls_upstream=True,
        techempower=False,
    ),
    TestType(  # one random row a request
        name="db",
        response_shape="row",
        reads_database=True,
        brief=(RequestBatch(times=40),),
        thorough=(RequestBatch(times=800),),
    ),
    TestType(  # N random rows a request, each fetched by a SELECT of its own
        name="query",
        response_shape="rows",
        sweep="query",
        reads_database=True,
        # Counts are exact: each statement that is not made is missed. The ids of the requests for 20 rows are what the
        # randomness checks look at.
        brief=(RequestBatch(times=8, rows=20),),
        thorough=(RequestBatch(times=50, rows=20), RequestBatch(times=20, rows=500)),
    ),
    TestType(  # N random rows a request out of a cache
        name="cached-query",
        response_shape="rows",
        sweep="cached-query",
        reads_database=True,
        cached=True,
        brief=(RequestBatch(times=8, rows=20),),
        thorough=(RequestBatch(times=100, rows=20),),
    ),
    TestType(  # all rows, one added, sorted, escaped, rendered as a page
        name="fortune",
        response_shape="page",
        reads_database=True,
        thorough=(RequestBatch(times=32),),
    ),
    TestType(  # N random rows a request, each read, changed and written back
        name="update",
        response_shape="rows",
        sweep="query",
        reads_database=True,
        writes_database=True,
        brief=(RequestBatch(times=8, rows=20),),
        # Those for 500 overlap with each other: where rows are not written in the order of ids, deadlocks come.
        thorough=(RequestBatch(times=40, rows=20), RequestBatch(times=8, rows=500)),
    ),
)
TEST_TYPES: dict[str, TestType] = {
    **{known.name: known for known in _KNOWN},
    **Extensions[TestType]("test_types").load_all(),
}


def footnote(test_type: str) -> str:
    """Return the footnote of a test type's tables; empty if no plugin provides the test type."""
    return TEST_TYPES[test_type].footnote if test_type in TEST_TYPES else ""


def ranked_operation(test_type: str) -> str:
    """Return the operation by whose response time a scenario is ranked; empty if no plugin provides the test type."""
    return TEST_TYPES[test_type].ranked_operation if test_type in TEST_TYPES else ""
