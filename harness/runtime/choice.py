"""Chooses the runtime: Docker where an engine answers, otherwise local; checks that the machine has what it needs."""

from collections.abc import Sequence
from pathlib import Path

from harness import machine, provision
from harness.config import Settings, parse_cpus
from harness.discovery import Implementation
from harness.errors import EnvironmentLacksError, UsageError
from harness.runtime import Runtime
from harness.runtime.compose import Project, engine
from harness.runtime.docker import DockerRuntime, default_bridge
from harness.runtime.local import LocalRuntime


def choose(settings: Settings, implementations: Sequence[Implementation], logs: Path, *, run_id: str) -> Runtime:
    """The runtime that the settings ask for; raises EnvironmentLacksError that says how to mend what is missing."""
    if settings.runtime == "local":
        return local(settings, implementations, logs)
    try:
        engine()
    except EnvironmentLacksError:
        if settings.runtime == "docker":
            raise
        return local(settings, implementations, logs)
    return containers(settings, logs, run_id)


def local(settings: Settings, implementations: Sequence[Implementation], logs: Path) -> LocalRuntime:
    """The local runtime, after installing what is missing if that is allowed."""
    for flag, value in (
        ("--network-mode", settings.network_mode),
        ("--test-container-memory", settings.container_memory),
    ):
        if value:
            raise UsageError(f"{flag} is about containers: it needs --runtime docker")
    own_database = settings.database_host is None
    wanted = provision.needs(implementations, own_database=own_database)
    notes = provision.install_missing(wanted, settings.consent, logs / "install.log")
    still = [
        need.missing
        for need in provision.needs(implementations, own_database=own_database)
        if need.tool is None and not need.wanted_by
    ]
    if still:
        raise EnvironmentLacksError(f"missing: {', '.join(still)}. {' '.join(notes)}")
    usable = machine.usable_cpus()
    return LocalRuntime(
        work=logs,
        server_cpus=parse_cpus(settings.cpuset_cpus or settings.profile.server_cpus, usable, "--cpuset-cpus"),
        other_cpus=parse_cpus(settings.profile.other_cpus, usable, "other_cpus"),
        server_port=settings.server_port,
    )


def containers(settings: Settings, logs: Path, run_id: str) -> DockerRuntime:
    """The Docker runtime, with the images of database and wrk built."""
    if settings.order == "duet":
        raise UsageError("--order duet runs two servers at once: it needs --runtime local")
    others = settings.profile.other_cpus or ""
    bridge = settings.network_mode == "bridge" or (settings.network_mode is None and default_bridge())
    variables = {
        "TFB_SERVER_CPUS": settings.cpuset_cpus or settings.profile.server_cpus or "",
        "TFB_DATABASE_CPUS": others,
        "TFB_WRK_CPUS": others,
        "TFB_SERVER_MEMORY": settings.container_memory or "0",
        "TFB_NOFILE": str(min(machine.raise_nofile(), 1 << 20)),
    }
    levels = settings.profile.levels
    runtime = DockerRuntime(
        project=Project(run_id=run_id, bridge=bridge, variables=variables),
        logs=logs,
        server_port=settings.server_port,
        connections=max(*levels.concurrency, *levels.pipeline_concurrency, levels.query_concurrency),
        force_rm=settings.force_rm,
    )
    runtime.prepare()
    return runtime
