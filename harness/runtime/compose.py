"""Runs the Docker client, and Docker Compose (v2) with the files in docker/."""

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

RUN_LABEL = "org.tfb.run"  # label of containers and networks: id of the run that created them
OWNER_LABEL = "org.tfb.owner"  # label of containers and networks: identity of the tfb process that created them
IMAGE_LABEL = "org.tfb.image"  # label of images: the tag under which tfb built the image
STAND_IN_LABEL = "org.tfb.stand-in"  # label of local stand-ins for base images: kind and Debian suite
BUILDS = "tfb"  # compose project for all builds; image names start with it
FOLDER = REPOSITORY / "docker"
DATABASE, SERVER, WRK, LOADGEN = "tfb-database", "tfb-server", "tfb-wrk", "tfb-loadgen"  # names of services
WEBSOCKET_WITNESS = "tfb-websocket-witness"
UP_SECONDS = 120.0
CLIENT_VARIABLES = frozenset(
    {
        "BUILDX_BUILDER",
        "BUILDX_CONFIG",
        "DOCKER_API_VERSION",
        "DOCKER_CERT_PATH",
        "DOCKER_CONFIG",
        "DOCKER_CONTEXT",
        "DOCKER_DEFAULT_PLATFORM",
        "DOCKER_HOST",
        "DOCKER_TLS",
        "DOCKER_TLS_VERIFY",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "LC_MESSAGES",
        "LOGNAME",
        "PATH",
        "SSH_AUTH_SOCK",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
    }
)
PROXY_VARIABLES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"})
INSTALL_COMMAND = "toolset/provision/docker-engine install && toolset/provision/docker-engine start"


def engine_version() -> str:
    """Return the engine's version. Raises EnvironmentLacksError, with a remedy, if no engine responds."""
    output = ""
    for command in (("compose", "version", "--short"), ("version", "--format", "{{.Server.Version}}")):
        try:
            completed = docker(*command, seconds=20.0)
            status, output = completed.status, completed.stdout.strip()
        except TfbError as error:  # the engine does not respond, or the client is not installed
            status, output = 1, str(error)
        if status != 0:
            raise EnvironmentLacksError(
                f"no Docker engine with compose v2 responds to this user ({output[-200:]}): start or restart it (on "
                f"Debian: {INSTALL_COMMAND}), join the docker group (usermod -aG docker $USER), or use --runtime local"
            )
    return output


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """A kind of Docker resource, with the commands that list and remove it."""

    kind: str
    listing: tuple[str, ...]
    name: str  # Go template for the name
    identity: str  # Go template for the identity, which is the argument of ``removal``
    removal: tuple[str, ...]


# Resources in removal order: containers first, because they use networks and volumes.
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
IDENTITY = re.compile(r"[0-9a-f]{12,64}|tfb-[\w.-]+")  # id of a container or network, or name of a volume


def client_environment(*, proxies: bool = True) -> dict[str, str]:
    """Return the docker client's environment.

    Proxy variables may contain passwords. Omit them (``proxies=False``) for untrusted compose files.
    """
    names = CLIENT_VARIABLES | (PROXY_VARIABLES if proxies else frozenset())
    return {name: value for name, value in os.environ.items() if name in names}


def docker(*arguments: str, seconds: float = 30.0, at: Sequence[str] = ()) -> process.CompletedCommand:
    """Run a docker command. ``at`` contains the arguments that select a remote engine."""
    return process.run(["docker", *at, *arguments], seconds=seconds, env=client_environment())


def inspect(kind: str, name: str, at: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return the output of docker inspect for a container or image, or None if it does not exist."""
    done = docker(kind, "inspect", name, at=at)
    if done.status != 0:
        return None
    details: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("[") :])  # a warning may precede the list
    return details[0] if details else None


def ownership_labels(run_id: str) -> dict[str, str]:
    """Return the labels for all containers, networks and volumes that this process creates for a run."""
    return {RUN_LABEL: run_id, OWNER_LABEL: ownership.own_identity()}


def label_flags(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ``docker run`` arguments that set labels."""
    return tuple(argument for label in labels.items() for argument in ("--label", "=".join(label)))


@dataclass(frozen=True, kw_only=True)
class Project:
    """The compose project of a run. Labels on the resources name the run and this process."""

    run_id: str
    bridge: bool
    variables: Mapping[str, str] = field(default_factory=dict)
    engine: Sequence[str] = ()  # arguments that select a remote engine
    io_uring: bool = False  # whether the server's container may use io_uring
    token: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def name(self) -> str:
        """The name of the compose project."""
        return f"tfb-{self.run_id.lower()}-{self.token}"

    @property
    def ownership_labels(self) -> dict[str, str]:
        """The labels of this run's resources."""
        return ownership_labels(self.run_id)

    def labels(self, service: str = "") -> tuple[str, ...]:
        """Return flags that label a container with the run and, if ``service`` is given, with project and service."""
        labels = self.ownership_labels
        if service:
            labels |= {"com.docker.compose.project": self.name, "com.docker.compose.service": service}
        return label_flags(labels)

    @property
    def network(self) -> str:
        """The name of the run's bridge network."""
        return f"{self.name}_tfb"

    def run(
        self,
        *arguments: str,
        seconds: float,
        log: Path | None = None,
        variables: Mapping[str, str] | None = None,
        project: str | None = None,
    ) -> process.CompletedCommand:
        """Run a compose command. ``variables`` contains additional variables for the compose files."""
        files = ["-f", str(FOLDER / "compose.yaml")]
        if self.bridge:
            files += ["-f", str(FOLDER / "compose.bridge.yaml")]
        if self.io_uring:
            files += ["-f", str(FOLDER / "compose.io_uring.yaml")]
        command = ["docker", *self.engine, "compose", "--ansi", "never", "--project-name", project or self.name]
        run = {"DOCKER_BUILDKIT": "1", "TFB_RUN": self.run_id, "TFB_OWNER": ownership.own_identity()}
        # Users may set variables that compose.yaml reads, for example TFB_DATABASE_TMPFS.
        settings = {name: value for name, value in os.environ.items() if name.startswith("TFB_")}
        environment = {**client_environment(), **settings, **run, **self.variables, **(variables or {})}
        return process.run([*command, *files, *arguments], seconds=seconds, cwd=REPOSITORY, env=environment, log=log)

    def build(self, *arguments: str, seconds: float, log: Path, more: Mapping[str, str]) -> process.CompletedCommand:
        """Build an image in a compose project that all runs share, so that an unchanged image keeps its id."""
        return self.run("build", *arguments, seconds=seconds, log=log, variables=more, project=BUILDS)

    def container(self, service: str, project: str | None = None) -> str:
        """Return the id of a service's container. Raises StartError if there is no container."""
        if containers := self._containers(service, project):
            return containers[0]
        raise StartError(f"compose created no container for {service}")

    def _containers(self, service: str, project: str | None) -> list[str]:
        labels = self.ownership_labels | {
            "com.docker.compose.service": service,
            "com.docker.compose.project": project or self.name,
        }
        return find_labelled(RESOURCE_KINDS[0], labels, self.engine) or []

    def remove(self, service: str, project: str | None = None) -> None:
        """Remove a service's container."""
        if containers := self._containers(service, project):
            docker(*RESOURCE_KINDS[0].removal, *containers, at=self.engine)

    def remove_now(self, project: str) -> None:
        """Remove all resources that this run has created in a compose project."""
        for kind in RESOURCE_KINDS:
            labels = self.ownership_labels | {"com.docker.compose.project": project}
            if resources := find_labelled(kind, labels, self.engine):
                docker(*kind.removal, *resources, at=self.engine)

    def remove_all(self) -> None:
        """Remove all resources that this process created for the run, except images."""
        for kind in RESOURCE_KINDS:
            for _ in range(3):  # after an interruption, the engine may still be creating resources
                resources = find_labelled(kind, self.ownership_labels, self.engine)
                if resources == []:
                    break
                if resources:
                    docker(*kind.removal, *resources, at=self.engine)
            else:
                logger.warning("the engine did not remove every %s of run %s", kind.kind, self.run_id)


def find_labelled(kind: ResourceKind, labels: Mapping[str, str], at: Sequence[str] = ()) -> list[str] | None:
    """Return the ids (or volume names) of resources with all these labels, newest first, or None if listing fails."""
    filters = [word for label in labels.items() for word in ("--filter", f"label={'='.join(label)}")]
    done = docker(*kind.listing, *filters, "--format", kind.identity, at=at)
    if done.status != 0:
        return None
    return [line for line in done.stdout.splitlines() if IDENTITY.fullmatch(line)]  # skip warnings


def engine_leftovers(engine: Sequence[str] = ()) -> tuple[Leftover, ...]:
    """Return the resources of exited runs, and those of runs on other machines, which may still be active."""
    leftovers = []
    for kind in RESOURCE_KINDS:
        labels = [f'{{{{.Label "{label}"}}}}' for label in (OWNER_LABEL, RUN_LABEL)]
        row = "\t".join((kind.identity, *labels, kind.name))
        completed = docker(*kind.listing, "--filter", f"label={RUN_LABEL}", "--format", row, at=engine)
        for line in completed.stdout.splitlines() if completed.status == 0 else ():
            identity, owner, run, resource = (*line.split("\t"), "", "", "")[:4]
            state = ownership.owner_state(owner)
            if state != "alive" and IDENTITY.fullmatch(identity):  # skip warnings
                name = printable(f"{resource} of run {run}")
                remove = partial(_remove, (*kind.removal, identity), engine)
                leftovers.append(Leftover(kind=kind.kind, name=name, is_certain=state == "dead", remove=remove))
    return tuple(leftovers)


def _remove(command: Sequence[str], at: Sequence[str]) -> None:
    """Remove a resource. Raises OSError with the engine's reason if it fails."""
    done = docker(*command, at=at)
    if done.status != 0 and "No such" not in done.stdout:
        raise OSError(done.stdout.strip()[-300:])


def disk_full_hint(output: str) -> str:
    """Return a remedy if ``output`` shows that the engine's disk is full, otherwise an empty string."""
    if "no space left on device" not in output.lower():
        return ""
    return (
        "the Docker engine's disk is full: free up space (docker builder prune removes the build cache, ./tfb clean "
        "removes the images of runs), then start again, or continue with --resume"
    )


def start_error(output: str, problem: str = "the container could not be started") -> TfbError:
    """Return the error for a container that did not start: EngineFullError if the disk is full, else StartError."""
    hint, message = disk_full_hint(output), f"{problem}: {output}"
    return EngineFullError(f"{message}\n{hint}") if hint else StartError(message)
