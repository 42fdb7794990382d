"""Declares the plugin for the regression gate.

The gate compares two versions of a service, base and head. It also runs a control copy of base, to measure noise. Base,
head and the control copy are called the sides of the comparison.
"""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin, Verb


class GatePlugin(Plugin):
    """Plugin for ``compare --base`` in a service's folder, and for the verbs ``init`` and ``history``."""

    verbs: ClassVar[Mapping[str, Verb]] = {
        "init": Verb(target="harness.extras.gate.init:command", help="write a tfb.toml for a service"),
        "history": Verb(
            target="harness.extras.gate.history:command", help="draw the verdicts saved by compare --history"
        ),
    }
    designs: ClassVar[Mapping[str, ObjectPath]] = {"gate": "harness.extras.gate.gate_design:regression_gate"}
    hooks: ClassVar[Mapping[str, ObjectPath]] = {"compare_service": "harness.extras.gate.cli:compare"}
