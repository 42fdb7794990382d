"""Chooses the runtime: Docker where an engine answers, otherwise local; checks that the machine has what it needs."""

from collections.abc import Sequence
from pathlib import Path

from harness import machine, provision
from harness.config import Settings, parse_cpus
from harness.discovery import Implementation
from harness.errors import EnvironmentLacksError, UsageError
from harness.runtime import Runtime
from harness.runtime.local import LocalRuntime


def choose(settings: Settings, implementations: Sequence[Implementation], logs: Path) -> Runtime:
    """The runtime that the settings ask for; raises EnvironmentLacksError that says how to mend what is missing."""
    return local(settings, implementations, logs)


def local(settings: Settings, implementations: Sequence[Implementation], logs: Path) -> LocalRuntime:
    """The local runtime, after installing what is missing if that is allowed."""
    for flag, value in (("--client-host", settings.client_host), ("--server-host", settings.server_host)):
        if value:
            raise UsageError(f"{flag} needs --runtime docker: the local runtime starts processes on this machine")
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
