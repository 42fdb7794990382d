"""Runs the sides of a comparison (base, control copy and head).

A side is a command, an image, a compose service, or a service that is already running.
"""

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
from harness.extras.gate.login import log_in
from harness.host import ownership
from harness.host.metering import Reading
from harness.host.unix_socket import UnixSocket
from harness.plan.implementation import Implementation
from harness.plan.run_settings import Settings
from harness.plan.service import Service
from harness.records import confined, safe_write
from harness.records.run_info import BuildRecord
from harness.runtime import DatabaseAddress, Endpoint, Server, ServerProgram, limits
from harness.runtime.choice import choose_runtime
from harness.runtime.compose import Project, engine_version
from harness.runtime.container import Container
from harness.runtime.local import LOOPBACK, LocalProgram, LocalRuntime
from harness.runtime.readiness import wait_until_ready

Services = Mapping[str, tuple[Service, Path]]  # side -> (service, folder)


@dataclass(kw_only=True)
class RunningService(ServerProgram):
    """A service that is already running. tfb knows only its address."""

    endpoints: tuple[Endpoint, ...]  # addresses at which the service may respond
    log: Path

    def read(self) -> Reading:
        """Return a reading that contains only the time, because tfb cannot see the service's resource usage."""
        return Reading(read_at=time.monotonic(), cpu_seconds=0.0, rss=None, run_seconds=None, wait_seconds=None)

    def identity(self) -> str:
        """Return the URL as a constant identity: tfb cannot detect that an already running service has restarted."""
        return self.endpoints[0].url("")

    def require_alive(self) -> None:
        """Raise ServerDiedError if no address accepts connections."""
        failure: OSError | None = None
        for endpoint in self.endpoints:
            try:
                endpoint.connect(5.0).close()
            except OSError as error:
                failure = failure or error
            else:
                return
        raise ServerDiedError(
            f"{self.endpoints[0].url('')} refuses connections: {failure}: start the service again"
        ) from failure


@dataclass(frozen=True, kw_only=True)
class ServiceRuntime(LocalRuntime):
    """A local runtime that can also run sides in containers."""

    services: Services
    contained_sides: Mapping[str, ContainedSide]  # side -> containers

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build a side with its command, Dockerfile or compose file."""
        service, _ = self.services[implementation.name]
        if service.url:
            return BuildRecord(status="ok")
        try:
            return (
                super().build(implementation, log)
                if service.start
                else self.contained_sides[implementation.name].build(log)
            )
        finally:
            redaction.redact_file(log)

    def endpoints(self, implementation: Implementation, port: int, program: LocalProgram) -> Sequence[Endpoint]:
        """Return the addresses at which a side's server may listen."""
        service, _ = self.services[implementation.name]
        usual = [replace(each, tls=service.tls) for each in super().endpoints(implementation, port, program)]
        if not service.listen:
            return usual
        own = UnixSocket(*self.socket_place(implementation), program.is_own)
        return [replace(usual[0], name="localhost", unix=own)]

    def socket_place(self, implementation: Implementation) -> tuple[Path, str]:
        """Return the folder that contains a side's Unix socket, and the socket's path relative to this folder."""
        service, _ = self.services[implementation.name]
        return implementation.folder, (service.listen or "").removeprefix("unix:")

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """Start a process or container, or wait for a service that is already running.

        Then log in, if tfb.toml declares a login.
        """
        service, _ = self.services[implementation.name]
        with self._started(implementation, database, log, ready_path=ready_path) as server:
            if service.login:
                log_in(server, service.login)
            yield server

    @contextmanager
    def _started(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        service, _ = self.services[implementation.name]
        safe_write.make_folder(log.parent)
        # Make the log private, because tfb redacts secrets only after the side has stopped.
        safe_write.append(log, private=True).close()
        started_at = time.monotonic()
        if service.listen:  # remove a socket that a killed process left, so that the server can listen
            try:
                confined.remove_socket(*self.socket_place(implementation))
            except OSError as error:
                raise StartError(
                    f"service.listen: tfb cannot use {service.listen}: {error}: choose a path that does not exist"
                ) from error
        if service.start:
            try:
                with super().start(implementation, database, log, ready_path=ready_path) as local:
                    yield local
            finally:
                redaction.redact_file(log)
            return
        if service.url:
            endpoints: Sequence[Endpoint] = resolve_private_url(service.url)
            program = RunningService(endpoints=tuple(endpoints), log=log)
            server = Server(implementation=implementation, endpoint=endpoints[0], program=program)
            wait_until_ready(server, ready_path, started_at, endpoints=endpoints)
            program.endpoints = (server.endpoint,)
            yield server
            return
        with ExitStack() as stack:
            stack.callback(redaction.redact_file, log)
            identity = stack.enter_context(self.contained_sides[implementation.name].started(log))
            container = Container(implementation.name, identity, log)
            stack.callback(container.close)
            host = container.address()
            if host is None:
                raise StartError(
                    "the container has no address: check whether it exited, or whether network_mode is host or none"
                )
            endpoint = Endpoint(host=host, port=service.port, tls=service.tls)
            server = Server(implementation=implementation, endpoint=endpoint, program=container)
            server.startup_time = wait_until_ready(server, ready_path, started_at)
            yield server


def resolve_private_url(url: str) -> tuple[Endpoint, ...]:
    """Return a running service's addresses.

    Raises UsageError for a public address, because tfb must not put load on third parties' servers.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        infos = socket.getaddrinfo(parts.hostname, port, proto=socket.IPPROTO_TCP)
        addresses = dict.fromkeys([str(info[4][0]) for info in infos])
        if parts.hostname == "localhost":  # add both loopback addresses, because a resolver may return only one of them
            addresses |= dict.fromkeys(LOOPBACK)
    except (OSError, ValueError) as error:
        raise UsageError(f"{url}: cannot resolve the host: correct the host name") from error
    if parts.scheme not in ("http", "https") or parts.path.strip("/"):
        raise UsageError(f"{url}: not a base URL: use http://HOST:PORT without a path")
    if any(not ipaddress.ip_address(each).is_private for each in addresses):
        raise UsageError(f"{url} has a public address: use a service on this machine or on a private network")
    return tuple(Endpoint(host=host, port=port, name=parts.netloc, tls=parts.scheme == "https") for host in addresses)


def choose_services(
    services: Services,
    stack: ExitStack,
    settings: Settings,
    implementations: Sequence[Implementation],
    logs: Path,
    *,
    run_id: str,
) -> ServiceRuntime:
    """Return the runtime for a comparison. Closing ``stack`` removes the images that the runtime builds.

    Raises EnvironmentLacksError if no container engine responds, or UsageError if tfb rejects a compose file.
    """
    for service, _ in services.values():
        redaction.declare(service.env | service.build_env)
    container_sides = {name for name, (service, _) in services.items() if not service.start and not service.url}
    if container_sides:
        engine_version()
    elif settings.container_memory or settings.container_pids or settings.container_allow:
        raise UsageError("--allow and --test-container-… apply only to sides in containers: remove them")
    bare = replace(settings, container_memory=None, container_pids=None)
    local = choose_runtime(bare, implementations, logs, run_id=run_id)
    assert isinstance(local, LocalRuntime)  # noqa: S101 - sessions set runtime to "local"
    contained_sides = {}
    if container_sides:
        session = SharedSettings(
            project=Project(run_id=run_id, bridge=False),
            scratch=stack.enter_context(ownership.make_scratch_folder("compose")),
            limits=limits.parse_server_limits(settings.container_memory, settings.container_pids),
            cpus=local.server_cpus,
            allowed=parse_allow(settings.container_allow),
        )
        atexit.register(session.project.remove_all)  # in case an interrupt cuts the normal removal short
        for name in sorted(container_sides):
            service, folder = services[name]
            contained_sides[name] = make_contained_side(name, service, folder, find_repository_copy(folder), session)
            stack.callback(contained_sides[name].remove_images)
    inherited = {each.name: getattr(local, each.name) for each in fields(local)} | {"own_scripts": True}
    return ServiceRuntime(**inherited, services=services, contained_sides=contained_sides)


def find_repository_copy(folder: Path) -> Path:
    """Return the root of the repository copy that contains ``folder``, or ``folder`` if it is not in a copy."""
    for inner, outer in pairwise([folder.resolve(), *folder.resolve().parents]):
        if outer.name.startswith(ownership.SCRATCH_PREFIX) and outer.parent == Path(tempfile.gettempdir()).resolve():
            return inner
    return folder.resolve()
