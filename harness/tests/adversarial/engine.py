"""Helpers for tests with a real Docker engine, for example to build a containerised side of a comparison."""

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
    """Run a docker command with ``given`` as stdin, and return the output."""
    completed = subprocess.run(
        ["docker", *words], check=check, capture_output=True, text=True, timeout=300, input=given
    )
    return completed.stdout.strip()


def unique(prefix: str) -> str:
    """Return ``prefix`` with a random suffix, for Docker resources that must not clash with existing ones."""
    return f"{prefix}-{uuid4().hex[:12]}"


def session(folder: Path, *, allow: tuple[str, ...] = ()) -> SharedSettings:
    """Return the shared settings of a comparison that stores its files in ``folder``."""
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
    """Build a side of a comparison whose compose file defines the service ``web``, and yield it."""
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
    """Return the output of ``docker KIND inspect`` formatted with a Go template."""
    return docker(kind, "inspect", "--format", template, name)
