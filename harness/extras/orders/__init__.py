"""The order service: a test type with a load of arriving use cases.

The core finds the verification only through ``harness.extras.TEST_TYPES``.
"""

from harness.extras.orders import checks, load
from harness.extras.orders.gathering import gather

CHECKS = (checks, load)
__all__ = ["CHECKS", "gather", "load"]
