"""``./tfb doctor`` and ``./tfb clean`` for the machines of a run: what they are and lack, and what is left there."""

import json
from contextlib import ExitStack

from harness.console import SafeConsole
from harness.errors import EnvironmentLacksError, Exit, TfbError
from harness.extras.deployments import survey
from harness.extras.deployments.container import METER_IMAGE
from harness.extras.deployments.machine import reached
from harness.host import ownership, process
from harness.plan.hosts import Hosts
from harness.runtime import compose

METER = "tfb-meter"  # service
SLOW_LINK = 1.1e9 / 8  # bytes a second: a gigabit link is full at a few hundred thousand small responses a second
REMOVE_SECONDS = 60.0
RUN = "doctor"


def doctor(hosts: Hosts, *, as_json: bool) -> int:
    """Show every machine and every link as a run would record it; raises as a run does that could not use one."""
    with ExitStack() as stack:
        scratch = stack.enter_context(ownership.scratch("doctor"))
        log = scratch / "build.log"
        done = compose.Project(run_id=RUN, bridge=False).build(METER, seconds=600, log=log, more={})
        if done.status != 0:
            raise EnvironmentLacksError(f"the image {METER_IMAGE} could not be built: {process.tail(log)}")
        known = {host: stack.enter_context(reached(host, scratch)) for host in hosts.machines}
        for machine in known.values():
            machine.send(METER_IMAGE)
        machines, links = survey.machines(hosts, known, RUN), survey.links(hosts, known, RUN)
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
        slow = " (may be full before a server is)" if link.throughput < SLOW_LINK else ""
        rate = f"{link.throughput * 8 / 1e9:.2f} Gbit/s{slow}"
        console.print(f"{link.of} → {link.to}: round trip {link.round_trip * 1e6:,.0f} µs, {rate}")
    return Exit.OK


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
