"""Declares the plugin for the static site."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin


class SitePlugin(Plugin):
    """The plugin for ``report --site``."""

    hooks: ClassVar[Mapping[str, ObjectPath]] = {"publish_site": "harness.extras.site.site_pages:publish"}
