"""Writes docker/implementations.yaml, from which the repository's compose.yaml takes the implementation TFB_TEST.

Usage: ``python -m harness.studies.compose_file``.
"""

import json
from collections.abc import Iterable

from harness.paths import DOCKER, REPOSITORY
from harness.plan.discovery import scan_folders
from harness.plan.implementation import Implementation
from harness.runtime.privileges import SECCOMP

FILE = DOCKER / "implementations.yaml"
HEADER = """\
# Images of the implementations, for compose.yaml in the repository's root. Generated from frameworks/; to regenerate,
# run python -m harness.studies.compose_file.
services:
"""


def render(implementations: Iterable[Implementation]) -> str:
    """Return the file for the implementations that have a Dockerfile."""
    return HEADER + "".join(_service(each) for each in implementations if each.dockerfile.is_file())


def _service(implementation: Implementation) -> str:
    """Return the service of an implementation. JSON is valid YAML, so names need no further quoting."""
    folder = implementation.folder.relative_to(REPOSITORY)
    service: dict[str, object] = {
        "image": f"tfb-manual/{implementation.name}",
        "build": {
            "context": f"../{folder}",
            "dockerfile": str(implementation.dockerfile.relative_to(implementation.folder)),
        },
    }
    if implementation.entry.docker_cmd:
        service["command"] = implementation.entry.docker_cmd
    if implementation.entry.io_uring:  # the path is relative to the repository's compose.yaml
        service["security_opt"] = [f"seccomp={SECCOMP.relative_to(REPOSITORY)}"]
    return f"  {implementation.name}: {json.dumps(service)}\n"


if __name__ == "__main__":
    FILE.write_text(render(scan_folders().implementations), encoding="utf-8")
