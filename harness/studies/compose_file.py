"""Writes docker/implementations.yaml, with a Compose service for each implementation.

Usage: ``python -m harness.studies.compose_file``. The repository's compose.yaml extends the service that the variable
TFB_TEST names.
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
    """Return the file's content: a service for each implementation that has a Dockerfile."""
    return HEADER + "".join(_service(each) for each in implementations if each.dockerfile.is_file())


def _service(implementation: Implementation) -> str:
    """Return a line of YAML with an implementation's service. JSON is valid YAML, so names need no further quoting."""
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
