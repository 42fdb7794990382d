"""Single query: one random row a request."""

from harness.request.testtypes import ACCEPT_JSON, TestType

DB = TestType(
    name="db",
    url_key="db_url",
    accept=ACCEPT_JSON,
    sweep="concurrency",
    reads_database=True,
    minimum_url_length=3,
)
