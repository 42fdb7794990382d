"""Declares the plugin for claims of conference talks."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import Plugin, Verb


class ClaimsPlugin(Plugin):
    """The verb ``claims``."""

    verbs: ClassVar[Mapping[str, Verb]] = {
        "claims": Verb(
            target="harness.extras.claims.cli:command",
            help="what talks claim: list with verdicts, run (measure and judge)",
        )
    }
