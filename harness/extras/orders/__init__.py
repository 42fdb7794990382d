"""The order service: a test type whose load is arrivals of use cases.

Its verification is found by the core through ``harness.extras.TEST_TYPES`` alone.
"""

from harness.extras.orders import checks, load
from harness.extras.orders.gathering import gather

CHECKS = (checks, load)
__all__ = ["CHECKS", "gather", "load"]
