"""Declares the plugin for runs on several machines and for merging runs."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin


class DeploymentsPlugin(Plugin):
    """Plugin for ``--server-host`` and related flags, and for ``report`` with several runs."""

    hooks: ClassVar[Mapping[str, ObjectPath]] = {
        "choose_remote_runtime": "harness.extras.deployments.machines_runtime:choose",
        "doctor_machines": "harness.extras.deployments.survey:doctor",
        "clean_machines": "harness.extras.deployments.survey:clean",
        "merge_runs": "harness.extras.deployments.merge:merge_runs",
    }
