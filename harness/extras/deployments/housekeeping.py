"""``./tfb doctor`` and ``./tfb clean`` for the machines of a run: what they are and lack, and what is left there."""

import json
from contextlib import ExitStack
from pathlib import Path

from harness.console import SafeConsole
from harness.errors import EnvironmentLacksError, Exit, TfbError
from harness.extras.deployments import survey
from harness.extras.deployments.container import METER_IMAGE
from harness.extras.deployments.machine import Machine, reached
from harness.host import ownership, process
from harness.plan.hosts import Host, Hosts
from harness.records.models import MachineLink, RoleMachine
from harness.runtime import compose

METER = "tfb-meter"  # service
SLOW_LINK = 1.1e9 / 8  # bytes a second: a gigabit link is full at a few hundred thousand small responses a second
REMOVE_SECONDS = 60.0
RUN = "doctor"


def doctor(hosts: Hosts, *, as_json: bool) -> int:
    """Show every machine and every link as a run would record it; exit code 3 when it could not use one.

    Raises EnvironmentLacksError without an engine here.
    """
    known: dict[Host, Machine] = {}
    machines: tuple[RoleMachine, ...] = ()
    links: tuple[MachineLink, ...] = ()
    failed: list[str] = []
    with ExitStack() as stack:
        scratch = stack.enter_context(ownership.scratch("doctor"))
        _build_meter(scratch / "build.log")
        for host in hosts.machines:
            try:
                machine = stack.enter_context(reached(host, scratch))
                machine.send(METER_IMAGE)
                known[host] = machine
            except TfbError as error:
                failed.append(str(error))
        try:
            machines = survey.machines(hosts, known, RUN)
            links = () if failed else survey.links(hosts, known, RUN)
        except TfbError as error:
            failed.append(str(error))
    if as_json:
        shown = {"machines": [each.model_dump() for each in machines], "links": [each.model_dump() for each in links]}
        print(json.dumps({**shown, "failed": failed}))
    else:
        _print(machines, links, failed)
    return Exit.ENVIRONMENT if failed else Exit.OK


def _build_meter(log: Path) -> None:
    done = compose.Project(run_id=RUN, bridge=False).build(METER, seconds=600, log=log, more={})
    if done.status != 0:
        raise EnvironmentLacksError(f"the image {METER_IMAGE} could not be built: {process.tail(log)}")


def _print(machines: tuple[RoleMachine, ...], links: tuple[MachineLink, ...], failed: list[str]) -> None:
    console = SafeConsole(highlight=False, markup=False)
    for each in machines:
        facts = each.machine
        memory = f"{facts.memory_bytes / 2**30:.1f} GiB"
        console.print(f"{each.role}: {each.name} ({each.address}), grade {facts.grade}")
        console.print(f"  Docker {each.engine}, {facts.cpus_online} CPUs, {memory}, {facts.os}, kernel {facts.kernel}")
        for concern in facts.concerns:
            console.print(f"· {concern}")
    for link in links:
        rate = f"{link.throughput * 8 / 1e9:.2f} Gbit/s"
        slow = " (may be full before a server is)" if link.throughput < SLOW_LINK else ""
        console.print(f"{link.of} → {link.to}: round trip {link.round_trip * 1e6:,.0f} µs, {rate}{slow}")
    for why in failed:
        console.print(f"! {why}", style="red")


def clean(hosts: Hosts, *, dry_run: bool) -> int:
    """Containers and images with this project's labels on every machine; exit code 1 when one is not reached."""
    lost = 0
    with ownership.scratch("clean") as scratch:
        for host in hosts.machines:
            try:
                with reached(host, scratch) as machine:
                    runs, images = f"label={compose.RUN_LABEL}", f"label={compose.IMAGE_LABEL}"
                    containers = compose.ids("ps", "--all", "--filter", runs, at=machine.at) or []
                    found = dict.fromkeys(compose.ids("image", "ls", "--filter", images, at=machine.at) or [])
                    print(f"{machine.name}: {len(containers)} containers, {len(found)} images of runs")
                    if dry_run:
                        continue
                    if containers:
                        removal = ("container", "rm", "--force", "--volumes", *containers)
                        machine.docker(*removal, seconds=REMOVE_SECONDS)
                    for image in found:
                        machine.docker("image", "rm", "--force", image, seconds=REMOVE_SECONDS)
            except TfbError as error:
                lost += 1
                print(f"stays: {host.text}: {error}")
    return Exit.FAILED if lost else Exit.OK
