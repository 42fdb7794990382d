"""Order: a REST service of orders, asked for by arrivals of dependent requests (``harness.request.orders``)."""

from harness.request.testtypes import TestType

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
