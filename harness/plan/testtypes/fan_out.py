"""Fan-out: twenty requests to a slow upstream for each answer, which holds their sum."""

from harness.plan.testtypes import ACCEPT_JSON, TestType

FAN_OUT = TestType(
    name="fan-out",
    url_key="fan_out_url",
    accept=ACCEPT_JSON,
    answer="sum",
    sweep="concurrency",
    parameter=20,
    calls_upstream=True,
    scored=False,
    techempower=False,
    minimum_url_length=8,
)
