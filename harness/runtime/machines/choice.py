"""Reaches the machines of a run and makes its runtime; what does not go together is refused before."""

import atexit
from contextlib import ExitStack
from pathlib import Path

from harness.errors import UsageError
from harness.plan.config import Settings
from harness.plan.hosts import Host
from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime.compose import engine
from harness.runtime.docker import DockerRuntime
from harness.runtime.machines.machine import reached
from harness.runtime.machines.runtime import MachinesRuntime


def refuse(settings: Settings) -> None:
    """Raise UsageError for flags that do not go together with other machines."""
    if not settings.hosts.elsewhere:
        return
    for flag, wrong, why in (
        ("--runtime local", settings.runtime == "local", "other machines are reached by their Docker engines"),
        ("--order duet", settings.order == "duet", "duets share one machine"),
        ("--network-mode bridge", settings.network_mode == "bridge", "a bridge ends at its machine"),
        (
            "--type order",
            any(TEST_TYPES[name].open_loop for name in settings.test_types),
            "arrivals are made on one machine so far",
        ),
        ("--profile latency", settings.profile.latency is not None, "loads at given rates run on one machine so far"),
    ):
        if wrong:
            raise UsageError(f"{flag} does not go together with other machines: {why}")


def across(settings: Settings, plain: DockerRuntime, logs: Path) -> MachinesRuntime:
    """The runtime; ``plain`` is the one of this machine, which builds. Raises EnvironmentLacksError."""
    engine()
    hosts = settings.hosts
    logs.mkdir(parents=True, exist_ok=True)
    links = ExitStack()
    atexit.register(links.close)
    known = {host: links.enter_context(reached(host, logs)) for host in hosts.machines}
    runtime = MachinesRuntime(
        project=plain.project,
        logs=plain.logs,
        server_port=plain.server_port,
        connections=plain.connections,
        force_rm=plain.force_rm,
        server_machine=known[hosts.server],
        database_machine=known[hosts.database] if isinstance(hosts.database, Host) else None,
        clients=tuple(known[client] for client in hosts.clients),
        links=links,
    )
    atexit.register(runtime.close)
    runtime.prepare()
    return runtime
