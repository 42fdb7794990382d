"""Helpers for tests with a real Docker engine: sides in containers, and resources of the user."""

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
    """Run a docker command with the input ``given``, and return its output."""
    done = subprocess.run(["docker", *words], check=check, capture_output=True, text=True, timeout=300, input=given)
    return done.stdout.strip()


def unique(prefix: str) -> str:
    """Return a unique name."""
    return f"{prefix}-{uuid4().hex[:12]}"


def session(folder: Path, *, allow: tuple[str, ...] = ()) -> SharedSettings:
    """Return a comparison with separate resource limits, which stores its files in ``folder``."""
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
    """Yield a built side of a comparison. Its compose file defines the service ``web``."""
    top = folder / name
    top.mkdir()
    for path, text in files.items():
        (top / path).write_text(text, encoding="utf-8")
    service = Service(compose="compose.yaml", service="web", env=dict(env or {}))
    made = make_contained_side(name, service, top, top, given)
    try:
        built = made.build(folder / f"{name}.log")
        assert built.status == "ok", built.reason
        yield made
    finally:
        made.remove_images()
        given.project.remove_all()


def inspect(kind: str, name: str, template: str) -> str:
    """Return a field of ``docker inspect``."""
    return docker(kind, "inspect", "--format", template, name)
