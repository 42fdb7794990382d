"""Declares the plugin for claims made in conference talks."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import Plugin, Verb


class ClaimsPlugin(Plugin):
    """Plugin that adds the verb ``claims``."""

    verbs: ClassVar[Mapping[str, Verb]] = {
        "claims": Verb(
            target="harness.extras.claims.cli:command",
            help="list, measure and judge claims made in talks",
        )
    }
