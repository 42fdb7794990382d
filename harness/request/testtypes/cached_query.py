"""Cached queries: N random rows a request out of a cache."""

from harness.request.testtypes import ACCEPT_JSON, TestType

CACHED_QUERY = TestType(
    name="cached-query",
    url_key="cached_query_url",
    accept=ACCEPT_JSON,
    sweep="cached-query",
    reads_database=True,
    minimum_url_length=15,
)
