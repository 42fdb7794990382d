"""Declares the regression gate to tfb."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin, Verb


class GatePlugin(Plugin):
    """``compare --base`` for a service, and the verbs ``init`` and ``history``."""

    verbs: ClassVar[Mapping[str, Verb]] = {
        "init": Verb(target="harness.extras.gate.init:command", help="the tfb.toml of a service of your own"),
        "history": Verb(
            target="harness.extras.gate.history:command", help="verdicts of ./tfb compare that were kept, drawn"
        ),
    }
    hooks: ClassVar[Mapping[str, ObjectPath]] = {"compare_service": "harness.extras.gate.cli:compare"}
