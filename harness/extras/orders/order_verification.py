"""The verification of the test type ``order``, whose load consists of arriving use cases.

This package implements ``harness.verify.checks.registry.TestTypeVerification``.
"""

from harness.extras.orders import checks, load
from harness.extras.orders.gathering import gather

check_modules = (checks, load)
__all__ = ["check_modules", "gather", "load"]
