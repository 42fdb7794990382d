"""Helpers for tests that need a real Docker engine."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from harness.extras.gate.container_sides import ContainedSide, SharedSettings, make_contained_side, parse_allow
from harness.plan.service import Service
from harness.runtime.compose import Project
from harness.runtime.limits import Limits

BASE = "debian:trixie-slim"


def docker(*words: str, check: bool = True, given: str | None = None) -> str:
    """Run ``docker`` with ``given`` on stdin and return its output."""
    completed = subprocess.run(
        ["docker", *words], check=check, capture_output=True, text=True, timeout=300, input=given
    )
    return completed.stdout.strip()


def unique(prefix: str) -> str:
    """Append a random suffix to ``prefix``, so that Docker resources cannot clash with existing ones."""
    return f"{prefix}-{uuid4().hex[:12]}"


def session(folder: Path, *, allow: tuple[str, ...] = ()) -> SharedSettings:
    """Return the settings that all sides of a comparison share. Files are stored in ``folder``."""
    scratch = folder / "scratch"
    scratch.mkdir(mode=0o700, exist_ok=True)
    return SharedSettings(
        project=Project(run_id=unique("adversarial"), bridge=False),
        scratch=scratch,
        limits=Limits(memory_bytes=256 << 20, pids=64),
        cpus=None,
        allowed=parse_allow(allow),
    )


@contextmanager
def side(
    name: str, files: Mapping[str, str], given: SharedSettings, folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[ContainedSide]:
    """Build one side of a comparison and yield it. Its compose file must define the service ``web``."""
    top = folder / name
    top.mkdir()
    for path, text in files.items():
        (top / path).write_text(text, encoding="utf-8")
    service = Service(compose="compose.yaml", service="web", env=dict(env or {}))
    contained_side = make_contained_side(name, service, top, top, given)
    try:
        built = contained_side.build(folder / f"{name}.log")
        assert built.status == "ok", built.reason
        yield contained_side
    finally:
        contained_side.remove_images()
        given.project.remove_all()


def inspect(kind: str, name: str, template: str) -> str:
    """Return the output of ``docker KIND inspect NAME --format TEMPLATE``."""
    return docker(kind, "inspect", "--format", template, name)
