"""Surveys the machines of a run: facts, grades, network links, and leftovers of earlier runs."""

import json
import select
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from harness.console import SafeConsole
from harness.errors import EnvironmentLacksError, Exit, MachineLostError, TfbError
from harness.extras.deployments.connected_machine import ConnectedMachine, reached
from harness.extras.deployments.remote_container import METER_IMAGE
from harness.host import leftovers, ownership, process
from harness.host import machine as host
from harness.plain_text import printable
from harness.plan.hosts import Host, Hosts
from harness.records.machine_record import Machine as Facts
from harness.records.machine_record import MachineLink, RoleMachine
from harness.runtime import compose, images

METER = "tfb-meter"  # name of the compose service
SECONDS = 30.0  # time limit for surveying a machine or a link
SLOW_LINK = 1.1e9 / 8  # bytes/s; a few hundred thousand small responses per second saturate a gigabit link
RUN = "doctor"


def roles(hosts: Hosts, known: Mapping[Host, ConnectedMachine], run_id: str) -> tuple[RoleMachine, ...]:
    """Return each machine with all of the roles. Raises MachineLostError and EnvironmentLacksError."""
    every = [("server", hosts.server), ("database", hosts.database)]
    every += [(f"client {number}", client) for number, client in enumerate(hosts.clients, 1)]
    found = []
    for one in hosts.machines:
        machine = known[one]
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
    """Return the graded facts of a machine.

    Args:
        info: Output of ``docker info``.
        found: Output of ``link.py facts``.
    """
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
    return host.with_grade(host.add_kernel_facts(known, lambda path: found["files"].get(str(path)) or None))


def measure_links(hosts: Hosts, known: Mapping[Host, ConnectedMachine], run_id: str) -> tuple[MachineLink, ...]:
    """Measure the links from the server to each client and from the database to the server, in sequence."""
    server = known[hosts.server]
    found = [_link(server, known[client], run_id) for client in hosts.clients if client != hosts.server]
    if isinstance(hosts.database, Host) and hosts.database != hosts.server:
        found.append(_link(known[hosts.database], server, run_id))
    return tuple(found)


def _link(one: ConnectedMachine, other: ConnectedMachine, run_id: str) -> MachineLink:
    """Measure the link between two machines by the addresses that a run uses. The first machine listens."""
    command = _command(one, run_id, "serve", one.address)
    options = process.ProcessOptions(env=compose.client_environment())
    serving = process.Child(command, options, stdin=process.PIPE, stdout=process.PIPE)
    with process.running(serving, grace=1.0), ExitStack() as stack:
        for stream in filter(None, (serving.stdin, serving.stdout)):
            stack.enter_context(stream)  # link.py exits when stdin is closed
        output = serving.stdout
        ready = output and select.select([output], [], [], SECONDS)[0]
        said = output.readline().decode(errors="replace").strip() if output and ready else ""
        if not said.startswith("{"):
            raise MachineLostError(said or f"{one.name}: the measurement of the link did not start")
        found = ask(other, run_id, "ask", one.address, str(json.loads(said)["port"]))
    return MachineLink(of=one.name, to=other.name, **found)


def ask(machine: ConnectedMachine, run_id: str, *arguments: str) -> dict[str, Any]:
    """Run link.py on a machine, and return the printed JSON object. Raises MachineLostError, EnvironmentLacksError."""
    done = process.run(_command(machine, run_id, *arguments), seconds=SECONDS, env=compose.client_environment())
    found = _last_object(done.stdout)
    if done.status != 0 or found is None:
        machine.require_reachable()
        raise EnvironmentLacksError(f"{machine.name}: {done.stdout.strip()[-300:] or 'no response'}")
    return found


def _last_object(text: str) -> dict[str, Any] | None:
    line = next((line for line in reversed(text.splitlines()) if line.startswith("{")), "null")
    found: dict[str, Any] | None = json.loads(line)
    return found


def _command(machine: ConnectedMachine, run_id: str, *arguments: str) -> list[str]:
    run = ("run", "--rm", "--interactive", "--pull", "never", "--network", "host", "--read-only", "--cap-drop", "ALL")
    entry = ("--entrypoint", "python3", METER_IMAGE, "/link.py")
    return machine.command(*run, *compose.label_flags(compose.ownership_labels(run_id)), *entry, *arguments)


# ---- ./tfb doctor, ./tfb clean ---------------------------------------------------------------------------------------


def doctor(hosts: Hosts, *, as_json: bool) -> int:
    """Print every machine and every link as a run would record them. Raises the same errors as a run."""
    compose.engine_version()
    with ExitStack() as stack:
        scratch = stack.enter_context(ownership.make_scratch_folder("doctor"))
        log = scratch / "build.log"
        if images.is_foreign(METER_IMAGE):
            raise EnvironmentLacksError(f"the image {METER_IMAGE} exists, and tfb did not build it: rename it")
        done = compose.Project(run_id=RUN, bridge=False).build(METER, seconds=600, log=log, more={})
        if done.status != 0:
            raise EnvironmentLacksError(f"the image {METER_IMAGE} could not be built: {process.tail(log)}")
        images.record_tag(METER_IMAGE, images.image_digest(METER_IMAGE))
        known = {one: stack.enter_context(reached(one, scratch)) for one in hosts.machines}
        for machine in known.values():
            machine.send(METER_IMAGE)
        machines, links = roles(hosts, known, RUN), measure_links(hosts, known, RUN)
    if as_json:
        shown = {"machines": machines, "links": links}
        print(json.dumps({name: [each.model_dump() for each in found] for name, found in shown.items()}))
        return Exit.OK
    console = SafeConsole(highlight=False)
    for each in machines:
        facts = each.machine
        memory = f"{facts.memory_bytes / 2**30:.1f} GiB"
        console.print(f"{each.role}: {each.name} ({each.address}), grade {facts.grade}")
        console.print(f"  Docker {each.engine}, {facts.cpus_online} CPUs, {memory}, {facts.os}, kernel {facts.kernel}")
        for concern in facts.concerns:
            console.print(f"· {concern}")
    for link in links:
        slow = " (may limit the throughput of fast servers)" if link.throughput < SLOW_LINK else ""
        rate = f"{link.throughput * 8 / 1e9:.2f} Gbit/s{slow}"
        console.print(f"{link.of} → {link.to}: round trip {link.round_trip * 1e6:,.0f} µs, {rate}")
    return Exit.OK


def clean(hosts: Hosts, *, dry_run: bool) -> int:
    """Remove leftovers of ended runs and images from all machines; return exit code 1 if something remains."""
    lost = 0
    with ownership.make_scratch_folder("clean") as scratch:
        for one in hosts.machines:
            try:
                with reached(one, scratch, addressed=False) as machine:
                    lost += _clean(machine, dry_run=dry_run)
            except TfbError as error:
                lost += 1
                print(f"stays: {one.text}: {error}")
    return Exit.FAILED if lost else Exit.OK


def _clean(machine: ConnectedMachine, *, dry_run: bool) -> int:
    """Clean a machine, and return the number of resources that could not be removed."""
    machine.require_response()
    every, own = compose.engine_leftovers(machine.at), images.own_images(machine.at)
    found = [leftover for leftover in every if leftover.certain]
    print(f"{machine.name}: {len(found)} things of ended runs, {len(own)} images of runs")
    for leftover in every:
        if not leftover.certain:
            print(f"of a run that is not known here, and not touched: {leftover}")
    if dry_run:
        return 0
    kept = [*leftovers.remove_leftovers(found)]
    kept += [f"{name}: {reason}" for name, reason in images.remove_images([image.name for image in own], machine.at)]
    for what in kept:
        print(f"stays: {machine.name}: {printable(what)}")
    return len(kept)
