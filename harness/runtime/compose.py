"""The one door to Docker: the client with compose v2, the project's compose files and their variables."""

import json
import logging
import os
import re
import secrets
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
UP_SECONDS = 120.0
ENGINE_SECONDS = 20.0
# What the docker client may see of the caller's environment. Tokens of CI systems and shells are not among it.
# fmt: off
CLIENT_VARIABLES = frozenset(
    {
        "BUILDX_BUILDER", "BUILDX_CONFIG", "DOCKER_API_VERSION", "DOCKER_CERT_PATH", "DOCKER_CONFIG",
        "DOCKER_CONTEXT", "DOCKER_DEFAULT_PLATFORM", "DOCKER_HOST", "DOCKER_TLS", "DOCKER_TLS_VERIFY",
        "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE",
        "LC_MESSAGES", "LOGNAME", "PATH", "SSH_AUTH_SOCK", "SSL_CERT_DIR",
        "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
    }
)
# fmt: on
PROXY_VARIABLES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"})
INSTALL_COMMAND = "toolset/provision/docker-engine install && toolset/provision/docker-engine start"


def engine_version() -> str:
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
                f"Debian: {INSTALL_COMMAND}), join its group (usermod -aG docker $USER), or use --runtime local"
            )
    return said


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """A kind of resource that a run makes in an engine, and how it is listed, named and removed."""

    kind: str
    listing: tuple[str, ...]
    name: str  # Go template of its name
    identity: str  # Go template of what removes it
    removal: tuple[str, ...]


# Containers first: they use networks and volumes.
RESOURCE_KINDS = (
    ResourceKind(
        kind="container",
        listing=("ps", "--all", "--no-trunc"),
        name="{{.Names}}",
        identity="{{.ID}}",
        removal=("container", "rm", "--force", "--volumes"),
    ),
    ResourceKind(
        kind="network",
        listing=("network", "ls", "--no-trunc"),
        name="{{.Name}}",
        identity="{{.ID}}",
        removal=("network", "rm"),
    ),
    ResourceKind(
        kind="volume",
        listing=("volume", "ls"),
        name="{{.Name}}",
        identity="{{.Name}}",
        removal=("volume", "rm"),
    ),
)
IDENTITY = re.compile(r"[0-9a-f]{12,64}|tfb-[\w.-]+")  # a container's or network's id, or a volume's name


def client_environment(*, proxies: bool = True) -> dict[str, str]:
    """Return the part of the caller's environment that a docker client is given.

    Without ``proxies`` it is fit for interpolating a file of others: a proxy's address may hold a password.
    """
    wanted = CLIENT_VARIABLES | (PROXY_VARIABLES if proxies else frozenset())
    return {name: value for name, value in os.environ.items() if name in wanted}


def docker(*arguments: str, seconds: float = 30.0, at: Sequence[str] = ()) -> process.CompletedCommand:
    """Run a docker command; ``at`` holds docker's arguments for another engine than this machine's."""
    return process.run(["docker", *at, *arguments], seconds=seconds, env=client_environment())


def inspect(kind: str, name: str, at: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return what the engine knows of a container or image; None when it does not exist."""
    done = docker(kind, "inspect", name, at=at)
    if done.status != 0:
        return None
    found: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("[") :])  # a warning may come first
    return found[0] if found else None


def ownership_labels(run_id: str) -> dict[str, str]:
    """Return the labels of everything that this process makes in an engine for a run."""
    return {RUN_LABEL: run_id, OWNER_LABEL: ownership.own_identity()}


def label_flags(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return labels as arguments of ``docker run``."""
    return tuple(argument for label in labels.items() for argument in ("--label", "=".join(label)))


@dataclass(frozen=True, kw_only=True)
class Project:
    """One run's compose project; everything in it carries the labels of the run and of this process.

    The name ends in random digits: two runs may begin in the same second, in different results folders.
    """

    run_id: str
    bridge: bool
    variables: Mapping[str, str] = field(default_factory=dict)
    at: Sequence[str] = ()  # docker's arguments for another engine than this machine's
    token: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def name(self) -> str:
        """Name of the compose project."""
        return f"tfb-{self.run_id.lower()}-{self.token}"

    @property
    def ownership_labels(self) -> dict[str, str]:
        """Labels by which this run's resources are found."""
        return ownership_labels(self.run_id)

    def labels(self, service: str = "") -> tuple[str, ...]:
        """Return the flags that label a container as compose labels its own, as one of a service if that is named."""
        known = self.ownership_labels
        if service:
            known |= {"com.docker.compose.project": self.name, "com.docker.compose.service": service}
        return label_flags(known)

    @property
    def network(self) -> str:
        """Name of the run's bridge, if it has one."""
        return f"{self.name}_tfb"

    def run(
        self,
        *arguments: str,
        seconds: float,
        log: Path | None = None,
        more: Mapping[str, str] | None = None,
        project: str | None = None,
    ) -> process.CompletedCommand:
        """Run one compose command with its variables; the caller judges its status."""
        files = ["-f", str(FOLDER / "compose.yaml")]
        if self.bridge:
            files += ["-f", str(FOLDER / "compose.bridge.yaml")]
        command = ["docker", *self.at, "compose", "--ansi", "never", "--project-name", project or self.name]
        own = {"DOCKER_BUILDKIT": "1", "TFB_RUN": self.run_id, "TFB_OWNER": ownership.own_identity()}
        # TFB_DATABASE_TMPFS and its like are variables of compose.yaml that a person sets.
        settings = {name: value for name, value in os.environ.items() if name.startswith("TFB_")}
        environment = {**client_environment(), **settings, **own, **self.variables, **(more or {})}
        return process.run([*command, *files, *arguments], seconds=seconds, cwd=REPOSITORY, env=environment, log=log)

    def build(self, *arguments: str, seconds: float, log: Path, more: Mapping[str, str]) -> process.CompletedCommand:
        """Build an image. Nothing of the run goes into it: what has not changed keeps its id."""
        return self.run("build", *arguments, seconds=seconds, log=log, more=more, project=BUILDS)

    def container(self, service: str, project: str | None = None) -> str:
        """Id of the service's container in this compose project; raises StartError when there is none."""
        if found := self._containers(service, project):
            return found[0]
        raise StartError(f"compose made no container for {service}")

    def _containers(self, service: str, project: str | None) -> list[str]:
        wanted = self.ownership_labels | {
            "com.docker.compose.service": service,
            "com.docker.compose.project": project or self.name,
        }
        return find_labelled(RESOURCE_KINDS[0], wanted, self.at) or []

    def remove(self, service: str, project: str | None = None) -> None:
        """Remove the service's container at once."""
        if found := self._containers(service, project):
            docker(*RESOURCE_KINDS[0].removal, *found, at=self.at)

    def remove_now(self, project: str) -> None:
        """Remove what this run has made in one compose project, as far as it is there by now."""
        for thing in RESOURCE_KINDS:
            if found := find_labelled(thing, self.ownership_labels | {"com.docker.compose.project": project}, self.at):
                docker(*thing.removal, *found, at=self.at)

    def remove_all(self) -> None:
        """Remove everything that carries the labels of this run and this process; images stay."""
        for thing in RESOURCE_KINDS:
            # What was being made when a run was interrupted may appear after the first look.
            for _ in range(3):
                found = find_labelled(thing, self.ownership_labels, self.at)
                if found == []:
                    break
                if found:
                    docker(*thing.removal, *found, at=self.at)
            else:
                logger.warning("the engine did not remove every %s of run %s", thing.kind, self.run_id)


def find_labelled(thing: ResourceKind, labels: Mapping[str, str], at: Sequence[str] = ()) -> list[str] | None:
    """Return what removes each resource that carries all of these labels, newest first; None if the listing failed."""
    filters = [word for label in labels.items() for word in ("--filter", f"label={'='.join(label)}")]
    done = docker(*thing.listing, *filters, "--format", thing.identity, at=at)
    if done.status != 0:
        return None
    return [line for line in done.stdout.splitlines() if IDENTITY.fullmatch(line)]  # warnings stand between them


def engine_leftovers(at: Sequence[str] = ()) -> tuple[Leftover, ...]:
    """Return the resources of runs whose process has ended, or is not known to this machine."""
    found = []
    for thing in RESOURCE_KINDS:
        marks = [f'{{{{.Label "{label}"}}}}' for label in (OWNER_LABEL, RUN_LABEL)]
        row = "\t".join((thing.identity, *marks, thing.name))
        done = docker(*thing.listing, "--filter", f"label={RUN_LABEL}", "--format", row, at=at)
        for line in done.stdout.splitlines() if done.status == 0 else ():
            identity, mark, run, called = (*line.split("\t"), "", "", "")[:4]
            state = ownership.owner_state(mark)
            if state != "alive" and IDENTITY.fullmatch(identity):  # a warning is none
                name = printable(f"{called} of run {run}")
                remove = partial(_remove, (*thing.removal, identity), at)
                found.append(Leftover(kind=thing.kind, name=name, certain=state == "dead", remove=remove))
    return tuple(found)


def _remove(command: Sequence[str], at: Sequence[str]) -> None:
    """Remove one resource; raise OSError with the engine's reason if it stays."""
    done = docker(*command, at=at)
    if done.status != 0 and "No such" not in done.stdout:
        raise OSError(done.stdout.strip()[-300:])


def disk_full_hint(said: str) -> str:
    """What to do where ``said``, of what failed, tells that the engine's disk is full; empty where it does not."""
    if "no space left on device" not in said.lower():
        return ""
    return (
        "the disk of the Docker engine is full: make room there (docker builder prune frees the build cache, ./tfb "
        "clean removes images of runs), then begin again, or go on with --resume"
    )


def start_error(said: str, what: str = "its container could not be started") -> TfbError:
    """The error of a container that the engine has not started: EngineFullError, which the next would have as well."""
    why, said = disk_full_hint(said), f"{what}: {said}"
    return EngineFullError(f"{said}\n{why}") if why else StartError(said)
