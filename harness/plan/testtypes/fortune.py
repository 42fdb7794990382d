"""Fortunes: all rows, one added, sorted, escaped, rendered as a page."""

from harness.plan.testtypes import ACCEPT_HTML, Crowd, Requests, TestType

FORTUNE = TestType(
    name="fortune",
    url_key="fortune_url",
    accept=ACCEPT_HTML,
    answer="page",
    sweep="concurrency",
    reads_database=True,
    crowd=Crowd(thorough=(Requests(times=32),), further=(Requests(times=32),)),
    minimum_url_length=9,
)
