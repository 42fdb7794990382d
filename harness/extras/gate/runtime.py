"""Runs a service by what it has: a command, an image, a service of a compose file, or an address where it runs."""

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
from harness.extras.gate.container_sides import Contained, SharedSettings, parse_allow
from harness.extras.gate.container_sides import contained as in_containers
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

Services = Mapping[str, tuple[Service, Path]]  # by side, with its folder


@dataclass(kw_only=True)
class Remote(ServerProgram):
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

    services: Services
    contained: Mapping[str, Contained]  # by side

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
        """Start a fresh process or container; of a service that runs already, only wait for its answer."""
        service, _ = self.services[implementation.name]
        safe_write.make_folder(log.parent)
        safe_write.append(log, private=True).close()  # what the service prints is redacted once it has ended
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
            server = Server(implementation=implementation, endpoint=endpoint, meter=Remote(endpoint=endpoint, log=log))
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
                raise StartError("its container has no address: it ended at once, or its network mode is host or none")
            endpoint = Endpoint(host=host, port=service.port)
            server = Server(implementation=implementation, endpoint=endpoint, meter=container)
            server.startup_time = wait_until_ready(server, ready_path, began)
            yield server


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


def choose_services(
    services: Services,
    stack: ExitStack,
    settings: Settings,
    implementations: Sequence[Implementation],
    logs: Path,
    *,
    run_id: str,
) -> ServiceRuntime:
    """Return the runtime of a comparison; the images that it builds are removed when the stack is closed.

    Raises EnvironmentLacksError where a container is wanted and no engine answers, and UsageError for what cannot be
    separated.
    """
    for service, _ in services.values():
        redaction.declare(service.env)
    own = {name for name, (service, _) in services.items() if not service.start and not service.url}
    if own:
        engine_version()
    elif settings.container_memory or settings.container_pids or settings.container_allow:
        raise UsageError("--allow and --test-container-… are about containers: no side runs in one")
    bare = replace(settings, container_memory=None, container_pids=None)
    local = choose_runtime(bare, implementations, logs, run_id=run_id)
    assert isinstance(local, LocalRuntime)  # noqa: S101 - the settings of a session say so
    contained = {}
    if own:
        session = SharedSettings(
            project=Project(run_id=run_id, bridge=False),
            scratch=stack.enter_context(ownership.make_scratch_folder("compose")),
            limits=limits.parse_server_limits(settings.container_memory, settings.container_pids),
            cpus=local.server_cpus,
            allowed=parse_allow(settings.container_allow),
        )
        atexit.register(session.project.remove_all)  # also when an interruption cut short the removal itself
        for name in sorted(own):
            service, folder = services[name]
            contained[name] = in_containers(name, service, folder, copy_of(folder), session)
            stack.callback(contained[name].remove_images)
    inherited = {each.name: getattr(local, each.name) for each in fields(local)} | {"own_scripts": True}
    return ServiceRuntime(**inherited, services=services, contained=contained)


def copy_of(folder: Path) -> Path:
    """Return the folder of a side's copy of the repository, which lies directly in the session's scratch folder."""
    for inner, outer in pairwise([folder.resolve(), *folder.resolve().parents]):
        if outer.name.startswith(ownership.SCRATCH_PREFIX) and outer.parent == Path(tempfile.gettempdir()).resolve():
            return inner
    return folder.resolve()
