"""Runs a service by what it has: a command, an image, a service of a compose file, or an address where it runs."""

import atexit
import ipaddress
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from harness.errors import ServerDiedError, StartError, UsageError
from harness.host import process
from harness.host.metering import Reading
from harness.plan.config import Settings
from harness.plan.discovery import Implementation
from harness.plan.service import Service
from harness.records import safe_write
from harness.records.models import Build
from harness.runtime import DatabaseAddress, Endpoint, Program, Server
from harness.runtime.choice import choose
from harness.runtime.compose import UP_SECONDS, Project, docker, engine, ids, inspect
from harness.runtime.container import Container
from harness.runtime.local import BUILD_SECONDS, LocalRuntime
from harness.runtime.readiness import startup_time

OVERRIDE = "tfb.compose.yaml"  # in the side's own folder
Services = Mapping[str, tuple[Service, Path]]  # by side, with its folder


@dataclass(kw_only=True)
class Remote(Program):
    """A service that runs already: where it answers is all that is known of it."""

    endpoint: Endpoint
    log: Path

    def read(self) -> Reading:
        """The time, and no CPU."""
        return Reading(at=time.monotonic(), cpu_seconds=0.0, rss=None, run_seconds=None, wait_seconds=None)

    def identity(self) -> str:
        """Always the same: nothing tells."""
        return self.endpoint.url("")

    def require_alive(self) -> None:
        """Raises ServerDiedError where nobody listens any more."""
        try:
            socket.create_connection((self.endpoint.host, self.endpoint.port), timeout=5.0).close()
        except OSError as error:
            raise ServerDiedError(
                f"{self.endpoint.url('')} is gone: {error.strerror or error}: start it again"
            ) from error


@dataclass(frozen=True, kw_only=True)
class ServiceRuntime(LocalRuntime):
    """Local processes, and beside them containers of an engine on this machine."""

    project: Project
    services: Services

    def build(self, implementation: Implementation, log: Path) -> Build:
        """By its command, Dockerfile or compose file."""
        service, folder = self.services[implementation.name]
        if service.start:
            return super().build(implementation, log)
        if service.compose:
            command = self._compose(implementation.name, "build")
        elif service.dockerfile:
            image = self.image(implementation.name)
            command = ["docker", "build", "--tag", image, "--file", service.dockerfile, "."]
        elif service.image and inspect("image", service.image) is None:
            command = ["docker", "pull", service.image]
        else:
            return Build(status="ok")
        safe_write.make_folder(log.parent)
        done = process.run(command, seconds=BUILD_SECONDS, cwd=folder, env=dict(os.environ), log=log)
        reason = f"{' '.join(command[1:])} failed:\n{process.tail(log)}\nlog: {log}" if done.status else ""
        return Build(status="failed" if reason else "ok", reason=reason, commands=(" ".join(command),))

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """A fresh process or container; of one that runs already, only that it answers."""
        service, _ = self.services[implementation.name]
        safe_write.make_folder(log.parent)
        began = time.monotonic()
        if service.start:
            with super().start(implementation, database, log, ready_path=ready_path) as local:
                yield local
            return
        if service.url:
            where = urlsplit(service.url)
            endpoint = Endpoint(host=where.hostname or "", port=where.port or 80)
            server = Server(implementation=implementation, endpoint=endpoint, meter=Remote(endpoint=endpoint, log=log))
            startup_time(server, ready_path, began)
            yield server
            return
        with ExitStack() as stack:
            identity = self._contained(implementation.name, service, log, stack)
            container = Container(implementation.name, identity, log)
            stack.callback(container.close)
            host = container.address()
            if host is None:
                raise StartError("its container has no address: it ended at once, or its network mode is host or none")
            endpoint = Endpoint(host=host, port=service.port)
            server = Server(implementation=implementation, endpoint=endpoint, meter=container)
            server.startup_time = startup_time(server, ready_path, began)
            yield server

    def _contained(self, side: str, service: Service, log: Path, stack: ExitStack) -> str:
        """The id of a container that has been started; removed on the way out."""
        _, folder = self.services[side]
        if service.compose and service.service:
            down = self._compose(side, "down", "--volumes", "--timeout", "5")
            stack.callback(process.run, down, seconds=UP_SECONDS, cwd=folder)
            environment = {**os.environ, "PORT": str(service.port), **service.env}
            for words in (("up", "--detach", "--no-build"), ("ps", "--all", "--quiet")):
                command = self._compose(side, *words, service.service)
                done = process.run(command, seconds=UP_SECONDS, cwd=folder, env=environment)
                if done.status != 0:
                    safe_write.replace(log, done.stdout.encode(), durable=False)
                    said = f"docker compose failed: {done.stdout.strip()[-500:]}\nlog: {log}"
                    raise StartError(f"{side}: {said}")
            if not (found := re.findall(r"^[0-9a-f]{12,64}$", done.stdout, re.MULTILINE)):  # beside warnings
                raise StartError(f"{side}: compose made no container for {service.service}")
            return str(found[-1])
        variables = {"HOST": "0.0.0.0", "PORT": str(service.port), **service.env}  # noqa: S104 - inside
        environment_flags = [word for item in variables.items() for word in ("--env", "=".join(item))]
        limits = ("--cpuset-cpus", ",".join(map(str, self.server_cpus))) if self.server_cpus else ()
        flags = (*self.project.labels(), *limits, *environment_flags)
        done = docker("run", "--detach", *flags, service.image or self.image(side), seconds=UP_SECONDS)
        if done.status != 0:
            raise StartError(f"{side}: its container could not be started: {done.stdout.strip()[-500:]}")
        identity = done.stdout.strip().splitlines()[-1]
        stack.callback(docker, "container", "rm", "--force", "--volumes", identity)
        return identity

    def _compose(self, side: str, *words: str) -> list[str]:
        """A command for the side's own project; its second file is written once.

        Three of them stand side by side: no port and no name of the machine's; labels say whose they are.
        """
        service, folder = self.services[side]
        file, override = folder / str(service.compose), folder / OVERRIDE
        docker_compose = ["docker", "compose", "--ansi", "never", "--file", str(file)]
        if not override.is_file():
            read = [*docker_compose, "config", "--format", "json"]
            listed = process.run(read, seconds=UP_SECONDS, cwd=file.parent)
            if listed.status != 0:
                raise UsageError(f"{file}: docker compose cannot read it: {listed.stdout.strip()[-300:]}")
            known = json.loads(listed.stdout[listed.stdout.index("{\n") :])  # warnings may come first
            labels = json.dumps(self.project.labels()[1::2])
            lines = ["services:"]
            for name, own_keys in known["services"].items():
                own = ["ports: !reset []", "container_name: !reset null", f"labels: {labels}"]
                own += [f"image: {self.image(side)}-{name}"] if "build" in own_keys else []  # of this side alone
                lines += [f"  {name}:", *(f"    {key}" for key in own)]
            lines += ["networks:", f"  default: {{labels: {labels}}}", ""]
            override.write_text("\n".join(lines), encoding="utf-8")
        return [*docker_compose, "--file", str(override), "--project-name", f"{self.project.name}-{side}", *words]

    def image(self, side: str) -> str:
        """The name of what a side's Dockerfile makes."""
        return f"{self.project.name}-{side}"


def require_own(url: str) -> None:
    """Raises UsageError for an address of others: a load on these is an attack."""
    try:
        where = urlsplit(url)
        found = {info[4][0] for info in socket.getaddrinfo(where.hostname, where.port or 80, proto=socket.IPPROTO_TCP)}
    except (OSError, ValueError) as error:
        raise UsageError(f"{url}: there is no such host") from error
    if where.scheme != "http" or where.path.strip("/"):
        raise UsageError(f"{url}: http://HOST:PORT, without a path")
    if any(not ipaddress.ip_address(each).is_private for each in found):
        raise UsageError(f"{url} is no address of this machine or a private network: put load on what is yours alone")


def _remove_images(project: str) -> None:
    for image in ids("image", "ls", "--filter", f"reference={project}-*") or ():
        docker("image", "rm", "--force", image)


def choose_services(
    services: Services,
    stack: ExitStack,
    settings: Settings,
    implementations: Sequence[Implementation],
    logs: Path,
    *,
    run_id: str,
) -> ServiceRuntime:
    """Local; raises EnvironmentLacksError where a container is wanted and no engine answers.

    The images that are built go when the stack is closed.
    """
    if any(not service.start and not service.url for service, _ in services.values()):
        engine()
    local = choose(settings, implementations, logs, run_id=run_id)
    assert isinstance(local, LocalRuntime)  # noqa: S101 - the settings of a session say so
    own = {each.name: getattr(local, each.name) for each in fields(local)} | {"own_scripts": True}
    project = Project(run_id=run_id, bridge=False)
    runtime = ServiceRuntime(**own, project=project, services=services)
    if any(not service.start and not service.url for service, _ in services.values()):
        atexit.register(project.remove_all)  # also when an interruption cut short the removal itself
        stack.callback(_remove_images, project.name)
    return runtime
