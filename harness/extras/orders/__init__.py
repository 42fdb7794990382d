"""Declares the order service to tfb."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin


class OrdersPlugin(Plugin):
    """The test type ``order``, its use cases and its checks."""

    test_types: ClassVar[Mapping[str, ObjectPath]] = {"order": "harness.extras.orders.test_type:ORDER"}
    verifications: ClassVar[Mapping[str, ObjectPath]] = {"order": "harness.extras.orders.order_verification"}
