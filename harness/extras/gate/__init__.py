"""Declares the plugin of the regression gate, which compares two versions of a service."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin, Verb


class GatePlugin(Plugin):
    """``compare --base`` for a service, and the verbs ``init`` and ``history``."""

    verbs: ClassVar[Mapping[str, Verb]] = {
        "init": Verb(target="harness.extras.gate.init:command", help="write the tfb.toml of a service"),
        "history": Verb(
            target="harness.extras.gate.history:command", help="draw the verdicts that compare --history kept"
        ),
    }
    hooks: ClassVar[Mapping[str, ObjectPath]] = {"compare_service": "harness.extras.gate.cli:compare"}
