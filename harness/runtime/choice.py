"""Chooses the runtime and checks its requirements. The default is Docker if an engine responds."""

import atexit
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import EnvironmentLacksError, UsageError
from harness.host import accounts, leftovers, machine
from harness.plan.hosts import LOOPBACK, ExistingDatabase
from harness.plan.implementation import Implementation
from harness.plan.run_settings import Settings, split_cpus
from harness.plugins import Hook
from harness.provisioning import requirements
from harness.runtime import Runtime, compose, limits, privileges, techempower_container
from harness.runtime.compose import Project
from harness.runtime.docker import DockerRuntime
from harness.runtime.local import LocalRuntime

logger = logging.getLogger("tfb.runtime")
REMOTE_RUNTIME: Hook[Callable[[Settings, Sequence[Implementation], Path, str], Runtime]] = Hook(
    name="choose_remote_runtime", purpose="runs on other machines"
)


def choose_runtime(
    settings: Settings, implementations: Sequence[Implementation], logs: Path, *, run_id: str
) -> Runtime:
    """Return the selected runtime. Raises EnvironmentLacksError, with a remedy, if a requirement is missing."""
    if settings.hosts.uses_remote_machines:
        return REMOTE_RUNTIME.load()(settings, implementations, logs, run_id)
    if uses_local_runtime(settings):
        return make_local_runtime(settings, implementations, logs)
    compose.engine_version()
    return make_docker_runtime(settings, implementations, logs, run_id)


def uses_local_runtime(settings: Settings) -> bool:
    """Return whether servers run as processes on this machine."""
    if settings.hosts.uses_remote_machines or settings.runtime == "docker":
        return False
    try:
        return settings.runtime == "local" or not compose.engine_version()
    except EnvironmentLacksError:
        return True


def uses_bridge(settings: Settings, implementations: Sequence[Implementation]) -> bool:
    """Return whether containers use a bridge network.

    All servers use a bridge if any implementation is a TechEmpower folder, because TechEmpower folders need a bridge.
    """
    return settings.network_mode == "bridge" or any(map(techempower_container.is_techempower_folder, implementations))


def can_run_side_by_side(settings: Settings, implementations: Sequence[Implementation]) -> bool:
    """Return whether the selected runtime can run several servers at once. The runtime need not exist yet."""
    if settings.server_port is not None or settings.hosts.uses_remote_machines:
        return False
    return uses_local_runtime(settings) or not uses_bridge(settings, implementations)


def make_local_runtime(settings: Settings, implementations: Sequence[Implementation], logs: Path) -> LocalRuntime:
    """Return the local runtime. Install missing tools if the user consents."""
    for flag, value in (
        ("--network-mode", settings.network_mode),
        ("--test-container-memory", settings.container_memory),
        ("--test-container-pids", settings.container_pids),
    ):
        if value:
            raise UsageError(f"{flag} applies to containers only: add --runtime docker, or remove the flag")
    privileges.require_usable(implementations, "local")
    required = requirements.tool_requirements(implementations, **settings.requirements)
    notes = requirements.install_missing(required, settings.consent, logs / "install.log")
    required = requirements.tool_requirements(implementations, **settings.requirements)
    missing = ", ".join(each.description for each in required if each.tool is None and not each.required_by)
    if missing:
        raise EnvironmentLacksError(f"missing: {missing}. {'. '.join(notes)}")
    pool = accounts.server_accounts(settings.server_port)
    if pool:
        logger.warning("builds run as root: an implementation's build commands have full access to this machine")
        if reason := accounts.account_obstacle():
            logger.warning("servers run as root: %s; run ./tfb as an ordinary user", reason)
            pool = None
    server, others = split_cpus(settings.cpuset_cpus, machine.usable_cpus())
    return LocalRuntime(work=logs, server_cpus=server, other_cpus=others, server_port=settings.server_port, pool=pool)


def make_docker_runtime(
    settings: Settings, implementations: Sequence[Implementation], logs: Path, run_id: str, *, prepare: bool = True
) -> DockerRuntime:
    """Return the Docker runtime.

    If ``prepare`` is set, first remove the containers, networks and volumes of killed runs, if the user consents. Then
    build the PostgreSQL and wrk images.
    """
    server_limits = limits.parse_server_limits(settings.container_memory, settings.container_pids)
    techempower = [i for i in implementations if techempower_container.is_techempower_folder(i)]
    if settings.network_mode == "host" and techempower:
        raise UsageError(
            f"--network-mode host: {techempower[0].name} has no local block, so it must run on a bridge network, where "
            "it finds PostgreSQL at tfb-database:5432 and no other program uses its port. Remove the flag"
        )
    privileges.require_usable(implementations, "docker", own_kernel=not settings.hosts.uses_remote_machines)
    privileges.warn_without_consent(implementations)
    # All servers of a run use the same network, because results with and without a bridge are not comparable.
    bridge = uses_bridge(settings, implementations)
    database = settings.hosts.database if isinstance(settings.hosts.database, ExistingDatabase) else None
    if bridge and database and database.host in LOOPBACK:
        raise UsageError(
            f"--database-host postgresql://{database.host}:{database.port}: with --network-mode bridge, this address "
            "refers to the container itself. Use an address of this machine that containers can reach"
        )
    other_cpus = ""
    if not settings.hosts.uses_remote_machines:  # a remote machine's CPUs are unknown; its engine checks --cpuset-cpus
        other_cpus = ",".join(map(str, split_cpus(settings.cpuset_cpus, machine.usable_cpus())[1] or ()))
    variables = {
        "TFB_SERVER_CPUS": settings.cpuset_cpus or "",
        "TFB_DATABASE_CPUS": other_cpus,
        "TFB_WRK_CPUS": other_cpus,
        "TFB_SERVER_MEMORY": str(server_limits.memory_bytes),
        "TFB_SERVER_PIDS": str(server_limits.pids),
        "TFB_DATABASE_MEMORY": str(limits.Limits().memory_bytes),
        "TFB_NOFILE": str(min(machine.raise_open_file_limit(), 1 << 20)),
        **(
            {"TFB_DATABASE_ARGS": f"-c max_connections={techempower_container.DATABASE_CONNECTIONS}"}
            if techempower
            else {}
        ),
    }
    runtime = DockerRuntime(
        project=Project(run_id=run_id, bridge=bridge, variables=variables),
        logs=logs,
        server_port=settings.server_port,
        force_rm=settings.force_rm,
        environment=settings.results_environment,
        sequential=bool(techempower),
        database_host=database.host if database else None,
    )
    if prepare:
        atexit.register(runtime.close)  # remove resources even if a signal interrupts normal clean-up
        # Containers of a killed run may still be running and would disturb the measurement.
        removable = [leftover for leftover in compose.engine_leftovers() if leftover.is_certain]
        if removable and settings.consent == "yes":
            logger.warning("removing leftovers from a killed run: %s", ", ".join(map(str, removable)))
            for remaining in leftovers.remove_leftovers(removable):
                logger.warning("cannot remove a leftover: %s", remaining)
        runtime.prepare()
    return runtime
