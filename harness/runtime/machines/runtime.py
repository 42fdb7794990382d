"""The Docker runtime on several machines: images are built here and sent, each service runs where the flags say."""

import contextlib
import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import EnvironmentLacksError, StartError, TfbError
from harness.host import process
from harness.plan.discovery import Implementation
from harness.records import models as records
from harness.records.models import Build
from harness.runtime import DatabaseAddress, Endpoint, Generator, compose
from harness.runtime.compose import DATABASE, RUN_LABEL, SERVER, UP_SECONDS, Project, client
from harness.runtime.contained import ContainedServer
from harness.runtime.database.contained import DockerDatabase
from harness.runtime.database.embedded import ADMIN, free_port
from harness.runtime.docker import (
    DATABASE_IMAGE,
    GENERATORS,
    LOADGEN_IMAGE,
    NOFILE,
    WRK_IMAGE,
    DockerRuntime,
    image_tag,
)
from harness.runtime.machines import generators, survey
from harness.runtime.machines.container import RemoteConnections, RemoteContainer
from harness.runtime.machines.machine import Machine
from harness.runtime.machines.meter import IMAGE as METER_IMAGE
from harness.runtime.machines.survey import engine_info
from harness.runtime.readiness import first_answer

logger = logging.getLogger("tfb.machines")

METER = "tfb-meter"


class RemoteServer(ContainedServer[RemoteContainer]):
    """An implementation in its container on another machine."""

    def connections(self) -> RemoteConnections:
        """Seen by the reader beside it."""
        return RemoteConnections(self.meter)


class RemoteDatabase(DockerDatabase):
    """The shared PostgreSQL on another machine."""

    def __init__(self, project: Project, address: DatabaseAddress, log: Path, machine: Machine) -> None:
        self._machine = machine
        super().__init__(project, address, log)

    def contained(self) -> RemoteContainer:  # type: ignore[override]  # it answers the same questions
        """Its container there."""
        container = self._project.container(DATABASE)
        return RemoteContainer("PostgreSQL", container, self._log, self._machine, self._project.run_id)


@dataclass(kw_only=True)
class MachinesRuntime(DockerRuntime):
    """Server, database and clients apart; builds here, with this machine's engine."""

    server_machine: Machine
    database_machine: Machine | None  # None: a PostgreSQL that exists
    clients: Sequence[Machine]
    links: ExitStack = field(default_factory=ExitStack)  # closes what reaches the machines
    capacities: tuple[records.MachineLink, ...] = field(default=(), init=False)  # as measured before the run
    _readers: list[RemoteContainer] = field(default_factory=list, init=False)

    @property
    def side_by_side(self) -> bool:
        """One server at a time: the reader and the port are its own."""
        return False

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Each once."""
        others = (self.database_machine,) if self.database_machine else ()
        return tuple({machine.name: machine for machine in (self.server_machine, *others, *self.clients)}.values())

    def prepare(self) -> None:
        """As on one machine, then every image is brought to where it runs."""
        super().prepare()
        self._build(METER, METER_IMAGE, self.logs / "images.log", {})
        wanted = [(METER_IMAGE, machine) for machine in self.machines]
        wanted += [(DATABASE_IMAGE, self.database_machine)] if self.database_machine else []
        wanted += [(WRK_IMAGE, machine) for machine in self.clients]
        for image, machine in wanted:
            machine.send(image)

    def build(self, implementation: Implementation, log: Path) -> Build:
        """Build here, send there."""
        build = super().build(implementation, log)
        if build.status != "ok":
            return build
        try:
            self.server_machine.send(image_tag(implementation))
        except EnvironmentLacksError as error:
            return build.model_copy(update={"status": "failed", "reason": str(error)})
        return build

    @contextmanager
    def database(self) -> Iterator[DockerDatabase]:
        """The shared PostgreSQL on its machine, for the length of the run."""
        machine = self.database_machine
        if machine is None:
            raise EnvironmentLacksError("the run uses a PostgreSQL that exists")
        port = free_port()
        address = DatabaseAddress(
            host=machine.address, port=port, admin_user=ADMIN, admin_password=secrets.token_urlsafe(12)
        )
        variables = {
            "TFB_DATABASE_PORT": str(port),
            "TFB_DATABASE_LISTEN": machine.address,
            "ADMIN_PASSWORD": address.admin_password or "",
        }
        project = replace(self.project, at=machine.at, variables={**self.project.variables, **variables})
        database = None
        try:
            database = RemoteDatabase(project, address, self.logs / "database.log", machine)
            yield database
        finally:
            if database:
                database.close()
            self.remove_all()

    def remove_all(self) -> None:
        """Remove what carries the run's label on every machine that answers."""
        for machine in self.machines:
            try:
                machine.require_reachable()
                replace(self.project, at=machine.at).remove_all()
            except TfbError as error:
                logger.warning("left on %s: %s", machine.name, error)

    @contextmanager
    def start(  # type: ignore[override]  # a server by the same Protocol
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[RemoteServer]:
        """A fresh container on the server's machine that has answered once from here."""
        machine = self.server_machine
        port = self.server_port or free_port()
        more = {
            "TFB_SERVER_IMAGE": image_tag(implementation),
            "TFB_SERVER_HOST": machine.address,
            "TFB_SERVER_PORT": str(port),
            "TFB_SERVER_COMMAND": implementation.entry.docker_cmd or "",
            **self._database_for_server(database),
        }
        project = replace(self.project, at=machine.at)
        log.touch()
        with ExitStack() as stack:
            stack.callback(_quietly, lambda: _remove(machine, project))
            began = time.monotonic()
            try:
                arguments = ("up", "--detach", "--no-build", "--no-deps", "--force-recreate", SERVER)
                compose_log = log.with_suffix(".compose.log")
                done = project.run(*arguments, seconds=UP_SECONDS, log=compose_log, more=more)
                if done.status != 0:
                    machine.require_reachable()
                    raise StartError(  # noqa: TRY301 - told with the rest below
                        f"its container could not be started:\n{process.tail(compose_log)}"
                    )
                container = RemoteContainer(
                    implementation.name, project.container(SERVER), log, machine, self.project.run_id, port=port
                )
                stack.callback(_quietly, container.stop)
                self._readers.append(container)
                stack.callback(self._readers.remove, container)
                endpoint = Endpoint(host=machine.address, port=port)
                server = RemoteServer(implementation, endpoint, container)
                server.first_answer = first_answer(
                    endpoint, ready_path, began, server.require_alive, read=server.meter.read
                )
            except StartError as error:
                raise StartError(f"{implementation.name}: {error}\n{process.tail(log)}\nlog: {log}") from error
            if wait := implementation.entry.wait_before_sending_requests:
                time.sleep(wait)
            yield server

    def generator(  # type: ignore[override]  # several programs that answer as one
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[Generator]:
        """One container on each client, with its share of the load; all begin at the same word.

        With a ``folder`` (an audit's, whose answers are read here) it runs on this machine alone.
        """
        if folder is not None:
            return super().generator(program, arguments, waits_for_go=waits_for_go, folder=folder)
        name = Path(program).name
        if name not in GENERATORS:
            raise EnvironmentLacksError(f"the load generator {name} has no image: it runs on this machine only")
        if name == "loadgen":
            self.own_generator()
            for machine in self.clients:
                machine.send(LOADGEN_IMAGE)
        parts = generators.shares(name, arguments, len(self.clients))
        commands = [
            (machine, self._load_on(machine, name, words, gate=not waits_for_go))
            for machine, words in zip(self.clients, parts, strict=True)
        ]
        return generators.gated(commands, self.machines, tell=not waits_for_go)

    def _load_on(self, machine: Machine, program: str, arguments: Sequence[str], *, gate: bool) -> Sequence[str]:
        limits = self.project.variables
        entry, words = ("--entrypoint", "sh"), ("-c", generators.GATE, program, *arguments)
        return [
            *(client() or "docker", *machine.at, "run", "--interactive", "--rm", "--init", "--pull", "never"),
            *("--network", "host", "--label", f"{RUN_LABEL}={self.project.run_id}"),
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--ulimit", f"nofile={limits.get('TFB_NOFILE', NOFILE)}"),
            *("--cpuset-cpus", limits.get("TFB_WRK_CPUS", "")),
            *((*entry, GENERATORS[program], *words) if gate else (GENERATORS[program], *arguments)),
        ]

    def steal_ticks(self) -> tuple[float, float] | None:
        """Of the server's machine, while a server runs there."""
        if not self._readers:
            return None
        with contextlib.suppress(TfbError):
            return self._readers[-1].reader.steal()
        return None

    def require_machines(self) -> None:
        """Ask every machine now; raises MachineLostError that names the one that does not answer."""
        for machine in self.machines:
            machine.require_reachable()
            machine.require_answer()

    def recovered(self, seconds: float) -> bool:
        """Whether all machines answer, or answer again within the time; what was left there of servers is removed."""
        until = time.monotonic() + seconds
        if not all(machine.back(max(until - time.monotonic(), 0.0)) for machine in self.machines):
            return False
        for machine in self.machines:
            mine = f"label={RUN_LABEL}={self.project.run_id}"
            every = compose.ids("ps", "--all", "--filter", mine, at=machine.at) or []
            kept: list[str] = []  # the database and readers: those that nobody listens to end by themselves
            for other in (f"label=com.docker.compose.service={DATABASE}", f"ancestor={METER_IMAGE}"):
                kept += compose.ids("ps", "--filter", mine, "--filter", other, at=machine.at) or []
            if stray := [found for found in every if found not in kept]:
                machine.docker("container", "rm", "--force", *stray, seconds=60)
        return True

    def survey(self, info: records.RunInfo) -> records.RunInfo:
        """run.json's record with each role's machine, graded, and the links; ``machine`` is the server's."""
        machines = survey.roles(self._roles, self.project.run_id)
        self.capacities = survey.links(self.server_machine, self.clients, self.database_machine, self.project.run_id)
        server = next(each for each in machines if each.name == self.server_machine.name)
        return info.model_copy(update={"machine": server.machine, "machines": machines, "links": self.capacities})

    def to_clients(self) -> dict[str, float]:
        """Bytes a second that the links from the server to each client carry, all at once."""
        names = {machine.name for machine in self.clients}
        server = self.server_machine.name
        return {link.to: link.throughput for link in self.capacities if link.of == server and link.to in names}

    def client_cpus(self) -> int:
        """CPUs of the smallest client."""
        return min(int(str(engine_info(machine).get("NCPU", 1))) for machine in self.clients)

    def versions(self) -> dict[str, str]:
        """As on one machine, and each machine by its role."""
        roles = {f"machine of the {role}": describe(machine) for role, machine in self._roles}
        return {**super().versions(), **roles}

    @property
    def _roles(self) -> list[tuple[str, Machine]]:
        found = [("server", self.server_machine)]
        found += [("database", self.database_machine)] if self.database_machine else []
        return found + [(f"client {number}", machine) for number, machine in enumerate(self.clients, 1)]

    def close(self) -> None:
        """Let go of the machines."""
        with contextlib.suppress(TfbError):
            self.remove_all()
        self.links.close()


def describe(machine: Machine) -> str:
    """Name, address, engine, CPUs, memory and kernel in a line."""
    found = engine_info(machine)
    memory = int(str(found.get("MemTotal", 0))) / 2**30
    return (
        f"{machine.name} ({machine.address}): Docker {found.get('ServerVersion')}, {found.get('NCPU')} CPUs, "
        f"{memory:.1f} GiB, {found.get('OperatingSystem')}, kernel {found.get('KernelVersion')}"
    )


def _remove(machine: Machine, project: Project) -> None:
    """Remove the server's container from a machine that answers; raises MachineLostError."""
    machine.require_reachable()
    project.remove(SERVER)


def _quietly(action: object) -> None:
    """Carry out; a machine that is gone cannot be cleaned, which the log says."""
    assert callable(action)  # noqa: S101 - by construction
    try:
        action()
    except TfbError as error:
        logger.warning("%s", error)
