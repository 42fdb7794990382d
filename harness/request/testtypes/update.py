"""Updates: N random rows a request, each read, changed and written back."""

from harness.request.testtypes import ACCEPT_JSON, TestType

UPDATE = TestType(
    name="update",
    url_key="update_url",
    accept=ACCEPT_JSON,
    sweep="query",
    reads_database=True,
    writes_database=True,
    minimum_url_length=8,
)
