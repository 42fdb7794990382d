"""Records facts, grades and network links of a run's machines, and removes leftovers from earlier runs."""

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
from harness.records.run_info import Machine as Facts
from harness.records.run_info import MachineLink, RoleMachine
from harness.runtime import compose, images

METER = "tfb-meter"  # name of the compose service
SECONDS = 30.0  # time limit to read a machine's facts or to measure a link
SLOW_LINK = 1.1e9 / 8  # bytes/s; fast servers can saturate slower links
RUN = "doctor"  # run id in the labels of containers that ``./tfb doctor`` starts


def roles(hosts: Hosts, connected: Mapping[Host, ConnectedMachine], run_id: str) -> tuple[RoleMachine, ...]:
    """Return each machine's facts and roles. Raises MachineLostError or EnvironmentLacksError."""
    host_roles = [("server", hosts.server), ("database", hosts.database)]
    host_roles += [(f"client {number}", client) for number, client in enumerate(hosts.clients, 1)]
    machines = []
    for host_ in hosts.machines:
        machine = connected[host_]
        done = machine.docker("info", "--format", "{{json .}}", seconds=SECONDS)
        info = _last_object(done.stdout) or {}
        files = ask(machine, run_id, "facts", *map(str, host.FILES))
        machines.append(
            RoleMachine(
                role=", ".join(role for role, each in host_roles if each == host_),
                name=machine.name,
                address=machine.address,
                engine=str(info.get("ServerVersion", "unknown")),
                machine=facts(info, files),
            )
        )
    return tuple(machines)


def facts(info: Mapping[str, Any], output: Mapping[str, Any]) -> Facts:
    """Return a machine's facts and grade from the outputs of ``docker info`` and ``link.py facts``."""
    load = str(output["load"] or "").split()
    machine = Facts(
        hostname=info.get("Name", "unknown"),
        os=info.get("OperatingSystem", "unknown"),
        kernel=info.get("KernelVersion", "unknown"),
        cpu_model=info.get("Architecture", "unknown"),
        cpus_online=info.get("NCPU", len(output["cpus"])),
        cpus_usable=tuple(output["cpus"]),
        memory_bytes=info.get("MemTotal", 0),
        nofile_hard=output["nofile"] if output["nofile"] > 0 else None,
        load_average=float(load[0]) if load else None,
    )
    return host.with_grade(host.add_kernel_facts(machine, lambda path: output["files"].get(str(path)) or None))


def measure_links(hosts: Hosts, connected: Mapping[Host, ConnectedMachine], run_id: str) -> tuple[MachineLink, ...]:
    """Measure the links in sequence: server to each client, and database to server."""
    server = connected[hosts.server]
    links = [_link(server, connected[client], run_id) for client in hosts.clients if client != hosts.server]
    if isinstance(hosts.database, Host) and hosts.database != hosts.server:
        links.append(_link(connected[hosts.database], server, run_id))
    return tuple(links)


def _link(listener: ConnectedMachine, caller: ConnectedMachine, run_id: str) -> MachineLink:
    """Measure the link between two machines at the addresses that a run uses. ``caller`` connects to ``listener``."""
    command = _command(listener, run_id, "serve", listener.address)
    options = process.ProcessOptions(env=compose.client_environment())
    serving = process.Child(command, options, stdin=process.PIPE, stdout=process.PIPE)
    with process.running(serving, grace=1.0), ExitStack() as stack:
        for stream in filter(None, (serving.stdin, serving.stdout)):
            stack.enter_context(stream)  # link.py exits when stdin is closed
        output = serving.stdout
        ready = output and select.select([output], [], [], SECONDS)[0]
        first_line = output.readline().decode(errors="replace").strip() if output and ready else ""
        if not first_line.startswith("{"):
            raise MachineLostError(first_line or f"{listener.name}: cannot start link.py, which measures the link")
        measured = ask(caller, run_id, "ask", listener.address, str(json.loads(first_line)["port"]))
    return MachineLink(of=listener.name, to=caller.name, **measured)


def ask(machine: ConnectedMachine, run_id: str, *arguments: str) -> dict[str, Any]:
    """Run link.py on a machine and return the JSON output. Raises MachineLostError or EnvironmentLacksError."""
    done = process.run(_command(machine, run_id, *arguments), seconds=SECONDS, env=compose.client_environment())
    document = _last_object(done.stdout)
    if done.status != 0 or document is None:
        machine.require_reachable()
        raise EnvironmentLacksError(f"{machine.name}: {done.stdout.strip()[-300:] or 'no response'}")
    return document


def _last_object(text: str) -> dict[str, Any] | None:
    line = next((line for line in reversed(text.splitlines()) if line.startswith("{")), "null")
    document: dict[str, Any] | None = json.loads(line)
    return document


def _command(machine: ConnectedMachine, run_id: str, *arguments: str) -> list[str]:
    run = ("run", "--rm", "--interactive", "--pull", "never", "--network", "host", "--read-only", "--cap-drop", "ALL")
    entry = ("--entrypoint", "python3", METER_IMAGE, "/link.py")
    return machine.command(*run, *compose.label_flags(compose.ownership_labels(run_id)), *entry, *arguments)


# ---- commands: ./tfb doctor and ./tfb clean --------------------------------------------------------------------------


def doctor(hosts: Hosts, *, as_json: bool) -> int:
    """Print the facts about machines and links that a run would record. Raises the same errors as a run."""
    compose.engine_version()
    with ExitStack() as stack:
        scratch = stack.enter_context(ownership.make_scratch_folder("doctor"))
        log = scratch / "build.log"
        if images.is_foreign(METER_IMAGE):
            raise EnvironmentLacksError(f"the image {METER_IMAGE} exists, but tfb did not build it: rename it")
        done = compose.Project(run_id=RUN, bridge=False).build(METER, seconds=600, log=log, more={})
        if done.status != 0:
            raise EnvironmentLacksError(f"cannot build the image {METER_IMAGE}: {process.tail(log)}")
        images.record_tag(METER_IMAGE, images.image_digest(METER_IMAGE))
        connected = {one: stack.enter_context(reached(one, scratch)) for one in hosts.machines}
        for machine in connected.values():
            machine.send(METER_IMAGE)
        machines, links = roles(hosts, connected, RUN), measure_links(hosts, connected, RUN)
    if as_json:
        document = {"machines": machines, "links": links}
        print(json.dumps({name: [each.model_dump() for each in records] for name, records in document.items()}))
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
    """Remove tfb's images and the leftovers of finished runs from all machines, or only count them (``dry_run``).

    Return 1 if a machine could not be cleaned or an item could not be removed, otherwise 0.
    """
    failures = 0
    with ownership.make_scratch_folder("clean") as scratch:
        for host in hosts.machines:
            try:
                with reached(host, scratch, needs_address=False) as machine:
                    failures += _clean(machine, dry_run=dry_run)
            except TfbError as error:
                failures += 1
                print(f"not cleaned: {host.text}: {error}")
    return Exit.FAILED if failures else Exit.OK


def _clean(machine: ConnectedMachine, *, dry_run: bool) -> int:
    """Remove leftovers and images from a machine, and return the number of failures."""
    machine.require_response()
    all_leftovers, own_images = compose.engine_leftovers(machine.engine), images.own_images(machine.engine)
    removable = [leftover for leftover in all_leftovers if leftover.is_certain]
    print(f"{machine.name}: {len(removable)} leftovers from finished runs, {len(own_images)} images")
    for leftover in all_leftovers:
        if not leftover.is_certain:
            print(f"not removed, because it belongs to an unknown run: {leftover}")
    if dry_run:
        return 0
    failures = [*leftovers.remove_leftovers(removable)]
    failures += [
        f"{name}: {reason}"
        for name, reason in images.remove_images([image.name for image in own_images], machine.engine)
    ]
    for failure in failures:
        print(f"not removed: {machine.name}: {printable(failure)}")
    return len(failures)
