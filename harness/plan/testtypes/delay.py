"""Delay: the greeting after 5 ms of waiting, which holds no other request up."""

from harness.plan.testtypes import ACCEPT_PLAIN, TestType

DELAY = TestType(
    name="delay",
    url_key="delay_url",
    accept=ACCEPT_PLAIN,
    answer="greeting",
    sweep="concurrency",
    parameter=5,
    scored=False,
    techempower=False,
    minimum_url_length=6,
)
