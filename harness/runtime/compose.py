"""The one door to Docker: the client with compose v2, the project's compose files and their variables."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from harness import process
from harness.discovery import REPOSITORY
from harness.errors import EnvironmentLacksError, StartError

LABEL = "org.tfb.run"
FOLDER = REPOSITORY / "docker"
QUICK_SECONDS = 60.0
INSTALL = "toolset/provision/docker-engine install && toolset/provision/docker-engine start"


@cache
def client() -> str | None:
    """The first Docker client on this machine that has compose v2, Debian's own path included."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    for path in dict.fromkeys(shutil.which("docker", path=folder) for folder in folders if folder):
        if path and process.run([path, "compose", "version", "--short"], seconds=20).status == 0:
            return path
    return None


def engine() -> str:
    """Version of the engine that answers; raises EnvironmentLacksError with the next step when none does."""
    program = client()
    if program is None:
        raise EnvironmentLacksError(f"no Docker client with compose v2 is on this machine; on Debian: {INSTALL}")
    done = process.run([program, "version", "--format", "{{.Server.Version}}"], seconds=20)
    if done.status == 0:
        return done.stdout.strip()
    if "permission denied" in done.stdout.lower():
        raise EnvironmentLacksError(
            "the Docker engine's socket refuses this user (permission denied): add it to the group docker "
            "(usermod -aG docker $USER, then log in again), or run as root"
        )
    raise EnvironmentLacksError(f"no Docker engine answers ({done.stdout.strip()[-200:]}); on Debian: {INSTALL}")


def docker(*arguments: str, seconds: float = QUICK_SECONDS) -> process.Completed:
    """Run a plain docker command."""
    return process.run([client() or "docker", *arguments], seconds=seconds)


def inspect(kind: str, name: str) -> dict[str, Any] | None:
    """What the engine knows of a container or image; None when it does not exist."""
    done = docker(kind, "inspect", name)
    if done.status != 0:
        return None
    found: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("[") :])
    return found[0] if found else None


@dataclass(frozen=True, kw_only=True)
class Project:
    """One run's compose project; everything in it carries the run's label."""

    run_id: str
    bridge: bool
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Compose's name of the project."""
        return f"tfb-{self.run_id.lower()}"

    def command(self, *arguments: str) -> list[str]:
        """``docker compose`` with this project's files."""
        files = ["-f", str(FOLDER / "compose.yaml")]
        if self.bridge:
            files += ["-f", str(FOLDER / "compose.bridge.yaml")]
        return [client() or "docker", "compose", "--ansi", "never", "--project-name", self.name, *files, *arguments]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables of compose.yaml on top of this process's own."""
        return {**os.environ, "DOCKER_BUILDKIT": "1", "TFB_RUN": self.run_id, **self.variables, **(more or {})}

    def run(
        self, *arguments: str, seconds: float, log: Path | None = None, more: Mapping[str, str] | None = None
    ) -> process.Completed:
        """Carry out one compose command; its status is the caller's to judge."""
        return process.run(
            self.command(*arguments), seconds=seconds, cwd=REPOSITORY, env=self.environment(more), log=log
        )

    def container(self, service: str) -> str:
        """Id of the service's container; raises StartError when there is none."""
        done = self.run("ps", "--all", "--quiet", service, seconds=QUICK_SECONDS)
        lines = [line for line in done.stdout.split() if len(line) == 64]
        if not lines:
            raise StartError(f"compose made no container for {service}: {done.stdout.strip()[-300:]}")
        return lines[-1]

    def remove_all(self) -> None:
        """Stop and remove what carries this run's label, and nothing else; images stay."""
        for kind, listing in (("container", ("ps", "--all", "--quiet")), ("network", ("network", "ls", "--quiet"))):
            found = docker(*listing, "--filter", f"label={LABEL}={self.run_id}").stdout.split()
            if found:
                docker(kind, "rm", *(["--force", "--volumes"] if kind == "container" else []), *found)


def images() -> list[dict[str, Any]]:
    """The images that carry this project's label: id, tags, size in bytes, run."""
    done = docker("image", "ls", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}")
    if done.status != 0:
        return []
    found = (inspect("image", name) for name in dict.fromkeys(done.stdout.split()))
    return [image for image in found if image]


def remove_images(run_id: str | None = None) -> Sequence[str]:
    """Remove the labelled images, of one run or of all; ids of those that are gone."""
    gone = []
    for image in images():
        if run_id is None or image["Config"]["Labels"].get(LABEL) == run_id:
            done = docker("image", "rm", "--force", image["Id"])
            if done.status == 0:
                gone.append(str(image["Id"]))
    return gone
