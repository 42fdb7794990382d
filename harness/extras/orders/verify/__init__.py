"""Verification of the order service: found by the core through ``harness.extras.TEST_TYPES`` alone."""

from harness.extras.orders.verify import answers, load, reading, storing
from harness.extras.orders.verify.gathering import gather

CHECKS = (answers, storing, reading, load)
__all__ = ["CHECKS", "gather", "load"]
