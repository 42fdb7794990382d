"""Multiple queries: N random rows a request, each fetched by a SELECT of its own."""

from harness.plan.testtypes import ACCEPT_JSON, Crowd, Requests, TestType

QUERY = TestType(
    name="query",
    url_key="query_url",
    accept=ACCEPT_JSON,
    answer="rows",
    sweep="query",
    reads_database=True,
    # Counts are exact: each statement that is not made is missed, of 22,000 on a server that is up to speed. The ids of
    # the requests for 20 rows are what the randomness checks look at.
    crowd=Crowd(
        brief=(Requests(times=8, rows=20),),
        thorough=(Requests(times=50, rows=20), Requests(times=20, rows=500)),
        further=(Requests(times=50, rows=20), Requests(times=20, rows=500)),
    ),
    minimum_url_length=9,
)
