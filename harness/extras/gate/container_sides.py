"""Builds and starts the sides of a comparison (base, control copy and head) in containers, with Docker Compose."""

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import redaction
from harness.errors import StartError, UsageError
from harness.extras.gate.compose_files import confined, require_confined
from harness.extras.gate.compose_model import CONSENTS, VALUE_PREFIX, Separation, separate_model, set_only
from harness.host import process
from harness.plan.service import Service
from harness.plan.suggestions import suggest
from harness.records import safe_write
from harness.records.run_info import BuildRecord
from harness.runtime import images
from harness.runtime.compose import RESOURCE_KINDS, UP_SECONDS, Project, client_environment, find_labelled, inspect
from harness.runtime.limits import Limits
from harness.runtime.local import BUILD_SECONDS

ONLY = "service"  # name of the only service if there is no compose file
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
AllowedPrivileges = Mapping[str, frozenset[str]]
# Variables that prevent Docker Compose from fetching remote includes.
NO_REMOTES = {"COMPOSE_EXPERIMENTAL_GIT_REMOTE": "false", "COMPOSE_EXPERIMENTAL_OCI_REMOTE": "false"}


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """Settings that apply to all sides of a comparison."""

    project: Project
    scratch: Path  # folder that only this user can read, because the files may contain secrets
    limits: Limits
    cpus: Sequence[int] | None  # CPUs that the server may use; None: all CPUs
    allowed: AllowedPrivileges


@dataclass(frozen=True, kw_only=True)
class ContainedSide:
    """A side that runs in containers and shares no file, port or resource with the other sides."""

    side: str
    service: str  # name of the measured service in the model
    model: dict[str, Any]
    session: SharedSettings
    env: Mapping[str, str]
    tags: dict[str, str] = field(default_factory=dict)  # tag of a built image -> image id
    pinned: dict[str, str] = field(default_factory=dict)  # service -> image id

    @property
    def project(self) -> str:
        """Return the name of the side's compose project."""
        return project_of(self.session, self.side)

    def build(self, log: Path) -> BuildRecord:
        """Build or pull all images. Record the image ids, because tags may later refer to different images."""
        log.parent.mkdir(parents=True, exist_ok=True)
        commands = self._commands()
        for command in commands:
            done = process.run(command, seconds=BUILD_SECONDS, env=client_environment(), log=log)
            if done.status != 0:
                reason = f"{shlex.join(command[1:])} failed:\n{process.tail(log)}\nlog: {log}"
                return BuildRecord(status="failed", reason=reason, commands=tuple(map(shlex.join, commands)))
        for name, entry in self.model["services"].items():
            image = inspect("image", entry["image"])
            if image is None:
                return BuildRecord(status="failed", reason=f"services.{name}: image {entry['image']} does not exist")
            self.pinned[name] = str(image["Id"])
            if "build" in entry:
                self.tags[entry["image"]] = str(image["Id"])
                images.record_tag(entry["image"], str(image["Id"]), temporary=True)
        return BuildRecord(status="ok", commands=tuple(map(shlex.join, commands)))

    def _commands(self) -> list[list[str]]:
        services = self.model["services"].values()
        commands = []
        if any("build" in entry for entry in services):
            commands.append(self._compose(self.model, "build"))
        for entry in services:
            if "build" not in entry and inspect("image", entry["image"]) is None:
                platform = ["--platform", entry["platform"]] if entry.get("platform") else []
                commands.append(["docker", "pull", *platform, "--", entry["image"]])
        return commands

    @contextmanager
    def started(self, log: Path) -> Iterator[str]:
        """Start the service and its dependencies. Yield the service's container id. Remove all containers on exit."""
        model = {**self.model, "services": {name: self._start_of(name) for name in self.model["services"]}}
        try:
            up = self._compose(model, "up", "--detach", "--no-build", "--pull", "never", self.service)
            done = process.run(up, seconds=UP_SECONDS, env=client_environment())
            if done.status != 0:
                said = redaction.redacted(done.stdout)
                with safe_write.append(log, private=True) as output:
                    output.write(said.encode())
                raise StartError(f"{self.side}: docker compose failed: {said.strip()[-500:]}\nlog: {log}")
            wanted = {"com.docker.compose.project": self.project, "com.docker.compose.service": self.service}
            if not (container_ids := find_labelled(RESOURCE_KINDS[0], self.session.project.ownership_labels | wanted)):
                raise StartError(f"{self.side}: docker compose created no container for service {self.service}")
            yield container_ids[0]
        finally:
            self.session.project.remove_now(self.project)

    def _start_of(self, name: str) -> dict[str, Any]:
        entry = {key: value for key, value in self.model["services"][name].items() if key != "build"}
        return {**entry, "image": self.pinned.get(name, entry["image"])}

    def _compose(self, model: Mapping[str, Any], *arguments: str) -> list[str]:
        """Write the model to a private file and return a compose command that uses the file."""
        file, variables = (self.session.scratch / f"{self.side}.{ending}" for ending in ("json", "env"))
        write_private(file, json.dumps(model))
        write_private(variables, env_file(self.env))
        return [
            *("docker", "compose", "--ansi", "never", "--project-name", self.project),
            *("--project-directory", str(self.session.scratch), "--env-file", str(variables), "--file", str(file)),
            *arguments,
        ]

    def remove_images(self) -> None:
        """Remove the image tags that this side's build created."""
        for tag, identity in self.tags.items():
            images.remove_tag(tag, identity)


def make_contained_side(side: str, service: Service, folder: Path, top: Path, session: SharedSettings) -> ContainedSide:
    """Return a side that runs in containers. ``top`` is the root of the side's copy of the repository.

    Raises UsageError if tfb rejects a key in the compose file.
    """
    for variable, value in service.env.items():
        if not VARIABLE.fullmatch(variable) or "\0" in value:
            raise UsageError(f"{side}: service.env: {variable!r} has an invalid name or value. Correct it")
    redaction.declare(service.env)
    name = service.service or ONLY
    model = _effective(side, service, folder, top, session)
    for entry in (model.get("services") or {}).values():
        variables = set_only(entry.get("environment"))
        redaction.declare({variable: str(value).replace("$$", "$") for variable, value in variables.items()})
    separation = Separation(
        project=project_of(session, side),
        service=name,
        root=top,
        labels=session.project.ownership_labels,
        limits=session.limits,
        env=service.env,
        allowed=session.allowed,
    )
    try:
        separated = separate_model(model, separation)
    except UsageError as error:
        raise UsageError(f"{side}: {folder / (service.compose or 'tfb.toml')}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{side}: docker compose printed a model of {service.compose} that tfb does not recognise"
        ) from error
    for number, entry in enumerate(separated["services"].values()):
        if "build" in entry:
            entry["image"] = f"{project_of(session, side)}:{number}"
    if session.cpus and not service.compose:
        separated["services"][name]["cpuset"] = ",".join(map(str, session.cpus))
    return ContainedSide(side=side, service=name, model=separated, session=session, env=_of_secrets(model, service.env))


def project_of(session: SharedSettings, side: str) -> str:
    """Return the name of a side's compose project."""
    return f"{session.project.name}-{side}"


def _effective(side: str, service: Service, folder: Path, top: Path, session: SharedSettings) -> dict[str, Any]:
    """Return the model that ``docker compose config`` prints, or a model of one service if there is no compose file."""
    if service.compose:
        return _of_compose(side, service, folder, top, session)
    variables = {"HOST": "0.0.0.0", "PORT": str(service.port), **service.env}  # noqa: S104 - inside the container
    entry: dict[str, Any] = {"environment": {name: _escaped(value) for name, value in variables.items()}}
    if service.image:
        return {"services": {ONLY: {**entry, "image": service.image}}}
    build = {"context": str(folder), "dockerfile": str(service.dockerfile)}
    return {"services": {ONLY: {**entry, "build": build}}}


def _of_compose(side: str, service: Service, folder: Path, top: Path, session: SharedSettings) -> dict[str, Any]:
    file = folder / str(service.compose)
    require_confined(file, top)
    variables = session.scratch / f"{side}.variables"
    write_private(variables, env_file({"PORT": str(service.port), **service.env}))
    options = ["--env-file", str(variables)]
    if (usual := file.parent / ".env").is_file():
        if not confined(usual, top):
            raise UsageError(f"{usual}: the file is outside {top}. Copy it into the repository")
        options = ["--env-file", str(usual), *options]
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", str(service.service)):
        raise UsageError(f"{side}: service.service: {service.service!r} is not a service name")
    command = ["docker", "compose", "--ansi", "never", "--project-name", project_of(session, side), *options]
    command += ["--file", str(file), "config", "--format", "json", str(service.service)]
    environment = {**client_environment(proxies=False), **NO_REMOTES}
    completed = process.run(command, seconds=UP_SECONDS, cwd=file.parent, env=environment)
    start = completed.stdout.find("{\n")  # warnings may precede the JSON document
    if completed.status != 0 or start < 0:
        raise UsageError(f"{side}: docker compose cannot read {file}: {completed.stdout.strip()[-300:]}")
    try:
        model: dict[str, Any] = json.JSONDecoder().raw_decode(completed.stdout[start:])[0]
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{side}: {file}: docker compose printed invalid JSON: {error}") from error
    return model


def _of_secrets(model: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a model's secrets and configs use. ``VALUE_PREFIX`` precedes each variable's name."""
    entries = [entry for kind in ("secrets", "configs") for entry in (model.get(kind) or {}).values()]
    names = {str(entry["environment"]) for entry in entries if entry.get("environment")}
    return {f"{VALUE_PREFIX}{name}": env[name] for name in names & set(env)}


def parse_allow(given: Sequence[str]) -> AllowedPrivileges:
    """Parse ``--allow``, for example ``web=privileged,devices``. Return the compose keys that each service may use.

    The service name "" stands for all services.
    """
    keys_by_service: dict[str, frozenset[str]] = {}
    for argument in given:
        service, equals, keys = argument.rpartition("=")
        for key in filter(None, keys.split(",")):
            if key not in CONSENTS:
                raise UsageError(f"--allow {argument}: unknown key {key!r}; {suggest(key, sorted(CONSENTS))}")
            keys_by_service[service] = keys_by_service.get(service, frozenset()) | {key}
        if not keys or (equals and not service):
            raise UsageError(f"--allow: {argument!r} does not have the form SERVICE=KEY,…, for example web=privileged")
    return keys_by_service


def write_private(file: Path, text: str) -> None:
    """Write a file that only this user can read. Replace an existing file."""
    file.unlink(missing_ok=True)
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as output:
        output.write(text)


def env_file(variables: Mapping[str, str]) -> str:
    """Format variables as an env file for Docker Compose. Escape ``$``, quotes and backslashes."""
    lines = []
    for name, value in variables.items():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
        lines.append(f'{name}="{escaped}"\n')
    return "".join(lines)


def _escaped(value: str) -> str:
    """Escape ``$``, which Docker Compose would otherwise interpolate."""
    return value.replace("$", "$$")
