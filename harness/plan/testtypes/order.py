"""Order: a REST service of orders, asked for by arrivals of dependent requests (``harness.plan.orders``)."""

from harness.plan.testtypes import TestType

ORDER = TestType(
    name="order",
    url_key="order_url",
    accept="application/json",
    answer="orders",
    sweep="arrivals",
    reads_database=True,
    writes_database=True,
    scored=False,
    techempower=False,
    minimum_url_length=7,
)
