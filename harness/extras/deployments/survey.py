"""What the machines of a run are, each with its grade, and what the links between them carry; before the run."""

import contextlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.errors import EnvironmentLacksError, MachineLostError
from harness.extras.deployments.container import METER_IMAGE
from harness.extras.deployments.machine import Machine
from harness.host import machine as host
from harness.host import process
from harness.plan.hosts import Host, Hosts
from harness.records.models import Machine as Facts
from harness.records.models import MachineLink, RoleMachine
from harness.runtime.compose import RUN_LABEL

SECONDS = 30.0  # of one look at a machine or link, on a busy one


def machines(hosts: Hosts, reached: Mapping[Host, Machine], run_id: str) -> tuple[RoleMachine, ...]:
    """Each that is reached once, with all of its roles. Raises MachineLostError, EnvironmentLacksError."""
    every = [("server", hosts.server), ("database", hosts.database)]
    every += [(f"client {number}", client) for number, client in enumerate(hosts.clients, 1)]
    found = []
    for one in hosts.machines:
        if (machine := reached.get(one)) is None:
            continue
        done = machine.docker("info", "--format", "{{json .}}", seconds=SECONDS)
        info = _last_object(done.stdout) or {}
        files = ask(machine, run_id, "facts", *map(str, host.FILES))
        found.append(
            RoleMachine(
                role=", ".join(role for role, each in every if each == one),
                name=machine.name,
                address=machine.address,
                engine=str(info.get("ServerVersion", "unknown")),
                machine=facts(info, files),
            )
        )
    return tuple(found)


def facts(info: Mapping[str, Any], found: Mapping[str, Any]) -> Facts:
    """The machine as it is now, graded as this one would be: by what ``docker info`` and link.py's ``facts`` say."""
    load = str(found["load"] or "").split()
    known = Facts(
        hostname=info.get("Name", "unknown"),
        os=info.get("OperatingSystem", "unknown"),
        kernel=info.get("KernelVersion", "unknown"),
        cpu_model=info.get("Architecture", "unknown"),
        cpus_online=info.get("NCPU", len(found["cpus"])),
        cpus_usable=tuple(found["cpus"]),
        memory_bytes=info.get("MemTotal", 0),
        nofile_hard=found["nofile"] if found["nofile"] > 0 else None,
        load_average=float(load[0]) if load else None,
    )
    return host.graded(host.of_files(known, lambda path: found["files"].get(str(path)) or None))


def links(hosts: Hosts, reached: Mapping[Host, Machine], run_id: str) -> tuple[MachineLink, ...]:
    """From the server to all clients at once, as answers will flow; then from the database to the server."""
    server = reached[hosts.server]
    apart = [reached[client] for client in hosts.clients if client != hosts.server]
    with ThreadPoolExecutor(max(1, len(apart))) as pool:
        found = list(pool.map(lambda client: _link(server, client, run_id), apart))
    if isinstance(hosts.database, Host) and hosts.database != hosts.server:
        found.append(_link(reached[hosts.database], server, run_id))
    return tuple(found)


def _link(one: Machine, other: Machine, run_id: str) -> MachineLink:
    """From one to the other, by the addresses that a run uses: the first listens."""
    serving = process.Child(_command(one, run_id, "serve", one.address), stdin=process.PIPE, stdout=process.PIPE)
    with process.running(serving, grace=1.0), contextlib.ExitStack() as stack:
        for stream in filter(None, (serving.popen.stdin, serving.popen.stdout)):
            stack.enter_context(stream)  # it ends with its input
        output = serving.popen.stdout
        said = output.readline().decode(errors="replace").strip() if output else ""
        if not said.startswith("{"):
            raise MachineLostError(said or f"{one.name}: its partner did not start")
        found = ask(other, run_id, "ask", one.address, str(json.loads(said)["port"]))
    return MachineLink(of=one.name, to=other.name, **found)


def ask(machine: Machine, run_id: str, *arguments: str) -> dict[str, Any]:
    """The JSON line that link.py prints there. Raises MachineLostError, EnvironmentLacksError."""
    done = process.run(_command(machine, run_id, *arguments), seconds=SECONDS)
    found = _last_object(done.stdout)
    if done.status != 0 or found is None:
        machine.require_reachable()
        raise EnvironmentLacksError(f"{machine.name}: {done.stdout.strip()[-300:] or 'no answer'}")
    return found


def _last_object(text: str) -> dict[str, Any] | None:
    line = next((line for line in reversed(text.splitlines()) if line.startswith("{")), "null")
    found: dict[str, Any] | None = json.loads(line)
    return found


def _command(machine: Machine, run_id: str, *arguments: str) -> list[str]:
    run = ("run", "--rm", "--interactive", "--pull", "never", "--network", "host", "--read-only", "--cap-drop", "ALL")
    entry = ("--entrypoint", "python3", METER_IMAGE, "/link.py")
    return machine.command(*run, "--label", f"{RUN_LABEL}={run_id}", *entry, *arguments)
