"""``./tfb doctor`` and ``./tfb clean`` for the machines of a run: what they are and lack, and what is left there."""

import json
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from harness.console import SafeConsole
from harness.errors import EnvironmentLacksError, Exit, TfbError
from harness.extras.deployments import survey
from harness.extras.deployments.container import METER_IMAGE
from harness.extras.deployments.machine import Machine, reached
from harness.host import ownership
from harness.plan.hosts import Host, Hosts
from harness.runtime import compose

OLDEST_ENGINE = 20
FEW_FILES = 20_000
SLOW_LINK = 1.1e9 / 8  # bytes a second: a gigabit link is full at a few hundred thousand small responses a second
CLOCK_SECONDS = 1.0
BUILD_SECONDS = 600.0
REMOVE_SECONDS = 60.0
RUN = "doctor"


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One machine: its facts in a few words, and what would disturb or prevent a run."""

    roles: str
    name: str
    facts: tuple[tuple[str, str], ...] = ()
    concerns: tuple[str, ...] = ()
    missing: str = ""  # why no run can use it


@dataclass(frozen=True, kw_only=True)
class Link:
    """Between two machines; seconds and bytes a second, 0 with a reason in ``failed``."""

    of: str
    to: str
    round_trip: float = 0.0
    throughput: float = 0.0
    failed: str = ""


def doctor(hosts: Hosts, *, as_json: bool) -> int:
    """Show every machine and every link that a run would use; exit code 3 when it could not use one."""
    machines, links = check(hosts)
    if as_json:
        print(json.dumps({"machines": [asdict(each) for each in machines], "links": [asdict(each) for each in links]}))
    else:
        _print(machines, links)
    lacking = any(each.missing for each in machines) or any(link.failed for link in links)
    return Exit.ENVIRONMENT if lacking else Exit.OK


def _print(machines: list[Checked], links: list[Link]) -> None:
    console = SafeConsole(highlight=False, markup=False)
    for each in machines:
        console.print(f"{each.roles}: {each.name}")
        for name, value in each.facts:
            console.print(f"  {name:<28}{value}")
        if each.missing:
            console.print(f"! {each.missing}", style="red")
        for concern in each.concerns:
            console.print(f"· {concern}")
        console.print()
    for link in links:
        if link.failed:
            console.print(f"! {link.of} → {link.to}: {link.failed}", style="red")
            continue
        rate = f"{link.throughput * 8 / 1e9:.2f} Gbit/s"
        slow = " (may be full before a server is)" if link.throughput < SLOW_LINK else ""
        console.print(f"{link.of} → {link.to}: round trip {link.round_trip * 1e6:,.0f} µs, {rate}{slow}")


def check(hosts: Hosts) -> tuple[list[Checked], list[Link]]:
    """What is missing is in the results, not an exception. Raises EnvironmentLacksError without an engine here."""
    labels = ("--label", f"{compose.IMAGE_LABEL}={METER_IMAGE}")
    files = ("--file", str(compose.FOLDER / "meter.dockerfile"), str(compose.FOLDER.parent / "toolset"))
    done = compose.docker("build", "--quiet", "--tag", METER_IMAGE, *labels, *files, seconds=BUILD_SECONDS)
    if done.status != 0:
        raise EnvironmentLacksError(f"the image {METER_IMAGE} could not be built: {done.stdout.strip()[-500:]}")
    with ExitStack() as stack:
        scratch = stack.enter_context(ownership.scratch("doctor"))
        machines: dict[Host, Machine] = {}
        checked = []
        for host in hosts.machines:
            named = {
                "server": host == hosts.server,
                "database": host == hosts.database,
                "client": host in hosts.clients,
            }
            roles = ", ".join(role for role, mine in named.items() if mine)
            try:
                machine = stack.enter_context(reached(host, scratch))
                machine.send(METER_IMAGE)
                checked.append(_checked(machine, roles))
                machines[host] = machine
            except TfbError as error:
                checked.append(Checked(roles=roles, name=host.text, missing=str(error)))
        # As answers flow: from the server to a client, from the database to the server.
        pairs = [(hosts.server, each) for each in hosts.clients]
        pairs += [(hosts.database, hosts.server)] if isinstance(hosts.database, Host) else []
        known = [(machines[one], machines[other]) for one, other in pairs if {one, other} <= set(machines)]
        return checked, [_link(one, other) for one, other in known if one is not other]


def _checked(machine: Machine, roles: str) -> Checked:
    info = survey.engine_info(machine)
    before = time.time()
    found = survey.read(machine, RUN)
    within = (time.time() - before) / 2
    version = str(info.get("ServerVersion", "unknown"))
    offset = float(found["now"]) - before - within
    graded = survey.facts(machine, info, found)
    concerns = list(graded.concerns)
    if int(version.split(".")[0] if version[:1].isdigit() else 0) < OLDEST_ENGINE:
        concerns.append(f"engine {version} is older than {OLDEST_ENGINE}: compose.yaml needs more")
    if 0 < int(found["nofile"]) < FEW_FILES:
        concerns.append(f"containers may open {found['nofile']} files: raise LimitNOFILE of docker.service")
    if abs(offset) > CLOCK_SECONDS + 2 * within:
        concerns.append(f"its clock is {offset:+.0f} s from this machine's: figures do not depend on it, logs do")
    facts = (
        ("grade", graded.grade),
        ("address", machine.address),
        ("engine", f"{version}, {info.get('Driver')}, control groups v{info.get('CgroupVersion')}"),
        ("CPUs, memory", f"{info.get('NCPU')}, {int(info.get('MemTotal', 0)) / 2**30:.1f} GiB"),
        ("system", f"{info.get('OperatingSystem')}, kernel {info.get('KernelVersion')}"),
        ("open files, backlog, ports", f"{found['nofile']}, {found['somaxconn']}, {found['port_range']}"),
        ("governor, load", f"{found['governor'] or 'unknown'}, {found['load']}"),
        ("clock", f"{offset:+.2f} s from here, ± {within:.2f} s"),
    )
    return Checked(roles=roles, name=machine.name, facts=facts, concerns=tuple(concerns))


def _link(one: Machine, other: Machine) -> Link:
    try:
        found = survey.link(one, other, RUN)
    except TfbError as error:
        return Link(of=one.name, to=other.name, failed=str(error))
    return Link(of=found.of, to=found.to, round_trip=found.round_trip, throughput=found.throughput)


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
                    if containers and not dry_run:
                        removal = ("container", "rm", "--force", "--volumes", *containers)
                        machine.docker(*removal, seconds=REMOVE_SECONDS)
                    for image in () if dry_run else found:
                        machine.docker("image", "rm", "--force", image, seconds=REMOVE_SECONDS)
            except TfbError as error:
                lost += 1
                print(f"stays: {host.text}: {error}")
    return Exit.FAILED if lost else Exit.OK
