"""The Docker runtime for several machines. It builds images on this machine and sends them to the other machines."""

import atexit
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

from harness.errors import EnvironmentLacksError, StartError, TfbError, UsageError
from harness.extras.deployments import distributed_load, survey
from harness.extras.deployments.connected_machine import ConnectedMachine, reached
from harness.extras.deployments.remote_container import METER_IMAGE, RemoteContainer
from harness.extras.deployments.survey import METER
from harness.host import process
from harness.plan.hosts import Host, Hosts
from harness.plan.implementation import Implementation
from harness.plan.run_settings import Settings
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import safe_write
from harness.records.run_info import BuildRecord, RunInfo
from harness.runtime import DatabaseAddress, Endpoint, RunningGenerator, Server, compose
from harness.runtime.choice import make_docker_runtime
from harness.runtime.compose import SERVER
from harness.runtime.database.embedded import free_port
from harness.runtime.database.in_container import DockerDatabase
from harness.runtime.docker import DATABASE_IMAGE, GENERATORS, OWN_GENERATORS, WRK_IMAGE, DockerRuntime, image_tag
from harness.runtime.readiness import wait_until_ready

logger = logging.getLogger("tfb.machines")


def choose(settings: Settings, implementations: Sequence[Implementation], logs: Path, run_id: str) -> "MachinesRuntime":
    """Connect to the machines and return the runtime.

    Raises UsageError for incompatible flags, and EnvironmentLacksError or MachineLostError for unusable machines.
    """
    refuse(settings)
    compose.engine_version()
    docker_runtime = make_docker_runtime(settings, implementations, logs, run_id, prepare=False)
    safe_write.make_folder(logs)
    links = ExitStack()
    atexit.register(links.close)
    runtime = MachinesRuntime(
        **{each.name: getattr(docker_runtime, each.name) for each in fields(docker_runtime) if each.init},
        hosts=settings.hosts,
        reached={host: links.enter_context(reached(host, logs)) for host in settings.hosts.machines},
        links=links,
    )
    atexit.register(runtime.close)
    runtime.prepare()
    return runtime


def refuse(settings: Settings) -> None:
    """Raise UsageError for flags that do not work with other machines."""
    open_loop = any(TEST_TYPES[name].open_loop for name in settings.test_types)
    searches = settings.profile.design == "search"
    for flag, is_set, reason in (
        ("--runtime local", settings.runtime == "local", "tfb starts programs on other machines only through Docker"),
        ("--network-mode bridge", settings.network_mode == "bridge", "a bridge network does not span machines"),
        ("--type order", open_loop, "tfb generates arrivals on a single machine only"),
        ("a profile that searches for capacities", searches, "tfb generates open loops on a single machine only"),
    ):
        if is_set:
            raise UsageError(f"{flag} cannot be used with other machines: {reason}")


@dataclass(kw_only=True)
class MachinesRuntime(DockerRuntime):
    """A runtime that can run the server, the database and the load generators on separate machines."""

    hosts: Hosts
    reached: Mapping[Host, ConnectedMachine]
    links: ExitStack  # closes the connections to the machines

    @property
    def side_by_side(self) -> bool:
        """False, because this runtime runs only a single server at a time."""
        return False

    @property
    def server_machine(self) -> ConnectedMachine:
        """Return the machine that runs the servers."""
        return self.reached[self.hosts.server]

    @property
    def database_machine(self) -> ConnectedMachine | None:
        """Return the machine that runs PostgreSQL, or None if the run uses an existing PostgreSQL server."""
        return self.reached[self.hosts.database] if isinstance(self.hosts.database, Host) else None

    @property
    def clients(self) -> tuple[ConnectedMachine, ...]:
        """Return the machines that run the load generators."""
        return tuple(self.reached[client] for client in self.hosts.clients)

    def prepare(self) -> None:
        """Build the images as on a single machine. Then send each image to the machines that run it."""
        super().prepare()
        self._build(METER, METER_IMAGE, self.logs / "images.log", {})
        for machine in self.reached.values():
            machine.send(METER_IMAGE)
        if self.database_machine:
            self.database_machine.send(DATABASE_IMAGE)
        for machine in self.clients:
            machine.send(WRK_IMAGE)

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build the image on this machine and send it to the server's machine."""
        build = super().build(implementation, log)
        if build.status == "ok":
            self.server_machine.send(image_tag(implementation))
        return build

    def database(self) -> AbstractContextManager[DockerDatabase]:
        """Return a context manager that runs the shared PostgreSQL server on the database machine."""
        machine = self.database_machine
        if machine is None:
            raise EnvironmentLacksError("the run uses an existing PostgreSQL server, so tfb cannot start one")
        make_container = partial(RemoteContainer, machine=machine, run_id=self.project.run_id)
        return self._database(machine.address, replace(self.project, engine=machine.engine), make_container)

    def remove_all(self) -> None:
        """Remove all resources with the run's label from every reachable machine."""
        for machine in self.reached.values():
            _quietly(machine, replace(self.project, engine=machine.engine).remove_all)

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """Start a fresh container on the server's machine. Yield the server after it has responded to this machine."""
        machine, port = self.server_machine, self.server_port or free_port()
        project = replace(self.project, engine=machine.engine)
        variables = {**self._variables(implementation, database, port), "TFB_SERVER_HOST": machine.address}
        safe_write.append(log, private=True).close()  # the log must exist before the container starts
        with ExitStack() as stack:
            stack.callback(_quietly, machine, lambda: project.remove(SERVER))
            started_at = time.monotonic()
            try:
                container_id = self._up(
                    implementation, project, variables, log.with_suffix(".compose.log"), project.name
                )
                run_id = self.project.run_id
                container = RemoteContainer(implementation.name, container_id, log, machine, run_id, port=port)
                stack.callback(_quietly, machine, container.stop)
                endpoint = Endpoint(host=machine.address, port=port)
                server = Server(implementation=implementation, endpoint=endpoint, program=container)
                server.startup_time = wait_until_ready(server, ready_path, started_at)
            except StartError as error:
                machine.require_reachable()
                raise StartError(f"{implementation.name}: {error}\n{process.tail(log)}\nlog: {log}") from error
            yield server

    def generator(  # type: ignore[override]  # several programs with the interface of a single generator
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[RunningGenerator]:
        """Start a load generator on each client, and divide the load among the generators.

        If ``folder`` is given, start a single generator on this machine instead.
        """
        if folder is not None:
            return super().generator(program, arguments, waits_for_go=waits_for_go, folder=folder)
        name = Path(program).name
        if name in OWN_GENERATORS:
            self.own_generator(name)
            for machine in self.clients:
                machine.send(GENERATORS[name])
        run = ("run", "--interactive", "--rm", "--init", "--pull", "never", "--network", "host")
        entrypoint, script = (
            ((), ()) if waits_for_go else (("--entrypoint", "sh"), ("-c", distributed_load.WAIT_FOR_GO, name))
        )
        docker_arguments = (
            *run,
            *self.project.labels(),
            *self.limits(),
            *entrypoint,
            self.image_id(GENERATORS[name]),
            *script,
        )
        client_shares = distributed_load.shares(name, arguments, len(self.clients))
        commands = [
            (machine, part, machine.command(*docker_arguments, *part.arguments))
            for machine, part in zip(self.clients, client_shares, strict=True)
        ]
        return distributed_load.start_generators(commands, self.reached.values(), reports_start=not waits_for_go)

    def require_machines(self) -> None:
        """Raise MachineLostError if a machine does not respond. The error names the machine."""
        for machine in self.reached.values():
            machine.require_response()

    def survey(self, info: RunInfo) -> RunInfo:
        """Return ``info`` with each machine's facts and grade, and with the measured links between machines."""
        run_id = self.project.run_id
        machines = survey.roles(self.hosts, self.reached, run_id)
        links = survey.measure_links(self.hosts, self.reached, run_id)
        return info.model_copy(update={"machine": machines[0].machine, "machines": machines, "links": links})

    def close(self) -> None:
        """Remove all remaining resources of the run, and close the connections to the machines."""
        try:
            super().close()
        finally:
            self.links.close()


def _quietly(machine: ConnectedMachine, action: Callable[[], None]) -> None:
    """Perform a clean-up action. Log a warning if the machine is lost or the action fails."""
    try:
        machine.require_reachable()
        action()
    except TfbError as error:
        logger.warning("resources remain on %s: %s", machine.name, error)
