"""The explicit list of test types, in the order in which a replicate runs them: writes come last."""

from harness.testtypes import TestType
from harness.testtypes.cached_query import CACHED_QUERY
from harness.testtypes.db import DB
from harness.testtypes.fortune import FORTUNE
from harness.testtypes.json_serialization import JSON
from harness.testtypes.plaintext import PLAINTEXT
from harness.testtypes.query import QUERY
from harness.testtypes.update import UPDATE

TEST_TYPES: dict[str, TestType] = {
    test_type.name: test_type for test_type in (JSON, PLAINTEXT, DB, QUERY, CACHED_QUERY, FORTUNE, UPDATE)
}
