"""What the machines of a run are, each with its grade, and what the links between them carry; before the run."""

import contextlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.errors import EnvironmentLacksError, MachineLostError
from harness.extras.deployments.container import METER_IMAGE
from harness.extras.deployments.machine import Machine
from harness.host import machine as host
from harness.host import process
from harness.records.models import Machine as Facts
from harness.records.models import MachineLink, RoleMachine
from harness.runtime.compose import RUN_LABEL

SECONDS = 30.0  # of one look at a machine or link, on a busy one


def engine_info(machine: Machine) -> dict[str, Any]:
    """What ``docker info`` says there; empty when it says nothing."""
    done = machine.docker("info", "--format", "{{json .}}", seconds=SECONDS)
    return _last_object(done.stdout) or {}


def read(machine: Machine, run_id: str) -> dict[str, Any]:
    """The line of link.py's ``facts`` there. Raises MachineLostError, EnvironmentLacksError."""
    return _inside(machine, run_id, "facts", *map(str, host.FILES))


def facts(machine: Machine, info: dict[str, Any], found: dict[str, Any]) -> Facts:
    """The machine as it is now, graded as this one would be."""
    files: dict[str, str | None] = found["files"]
    cpus = tuple(int(cpu) for cpu in found["cpus"])
    load = str(found["load"] or "").split()
    known = Facts(
        hostname=str(info.get("Name", machine.name)),
        os=str(info.get("OperatingSystem", "unknown")),
        kernel=str(info.get("KernelVersion", "unknown")),
        cpu_model=str(info.get("Architecture", "unknown")),
        cpus_online=int(info.get("NCPU", len(cpus))),
        cpus_usable=cpus,
        memory_bytes=int(info.get("MemTotal", 0)),
        nofile_hard=int(found["nofile"]) if int(found["nofile"]) > 0 else None,
        load_average=float(load[0]) if load else None,
    )
    return host.graded(host.of_files(known, lambda path: files.get(str(path)) or None))


def named(
    server: Machine | None, database: Machine | None, clients: Sequence[Machine | None]
) -> list[tuple[str, Machine]]:
    """What each machine is there for; one that is None is left out."""
    every = [("server", server), ("database", database)]
    every += [(f"client {number}", machine) for number, machine in enumerate(clients, 1)]
    return [(role, machine) for role, machine in every if machine is not None]


def roles(named: Sequence[tuple[str, Machine]], run_id: str) -> tuple[RoleMachine, ...]:
    """Each machine once, with all of its roles."""
    machines = {machine.name: machine for _, machine in named}
    found = []
    for name, machine in machines.items():
        info = engine_info(machine)
        found.append(
            RoleMachine(
                role=", ".join(role for role, each in named if each.name == name),
                name=name,
                address=machine.address,
                engine=str(info.get("ServerVersion", "unknown")),
                machine=facts(machine, info, read(machine, run_id)),
            )
        )
    return tuple(found)


def links(
    server: Machine, clients: Sequence[Machine], database: Machine | None, run_id: str
) -> tuple[MachineLink, ...]:
    """From the server to all clients at once, as answers will flow; then from the database to the server."""
    apart = [each for each in clients if each.name != server.name]
    with ThreadPoolExecutor(max(1, len(apart))) as pool:
        found = list(pool.map(lambda each: link(server, each, run_id), apart))
    if database is not None and database.name != server.name:
        found.append(link(database, server, run_id))
    return tuple(found)


def link(one: Machine, other: Machine, run_id: str) -> MachineLink:
    """From one to the other, by the addresses that a run uses: the first listens. Raises MachineLostError, …"""
    serving = process.Child(_command(one, run_id, "serve", one.address), stdin=process.PIPE, stdout=process.PIPE)
    with process.running(serving, grace=1.0), contextlib.ExitStack() as stack:
        for stream in (serving.popen.stdin, serving.popen.stdout):
            if stream is not None:
                stack.enter_context(stream)  # it ends with its input
        output = serving.popen.stdout
        said = output.readline().decode(errors="replace").strip() if output else ""
        if not said.startswith("{"):
            raise MachineLostError(said or f"{one.name}: its partner did not start")
        found = _inside(other, run_id, "ask", one.address, str(json.loads(said)["port"]))
    return MachineLink(
        of=one.name, to=other.name, **{name: float(found[name]) for name in ("round_trip", "throughput")}
    )


def _inside(machine: Machine, run_id: str, *arguments: str) -> dict[str, Any]:
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


def _command(machine: Machine, run_id: str, *arguments: str) -> Sequence[str]:
    run = ("run", "--rm", "--interactive", "--pull", "never", "--network", "host", "--read-only", "--cap-drop", "ALL")
    entry = ("--entrypoint", "python3", METER_IMAGE, "/link.py")
    return machine.command(*run, "--label", f"{RUN_LABEL}={run_id}", *entry, *arguments)
