"""Fortunes: all rows, one added, sorted, escaped, rendered as a page."""

from harness.request.testtypes import ACCEPT_HTML, TestType

FORTUNE = TestType(
    name="fortune",
    url_key="fortune_url",
    accept=ACCEPT_HTML,
    sweep="concurrency",
    reads_database=True,
    minimum_url_length=9,
)
