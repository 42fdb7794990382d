"""Multiple queries: N random rows a request, each fetched by a SELECT of its own."""

from harness.request.testtypes import ACCEPT_JSON, TestType

QUERY = TestType(
    name="query",
    url_key="query_url",
    accept=ACCEPT_JSON,
    sweep="query",
    reads_database=True,
    minimum_url_length=9,
)
