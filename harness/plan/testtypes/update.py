"""Updates: N random rows a request, each read, changed and written back."""

from harness.plan.testtypes import ACCEPT_JSON, Crowd, Requests, TestType

UPDATE = TestType(
    name="update",
    url_key="update_url",
    accept=ACCEPT_JSON,
    answer="rows",
    sweep="query",
    reads_database=True,
    writes_database=True,
    crowd=Crowd(
        brief=(Requests(times=8, rows=20),),
        # Those for 500 overlap with each other: where rows are not written in the order of ids, deadlocks come.
        thorough=(Requests(times=40, rows=20), Requests(times=8, rows=500)),
        further=(Requests(times=60, rows=20),),
    ),
    minimum_url_length=8,
)
