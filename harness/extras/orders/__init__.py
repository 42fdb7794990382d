"""Declares the plugin of the order service."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin


class OrdersPlugin(Plugin):
    """The test type ``order`` with use cases and checks."""

    test_types: ClassVar[Mapping[str, ObjectPath]] = {"order": "harness.extras.orders.test_type:ORDER"}
    verifications: ClassVar[Mapping[str, ObjectPath]] = {"order": "harness.extras.orders.order_verification"}
