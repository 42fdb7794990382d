"""What the machines of a run are, each with its grade, and what the links between them carry; before the run."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.errors import EnvironmentLacksError, MachineLostError
from harness.host import machine as host
from harness.host import process
from harness.records.models import Machine as Facts
from harness.records.models import MachineLink, RoleMachine
from harness.runtime.compose import RUN_LABEL, client
from harness.runtime.machines.machine import Machine
from harness.runtime.machines.meter import IMAGE

SECONDS = 30.0  # of one look at a machine or link, on a busy one


def engine_info(machine: Machine) -> dict[str, object]:
    """What ``docker info`` says there; empty when it says nothing."""
    done = machine.docker("info", "--format", "{{json .}}", seconds=20)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, object] = json.loads(lines[-1]) if done.status == 0 and lines else {}
    return found


def read(machine: Machine, run_id: str) -> dict[str, Any]:
    """The line of link.py's ``facts`` there. Raises MachineLostError, EnvironmentLacksError."""
    return inside(machine, run_id, "facts", *map(str, host.FILES))


def facts(machine: Machine, info: dict[str, object], found: dict[str, Any]) -> Facts:
    """The machine as it is now, graded as this one would be."""
    files: dict[str, str | None] = found["files"]
    cpus = tuple(int(cpu) for cpu in found["cpus"])
    load = str(found["load"] or "").split()
    known = Facts(
        hostname=str(info.get("Name", machine.name)),
        os=str(info.get("OperatingSystem", "unknown")),
        kernel=str(info.get("KernelVersion", "unknown")),
        cpu_model=str(info.get("Architecture", "unknown")),
        cpus_online=int(str(info.get("NCPU", len(cpus)))),
        cpus_usable=cpus,
        memory_bytes=int(str(info.get("MemTotal", 0))),
        nofile_hard=int(found["nofile"]) if int(found["nofile"]) > 0 else None,
        load_average=float(load[0]) if load else None,
    )
    return host.graded(host.of_files(known, lambda path: files.get(str(path)) or None))


def roles(named: Sequence[tuple[str, Machine]], run_id: str) -> tuple[RoleMachine, ...]:
    """Each role's machine; one that has several roles is looked at once."""
    seen: dict[str, RoleMachine] = {}
    for role, machine in named:
        if machine.name in seen:
            seen[machine.name] = seen[machine.name].model_copy(update={"role": f"{seen[machine.name].role}, {role}"})
            continue
        info = engine_info(machine)
        seen[machine.name] = RoleMachine(
            role=role,
            name=machine.name,
            address=machine.address,
            engine=str(info.get("ServerVersion", "unknown")),
            machine=facts(machine, info, read(machine, run_id)),
        )
    return tuple(seen.values())


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
    words = _words(one, run_id, "serve", one.address)
    serving = process.Child(words, stdin=process.PIPE, stdout=process.PIPE)
    with process.running(serving, grace=1.0):
        try:
            output = serving.popen.stdout
            assert output is not None  # noqa: S101 - a pipe was asked for
            line = output.readline()
            if not line.startswith(b"{"):
                raise MachineLostError(
                    line.decode(errors="replace").strip() or f"{one.name}: its partner did not start"
                )
            found = inside(other, run_id, "ask", one.address, str(json.loads(line)["port"]))
        finally:
            for stream in (serving.popen.stdin, serving.popen.stdout):
                if stream is not None:
                    stream.close()
            serving.wait(2.0)
    return MachineLink(
        of=one.name, to=other.name, round_trip=float(found["round_trip"]), throughput=float(found["throughput"])
    )


def inside(machine: Machine, run_id: str, *arguments: str) -> dict[str, Any]:
    """The JSON line that link.py prints there. Raises MachineLostError, EnvironmentLacksError."""
    done = process.run(_words(machine, run_id, *arguments), seconds=SECONDS)
    line = next((text for text in reversed(done.stdout.splitlines()) if text.startswith("{")), None)
    if done.status != 0 or line is None:
        machine.require_reachable()
        raise EnvironmentLacksError(f"{machine.name}: {done.stdout.strip()[-300:] or 'no answer'}")
    found: dict[str, Any] = json.loads(line)
    return found


def _words(machine: Machine, run_id: str, *arguments: str) -> Sequence[str]:
    return [
        *(client() or "docker", *machine.at, "run", "--rm", "--interactive", "--pull", "never", "--network", "host"),
        *("--read-only", "--cap-drop", "ALL", "--label", f"{RUN_LABEL}={run_id}", "--entrypoint", "python3", IMAGE),
        *("/link.py", *arguments),
    ]
