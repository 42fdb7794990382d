"""Cached queries: N random rows a request out of a cache."""

from harness.plan.testtypes import ACCEPT_JSON, Crowd, Requests, TestType

CACHED_QUERY = TestType(
    name="cached-query",
    url_key="cached_query_url",
    accept=ACCEPT_JSON,
    answer="rows",
    sweep="cached-query",
    reads_database=True,
    cached=True,
    crowd=Crowd(
        brief=(Requests(times=8, rows=20),),
        thorough=(Requests(times=100, rows=20),),
        further=(Requests(times=20, rows=100),),
    ),
    scored=False,
    minimum_url_length=15,
)
