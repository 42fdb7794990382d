"""Chooses the runtime: Docker where an engine answers, otherwise local; checks that the machine has what it needs."""

import atexit
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import EnvironmentLacksError, UsageError
from harness.host import accounts, leftovers, machine
from harness.plan.discovery import Implementation
from harness.plan.hosts import LOOPBACK, ExistingDatabase
from harness.plan.run_settings import Settings, split_cpus
from harness.plugins import Hook
from harness.provisioning import requirements
from harness.runtime import Runtime, compose, limits, techempower_container
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
    """The runtime that the settings ask for; raises EnvironmentLacksError that says how to mend what is missing."""
    if settings.hosts.uses_remote_machines:
        return REMOTE_RUNTIME.load()(settings, implementations, logs, run_id)
    if uses_local_runtime(settings):
        return make_local_runtime(settings, implementations, logs)
    compose.engine_version()
    return make_docker_runtime(settings, implementations, logs, run_id)


def uses_local_runtime(settings: Settings) -> bool:
    """Whether servers will run as processes of this machine."""
    if settings.hosts.uses_remote_machines or settings.runtime == "docker":
        return False
    try:
        return settings.runtime == "local" or not compose.engine_version()
    except EnvironmentLacksError:
        return True


def make_local_runtime(settings: Settings, implementations: Sequence[Implementation], logs: Path) -> LocalRuntime:
    """The local runtime, after installing what is missing if that is allowed."""
    for flag, value in (
        ("--network-mode", settings.network_mode),
        ("--test-container-memory", settings.container_memory),
        ("--test-container-pids", settings.container_pids),
        ("--allow", settings.allow),
    ):
        if value:
            raise UsageError(f"{flag} is about containers: it needs --runtime docker")
    wanted = requirements.tool_requirements(implementations, **settings.requirements)
    notes = requirements.install_missing(wanted, settings.consent, logs / "install.log")
    found = requirements.tool_requirements(implementations, **settings.requirements)
    still = ", ".join(need.description for need in found if need.tool is None and not need.required_by)
    if still:
        raise EnvironmentLacksError(f"missing: {still}. {'. '.join(notes)}")
    pool = accounts.server_accounts(settings.server_port)
    if pool:
        logger.warning("builds run as root: what an implementation's folder holds may do anything here")
        if why := accounts.account_obstacle():
            logger.warning("servers run as root: %s; start ./tfb as an ordinary user", why)
            pool = None
    server, others = split_cpus(settings.cpuset_cpus, machine.usable_cpus())
    return LocalRuntime(work=logs, server_cpus=server, other_cpus=others, server_port=settings.server_port, pool=pool)


def make_docker_runtime(
    settings: Settings, implementations: Sequence[Implementation], logs: Path, run_id: str, *, prepare: bool = True
) -> DockerRuntime:
    """The Docker runtime, with the images of database and wrk built unless ``prepare`` is off."""
    of_server = limits.parse_server_limits(settings.container_memory, settings.container_pids)
    theirs = [i for i in implementations if techempower_container.is_techempower_folder(i)]
    if settings.network_mode == "host" and theirs:
        raise UsageError(
            f"--network-mode host: {theirs[0].name} has no local block: it asks for tfb-database:5432 and a port of "
            "its own choice, which are this machine's there. Leave the flag out"
        )
    if inside := [i for i in implementations if i.allowed and i not in theirs]:
        raise UsageError(f"--allow {inside[0].name}: it has a local block; the consent is for folders without one")
    # One network for all of a run: figures over a bridge and over the host's own network are not held side by side.
    bridge = settings.network_mode == "bridge" or bool(theirs)
    database = settings.hosts.database if isinstance(settings.hosts.database, ExistingDatabase) else None
    if bridge and database and database.host in LOOPBACK:
        raise UsageError(
            f"--database-host postgresql://{database.host}:{database.port} is the container itself with "
            "--network-mode bridge: give an address of this machine that containers can reach"
        )
    others = ""
    if not settings.hosts.uses_remote_machines:  # other machines have other CPUs: their engines refuse what they lack
        others = ",".join(map(str, split_cpus(settings.cpuset_cpus, machine.usable_cpus())[1] or ()))
    variables = {
        "TFB_SERVER_CPUS": settings.cpuset_cpus or "",
        "TFB_DATABASE_CPUS": others,
        "TFB_WRK_CPUS": others,
        "TFB_SERVER_MEMORY": str(of_server.memory_bytes),
        "TFB_SERVER_PIDS": str(of_server.pids),
        "TFB_DATABASE_MEMORY": str(limits.Limits().memory_bytes),
        "TFB_NOFILE": str(min(machine.raise_open_file_limit(), 1 << 20)),
        **({"TFB_DATABASE_ARGS": f"-c max_connections={techempower_container.DATABASE_CONNECTIONS}"} if theirs else {}),
    }
    runtime = DockerRuntime(
        project=Project(run_id=run_id, bridge=bridge, variables=variables),
        logs=logs,
        server_port=settings.server_port,
        force_rm=settings.force_rm,
        environment=settings.results_environment,
        alone=bool(theirs),
        database_host=database.host if database else None,
    )
    if prepare:
        # Last of all, whatever happened and wherever: also when an interruption cut short the removal itself.
        atexit.register(runtime.close)
        # Containers and networks whose harness was killed would be measured beside.
        found = [leftover for leftover in compose.engine_leftovers() if leftover.certain]
        if found and settings.consent == "yes":
            logger.warning("removed what a killed run had left: %s", ", ".join(map(str, found)))
            for kept in leftovers.remove_leftovers(found):
                logger.warning("could not be removed: %s", kept)
        runtime.prepare()
    return runtime
