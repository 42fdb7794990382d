"""Single query: one random row a request."""

from harness.plan.testtypes import ACCEPT_JSON, Crowd, Requests, TestType

DB = TestType(
    name="db",
    url_key="db_url",
    accept=ACCEPT_JSON,
    answer="row",
    sweep="concurrency",
    reads_database=True,
    crowd=Crowd(brief=(Requests(times=40),), thorough=(Requests(times=800),), further=(Requests(times=800),)),
    minimum_url_length=3,
)
