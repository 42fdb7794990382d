"""The explicit list of test types, in the order in which a replicate runs them: writes come last."""

from harness.request.testtypes import TestType
from harness.request.testtypes.cached_query import CACHED_QUERY
from harness.request.testtypes.db import DB
from harness.request.testtypes.delay import DELAY
from harness.request.testtypes.fan_out import FAN_OUT
from harness.request.testtypes.fortune import FORTUNE
from harness.request.testtypes.hello import HELLO
from harness.request.testtypes.json_serialization import JSON
from harness.request.testtypes.order import ORDER
from harness.request.testtypes.plaintext import PLAINTEXT
from harness.request.testtypes.query import QUERY
from harness.request.testtypes.update import UPDATE

TEST_TYPES: dict[str, TestType] = {
    test_type.name: test_type
    for test_type in (JSON, PLAINTEXT, HELLO, DELAY, FAN_OUT, DB, QUERY, CACHED_QUERY, FORTUNE, UPDATE, ORDER)
}
