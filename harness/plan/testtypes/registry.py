"""The explicit list of test types, in the order in which a replicate runs them: writes come last."""

from harness.plan.testtypes import TestType
from harness.plan.testtypes.cached_query import CACHED_QUERY
from harness.plan.testtypes.db import DB
from harness.plan.testtypes.delay import DELAY
from harness.plan.testtypes.fan_out import FAN_OUT
from harness.plan.testtypes.fortune import FORTUNE
from harness.plan.testtypes.hello import HELLO
from harness.plan.testtypes.json_serialization import JSON
from harness.plan.testtypes.order import ORDER
from harness.plan.testtypes.plaintext import PLAINTEXT
from harness.plan.testtypes.query import QUERY
from harness.plan.testtypes.update import UPDATE

TEST_TYPES: dict[str, TestType] = {
    test_type.name: test_type
    for test_type in (JSON, PLAINTEXT, HELLO, DELAY, FAN_OUT, DB, QUERY, CACHED_QUERY, FORTUNE, UPDATE, ORDER)
}
