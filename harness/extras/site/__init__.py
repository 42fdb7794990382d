"""Declares the plugin of the static site."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin


class SitePlugin(Plugin):
    """``report --site``."""

    hooks: ClassVar[Mapping[str, ObjectPath]] = {"publish_site": "harness.extras.site.publishing:publish"}
