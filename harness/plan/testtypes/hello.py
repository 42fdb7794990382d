"""Hello: plaintext's body without pipelining, from one connection to a thousand."""

from harness.plan.testtypes import ACCEPT_PLAIN, Crowd, Requests, TestType

HELLO = TestType(
    name="hello",
    url_key="hello_url",
    accept=ACCEPT_PLAIN,
    answer="greeting",
    sweep="concurrency",
    concurrency=(1, 100, 1000),
    crowd=Crowd(brief=(Requests(times=40),), thorough=(Requests(times=400),)),
    scored=False,
    techempower=False,
    minimum_url_length=5,
)
