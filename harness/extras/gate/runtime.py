"""Runs the sides of a comparison, which are commands, images, compose services or running services."""

import atexit
import ipaddress
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from harness import redaction
from harness.errors import ServerDiedError, StartError, UsageError
from harness.extras.gate.container_sides import ContainedSide, SharedSettings, make_contained_side, parse_allow
from harness.host import ownership
from harness.host.metering import Reading
from harness.plan.discovery import Implementation
from harness.plan.run_settings import Settings
from harness.plan.service import Service
from harness.records import safe_write
from harness.records.run_info import BuildRecord
from harness.runtime import DatabaseAddress, Endpoint, Server, ServerProgram, limits
from harness.runtime.choice import choose_runtime
from harness.runtime.compose import Project, engine_version
from harness.runtime.container import Container
from harness.runtime.local import LocalRuntime
from harness.runtime.readiness import wait_until_ready

Services = Mapping[str, tuple[Service, Path]]  # side -> (service, folder)


@dataclass(kw_only=True)
class RunningService(ServerProgram):
    """A service that is already running, of which only the address is known."""

    endpoint: Endpoint
    log: Path

    def read(self) -> Reading:
        """Return a reading that contains only the time, because the resource usage is unknown."""
        return Reading(at=time.monotonic(), cpu_seconds=0.0, rss=None, run_seconds=None, wait_seconds=None)

    def identity(self) -> str:
        """Return the URL, because tfb cannot detect restarts."""
        return self.endpoint.url("")

    def require_alive(self) -> None:
        """Raise ServerDiedError if the port no longer accepts connections."""
        try:
            socket.create_connection((self.endpoint.host, self.endpoint.port), timeout=5.0).close()
        except OSError as error:
            raise ServerDiedError(
                f"{self.endpoint.url('')} refuses connections: {error.strerror or error}: start the service again"
            ) from error


@dataclass(frozen=True, kw_only=True)
class ServiceRuntime(LocalRuntime):
    """A local runtime that can also run sides in containers."""

    services: Services
    contained: Mapping[str, ContainedSide]  # side -> its containers

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build a side by its command, Dockerfile or compose file."""
        service, _ = self.services[implementation.name]
        if service.url:
            return BuildRecord(status="ok")
        try:
            return (
                super().build(implementation, log) if service.start else self.contained[implementation.name].build(log)
            )
        finally:
            redaction.redact_file(log)

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """Start a new process or container. If the service is already running, only wait for a response."""
        service, _ = self.services[implementation.name]
        safe_write.make_folder(log.parent)
        safe_write.append(log, private=True).close()  # the log is redacted after the service has ended
        began = time.monotonic()
        if service.start:
            try:
                with super().start(implementation, database, log, ready_path=ready_path) as local:
                    yield local
            finally:
                redaction.redact_file(log)
            return
        if service.url:
            where = urlsplit(service.url)
            endpoint = Endpoint(host=where.hostname or "", port=where.port or 80)
            server = Server(
                implementation=implementation, endpoint=endpoint, program=RunningService(endpoint=endpoint, log=log)
            )
            wait_until_ready(server, ready_path, began)
            yield server
            return
        with ExitStack() as stack:
            stack.callback(redaction.redact_file, log)
            identity = stack.enter_context(self.contained[implementation.name].started(log))
            container = Container(implementation.name, identity, log)
            stack.callback(container.close)
            host = container.address()
            if host is None:
                raise StartError(
                    "the container has no address: check whether it exited, or whether network_mode is host or none"
                )
            endpoint = Endpoint(host=host, port=service.port)
            server = Server(implementation=implementation, endpoint=endpoint, program=container)
            server.startup_time = wait_until_ready(server, ready_path, began)
            yield server


def require_private_address(url: str) -> None:
    """Raise UsageError for a public address, because load on other people's servers is an attack."""
    try:
        where = urlsplit(url)
        addresses = {
            info[4][0] for info in socket.getaddrinfo(where.hostname, where.port or 80, proto=socket.IPPROTO_TCP)
        }
    except (OSError, ValueError) as error:
        raise UsageError(f"{url}: the host cannot be resolved: correct the name") from error
    if where.scheme != "http" or where.path.strip("/"):
        raise UsageError(f"{url}: not a base URL: use http://HOST:PORT without a path")
    if any(not ipaddress.ip_address(each).is_private for each in addresses):
        raise UsageError(f"{url} has a public address: use a service on this machine or in a private network")


def choose_services(
    services: Services,
    stack: ExitStack,
    settings: Settings,
    implementations: Sequence[Implementation],
    logs: Path,
    *,
    run_id: str,
) -> ServiceRuntime:
    """Return the runtime of a comparison. Closing the stack removes the images that the runtime builds.

    Raises:
        EnvironmentLacksError: A side needs a container, and no container engine responds.
        UsageError: A side cannot be separated from the other sides.
    """
    for service, _ in services.values():
        redaction.declare(service.env)
    container_sides = {name for name, (service, _) in services.items() if not service.start and not service.url}
    if container_sides:
        engine_version()
    elif settings.container_memory or settings.container_pids or settings.container_allow:
        raise UsageError("--allow and --test-container-… need a side in a container: leave them out")
    bare = replace(settings, container_memory=None, container_pids=None)
    local = choose_runtime(bare, implementations, logs, run_id=run_id)
    assert isinstance(local, LocalRuntime)  # noqa: S101 - the settings of a session say so
    contained = {}
    if container_sides:
        session = SharedSettings(
            project=Project(run_id=run_id, bridge=False),
            scratch=stack.enter_context(ownership.make_scratch_folder("compose")),
            limits=limits.parse_server_limits(settings.container_memory, settings.container_pids),
            cpus=local.server_cpus,
            allowed=parse_allow(settings.container_allow),
        )
        atexit.register(session.project.remove_all)  # needed if an interruption ends the removal too early
        for name in sorted(container_sides):
            service, folder = services[name]
            contained[name] = make_contained_side(name, service, folder, find_repository_copy(folder), session)
            stack.callback(contained[name].remove_images)
    inherited = {each.name: getattr(local, each.name) for each in fields(local)} | {"own_scripts": True}
    return ServiceRuntime(**inherited, services=services, contained=contained)


def find_repository_copy(folder: Path) -> Path:
    """Return the root of a side's copy of the repository, which is directly below the scratch folder."""
    for inner, outer in pairwise([folder.resolve(), *folder.resolve().parents]):
        if outer.name.startswith(ownership.SCRATCH_PREFIX) and outer.parent == Path(tempfile.gettempdir()).resolve():
            return inner
    return folder.resolve()
