"""What ``./tfb doctor`` asks of the machines of a run: engine, limits, kernel, clock, and the links between roles."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, TfbError
from harness.plan.hosts import Host, Hosts
from harness.runtime.compose import IMAGE_LABEL, docker
from harness.runtime.machines.machine import Machine, reached
from harness.runtime.machines.meter import IMAGE
from harness.runtime.machines.survey import engine_info, link, read
from harness.runtime.machines.survey import facts as machine_facts

OLDEST_ENGINE = 20
FEW_FILES = 20_000
SLOW_LINK = 1.1e9 / 8  # bytes a second: a gigabit link is full at a few hundred thousand small responses a second
CLOCK_SECONDS = 1.0
RUN = "doctor"


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One machine: its facts in words, and what would disturb or prevent a run."""

    roles: str
    name: str
    facts: tuple[tuple[str, str], ...] = ()
    concerns: tuple[str, ...] = ()
    missing: str = ""  # why no run can use it


@dataclass(frozen=True, kw_only=True)
class Link:
    """Between two roles; seconds and bytes a second, None with a reason in ``failed``."""

    of: str
    to: str
    round_trip: float | None = None
    throughput: float | None = None
    failed: str = ""

    @property
    def concern(self) -> str:
        """In a sentence, when a run would hit the link before the framework."""
        if self.throughput is not None and self.throughput < SLOW_LINK:
            return f"{self.of} → {self.to}: {self.throughput * 8 / 1e9:.2f} Gbit/s may be full before a server is"
        return ""


def check(hosts: Hosts, scratch: Path) -> tuple[list[Checked], list[Link]]:
    """Every machine and every link that a run would use; what is missing is in the results, not an exception."""
    with ExitStack() as stack:
        machines: dict[Host, Machine] = {}
        checked = []
        _build()
        for host in hosts.machines:
            roles = ", ".join(_roles(hosts, host))
            try:
                machine = stack.enter_context(reached(host, scratch))
                machine.send(IMAGE)
                checked.append(_checked(machine, roles))
                machines[host] = machine
            except TfbError as error:
                checked.append(Checked(roles=roles, name=host.text, missing=str(error)))
        pairs = [(each, hosts.server) for each in hosts.clients]
        pairs += [(hosts.server, hosts.database)] if isinstance(hosts.database, Host) else []
        links = [
            _link(machines[one], machines[other])
            for one, other in pairs
            if one in machines and other in machines and one != other
        ]
        return checked, links


def _build() -> None:
    """The reader's image, on this machine's engine. Raises EnvironmentLacksError."""
    from harness.runtime.compose import FOLDER

    words = ("build", "--quiet", "--tag", IMAGE, "--label", f"{IMAGE_LABEL}={IMAGE}")
    folder = FOLDER.parent / "toolset"
    done = docker(*words, "--file", str(FOLDER / "meter.dockerfile"), str(folder), seconds=600.0)
    if done.status != 0:
        raise EnvironmentLacksError(f"the image {IMAGE} could not be built: {done.stdout.strip()[-500:]}")


def _roles(hosts: Hosts, host: Host) -> Iterator[str]:
    if host == hosts.server:
        yield "server"
    if host == hosts.database:
        yield "database"
    if host in hosts.clients:
        yield "client"


def _checked(machine: Machine, roles: str) -> Checked:
    info = engine_info(machine)
    before = time.time()
    found = read(machine, RUN)
    after = time.time()
    version = str(info.get("ServerVersion", "unknown"))
    offset = float(found["now"]) - (before + after) / 2
    concerns = []
    if int(version.split(".")[0] if version[:1].isdigit() else 0) < OLDEST_ENGINE:
        concerns.append(f"engine {version} is older than {OLDEST_ENGINE}: compose.yaml needs more")
    if 0 < int(found["nofile"]) < FEW_FILES:
        concerns.append(f"containers may open {found['nofile']} files: raise LimitNOFILE of docker.service")
    if found["governor"] not in (None, "performance"):
        concerns.append(
            f"CPU governor {found['governor']}: clocks move under load (cpupower frequency-set -g performance)"
        )
    if abs(offset) > CLOCK_SECONDS + (after - before):
        concerns.append(f"its clock is {offset:+.0f} s from this machine's: figures do not depend on it, logs do")
    graded = machine_facts(machine, info, found)
    concerns += [each for each in graded.concerns if "governor" not in each]
    facts = (
        ("grade", graded.grade),
        ("address", machine.address),
        ("engine", f"{version}, {info.get('Driver')}, control groups v{info.get('CgroupVersion')}"),
        ("CPUs, memory", f"{info.get('NCPU')}, {int(str(info.get('MemTotal', 0))) / 2**30:.1f} GiB"),
        ("system", f"{info.get('OperatingSystem')}, kernel {info.get('KernelVersion')}"),
        ("open files, backlog, ports", f"{found['nofile']}, {found['somaxconn']}, {found['port_range']}"),
        ("governor, load", f"{found['governor'] or 'unknown'}, {found['load']}"),
        ("clock", f"{offset:+.2f} s from here, ± {(after - before) / 2:.2f} s"),
    )
    return Checked(roles=roles, name=machine.name, facts=facts, concerns=tuple(concerns))


def _link(one: Machine, other: Machine) -> Link:
    """As answers flow: from the server to a client, from the database to the server."""
    try:
        found = link(other, one, RUN)
    except TfbError as error:
        return Link(of=other.name, to=one.name, failed=str(error))
    return Link(of=found.of, to=found.to, round_trip=found.round_trip, throughput=found.throughput)
