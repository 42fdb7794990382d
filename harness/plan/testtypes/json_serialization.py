"""JSON serialization: one small object a request."""

from harness.plan.testtypes import ACCEPT_JSON, Crowd, Requests, TestType

JSON = TestType(
    name="json",
    url_key="json_url",
    accept=ACCEPT_JSON,
    answer="message",
    sweep="concurrency",
    crowd=Crowd(thorough=(Requests(times=400),), further=(Requests(times=400),)),
    minimum_url_length=5,
)
