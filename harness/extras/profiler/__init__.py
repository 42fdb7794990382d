"""Declares the profiler's plugin."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin


class ProfilerPlugin(Plugin):
    """Plugin for the flag ``run --profiler``."""

    hooks: ClassVar[Mapping[str, ObjectPath]] = {"profile": "harness.extras.profiler.perf_profile:profile"}
