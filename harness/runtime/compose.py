"""The one door to Docker: the client with compose v2, the project's compose files and their variables."""

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import EngineFullError, EnvironmentLacksError, StartError, TfbError
from harness.host import ownership, process
from harness.host.leftovers import Leftover
from harness.paths import REPOSITORY
from harness.plain_text import printable

logger = logging.getLogger("tfb.compose")

RUN_LABEL = "org.tfb.run"  # containers and networks: the run that made them
OWNER_LABEL = "org.tfb.owner"  # likewise: the process that made them (harness.host.ownership)
IMAGE_LABEL = "org.tfb.image"  # images: what they are of
STAND_IN_LABEL = "org.tfb.stand-in"  # images that stand in for another: what they are made of
BUILDS = "tfb"  # compose's project of every build: its name goes into the image
FOLDER = REPOSITORY / "docker"
DATABASE, SERVER, WRK, LOADGEN = "tfb-database", "tfb-server", "tfb-wrk", "tfb-loadgen"  # services
# What a run leaves in an engine -> how it is listed, named and removed; containers first, which use networks.
THINGS = {
    "container": (("ps", "--all"), "{{.Names}}", ("container", "rm", "--force", "--volumes")),
    "network": (("network", "ls"), "{{.Name}}", ("network", "rm")),
}
UP_SECONDS = 120.0
ENGINE_SECONDS = 20.0
INSTALL = "toolset/provision/docker-engine install && toolset/provision/docker-engine start"


def engine() -> str:
    """Version of the engine that answers; raises EnvironmentLacksError with the next step when none does."""
    said = ""
    for question in (("compose", "version", "--short"), ("version", "--format", "{{.Server.Version}}")):
        try:
            done = docker(*question, seconds=ENGINE_SECONDS)
            status, said = done.status, done.stdout.strip()
        except TfbError as error:  # it hangs, or there is no client
            status, said = 1, str(error)
        if status != 0:
            raise EnvironmentLacksError(
                f"no Docker engine with compose v2 answers this user ({said[-200:]}): start it, or start it again (on "
                f"Debian: {INSTALL}), join its group (usermod -aG docker $USER), or use --runtime local"
            )
    return said


def docker(*arguments: str, seconds: float = 30.0, at: Sequence[str] = ()) -> process.Completed:
    """Run a plain docker command; ``at``: docker's arguments for another engine than this machine's."""
    return process.run(["docker", *at, *arguments], seconds=seconds)


def inspect(kind: str, name: str, at: Sequence[str] = ()) -> dict[str, Any] | None:
    """What the engine knows of a container or image; None when it does not exist."""
    done = docker(kind, "inspect", name, at=at)
    if done.status != 0:
        return None
    found: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("[") :])  # a warning may come first
    return found[0] if found else None


@dataclass(frozen=True, kw_only=True)
class Project:
    """One run's compose project; everything in it carries the run's label."""

    run_id: str
    bridge: bool
    variables: Mapping[str, str] = field(default_factory=dict)
    at: Sequence[str] = ()  # docker's arguments for another engine than this machine's

    @property
    def name(self) -> str:
        """Compose's name of the project."""
        return f"tfb-{self.run_id.lower()}"

    def labels(self, service: str = "") -> tuple[str, ...]:
        """For a container that compose does not start: as it labels the others, those of a service included."""
        known = {RUN_LABEL: self.run_id, OWNER_LABEL: ownership.me()}
        if service:
            known |= {"com.docker.compose.project": self.name, "com.docker.compose.service": service}
        return tuple(argument for label in known.items() for argument in ("--label", "=".join(label)))

    @property
    def network(self) -> str:
        """The bridge's name, where there is one."""
        return f"{self.name}_tfb"

    def run(
        self,
        *arguments: str,
        seconds: float,
        log: Path | None = None,
        more: Mapping[str, str] | None = None,
        project: str | None = None,
    ) -> process.Completed:
        """Carry out one compose command with its variables; its status is the caller's to judge."""
        files = ["-f", str(FOLDER / "compose.yaml")]
        if self.bridge:
            files += ["-f", str(FOLDER / "compose.bridge.yaml")]
        command = ["docker", *self.at, "compose", "--ansi", "never", "--project-name", project or self.name]
        own = {"DOCKER_BUILDKIT": "1", "TFB_RUN": self.run_id, "TFB_OWNER": ownership.me()}
        environment = {**os.environ, **own, **self.variables, **(more or {})}
        return process.run([*command, *files, *arguments], seconds=seconds, cwd=REPOSITORY, env=environment, log=log)

    def build(self, *arguments: str, seconds: float, log: Path, more: Mapping[str, str]) -> process.Completed:
        """Build an image. Nothing of the run goes into it: what has not changed keeps its id."""
        return self.run("build", *arguments, seconds=seconds, log=log, more=more, project=BUILDS)

    def container(self, service: str, project: str | None = None) -> str:
        """Id of the service's container in this compose project; raises StartError when there is none."""
        if found := self._containers(service, project):
            return found[0]
        raise StartError(f"compose made no container for {service}")

    def _containers(self, service: str, project: str | None) -> list[str] | None:
        of_service = ("--filter", f"label=com.docker.compose.service={service}")
        of_project = ("--filter", f"label=com.docker.compose.project={project or self.name}")
        return ids("ps", "--all", *of_service, *of_project, at=self.at)

    def remove(self, service: str, project: str | None = None) -> None:
        """Remove the service's container at once."""
        if found := self._containers(service, project):
            docker("container", "rm", "--force", "--volumes", *found, at=self.at)

    def remove_all(self) -> None:
        """Stop and remove what carries this run's label, and nothing else; images stay."""
        mine = ("--filter", f"label={RUN_LABEL}={self.run_id}")
        for thing, (listing, _, remove) in THINGS.items():
            # What was being made when a run was interrupted may appear after the first look.
            for _ in range(3):
                found = ids(*listing, *mine, at=self.at)
                if found == []:
                    break
                if found:
                    docker(*remove, *found, at=self.at)
            else:
                logger.warning("the engine did not remove every %s of run %s", thing, self.run_id)


def ids(*listing: str, at: Sequence[str] = ()) -> list[str] | None:
    """Ids that a listing command prints, newest first; None when the command failed."""
    done = docker(*listing, "--quiet", "--no-trunc", at=at)
    return re.findall(r"^(?:sha256:)?[0-9a-f]{64}$", done.stdout, re.MULTILINE) if done.status == 0 else None


def leftovers() -> tuple[Leftover, ...]:
    """Containers, then networks, of runs whose harness lives no more, or is not known to this machine."""
    row = f'{{{{.ID}}}}\t{{{{.Label "{OWNER_LABEL}"}}}}\t{{{{.Label "{RUN_LABEL}"}}}}\t'
    found = []
    for kind, (listing, name, removal) in THINGS.items():
        done = docker(*listing, "--filter", f"label={RUN_LABEL}", "--format", row + name)
        for line in done.stdout.splitlines() if done.status == 0 else ():
            identity, mark, run, called = (*line.split("\t"), "", "", "")[:4]
            state = ownership.state(mark)
            if state != "alive" and re.fullmatch(r"[0-9a-f]{12,64}", identity):  # a warning is none
                name_of = printable(f"{called} of run {run}")
                remove = partial(_remove, (*removal, identity))
                found.append(Leftover(kind=kind, name=name_of, certain=state == "dead", remove=remove))
    return tuple(found)


def _remove(command: Sequence[str]) -> None:
    """Remove one thing; raises OSError with the engine's reason."""
    done = docker(*command)
    if done.status != 0 and "No such" not in done.stdout:
        raise OSError(done.stdout.strip()[-300:])


def images() -> list[dict[str, Any]]:
    """What the engine knows of the images that carry this project's label, those without a name included."""
    found = ids("image", "ls", "--all", "--filter", f"label={IMAGE_LABEL}") or []
    known = (inspect("image", name) for name in dict.fromkeys(found))
    return [image for image in known if image]


def remove_images(wanted: Sequence[str]) -> list[tuple[str, str]]:
    """Remove images by name, or by id where they have none; those that the engine kept, each with its reason.

    Never forced: an image that a container uses stays.
    """
    kept = []
    for image in wanted:
        done = docker("image", "rm", image, seconds=120.0)
        if done.status != 0 and "No such image" not in done.stdout:
            kept.append((image, done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no reason given"))
    return kept


def full(said: str) -> str:
    """What to do where ``said``, of what failed, tells that the engine's disk is full; empty where it does not."""
    if "no space left on device" not in said.lower():
        return ""
    return (
        "the disk of the Docker engine is full: make room there (docker builder prune frees the build cache, ./tfb "
        "clean removes images of runs), then begin again, or go on with --resume"
    )


def not_started(said: str, what: str = "its container could not be started") -> TfbError:
    """The error of a container that the engine has not started: EngineFullError, which the next would have as well."""
    why, said = full(said), f"{what}: {said}"
    return EngineFullError(f"{said}\n{why}") if why else StartError(said)


def digest(name: str) -> str:
    """What an image's name stands for: the registry's digest, or the id of one that was made here; ``sha256:…``."""
    image = inspect("image", name) or {}
    of_registry = [word.partition("@")[2] for word in image.get("RepoDigests") or ()]
    return str(of_registry[0] if of_registry else image.get("Id", ""))


def image_name(image: Mapping[str, Any]) -> str:
    """Its name, or what it was before a later build took the name."""
    names: list[str] = image["RepoTags"] or []
    return ", ".join(names) or f"{image['Id'][7:19]}, was {image['Config']['Labels'][IMAGE_LABEL]}"
