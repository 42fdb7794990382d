"""Declares the plugin for the order service."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin


class OrdersPlugin(Plugin):
    """A plugin that adds the test type ``order``, with its use cases, checks and database tables."""

    test_types: ClassVar[Mapping[str, ObjectPath]] = {"order": "harness.extras.orders.test_type:ORDER"}
    verifications: ClassVar[Mapping[str, ObjectPath]] = {"order": "harness.extras.orders.gathering"}
    table_sets: ClassVar[Mapping[str, ObjectPath]] = {"order": "harness.extras.orders.order_schema:ORDER_TABLE_SET"}
