"""JSON serialization: one small object a request."""

from harness.request.testtypes import ACCEPT_JSON, TestType

JSON = TestType(
    name="json",
    url_key="json_url",
    accept=ACCEPT_JSON,
    sweep="concurrency",
    reads_database=False,
    minimum_url_length=5,
)
