"""``./tfb doctor``: tools, machine facts and what would disturb a measurement, without running anything."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from harness.cli.flags import Machines
from harness.cli.settings import hosts_of
from harness.console import SafeConsole
from harness.errors import EnvironmentLacksError, Exit
from harness.host import machine, provision, toolchain
from harness.host.leftovers import on_this_machine
from harness.plan.discovery import scan
from harness.records.models import Machine
from harness.report import terminal
from harness.runtime import compose
from harness.runtime.choice import over_machines
from harness.units import format_bytes

MANY = 6  # implementations that want a tool: more are counted
RUST = "1.85"  # the oldest that builds toolset/loadgen


def command(
    *,
    as_json: Annotated[bool, Parameter(name="--json", help="machine-readable output")] = False,
    machines: Machines = Machines(),  # noqa: B008 - frozen
) -> int:
    """Show tools, machine facts and what would disturb a measurement; the exit code is 3 when something is missing."""
    if (hosts := hosts_of(machines)).elsewhere:
        status: int = over_machines().doctor(hosts, as_json=as_json)
        return status
    facts = machine.facts()
    found = scan()
    containers = _containers()
    needs = provision.needs(found.implementations, own_database=True)
    left = (*on_this_machine(), *(compose.leftovers() if containers["engine"] else ()))
    if as_json:
        tools = [{"tool": n.missing, "wanted_by": n.wanted_by, "found": str(n.tool) if n.tool else None} for n in needs]
        document = {"machine": facts.model_dump(mode="json"), "tools": tools, "problems": found.problems}
        document["leftovers"] = [str(leftover) for leftover in left]
        print(json.dumps({**document, "load_generator": _generator(), "docker": containers}))
    else:
        _print(facts, needs, containers, found.problems)
        for leftover in left:
            if leftover.certain:
                print(f"! left by a run that was killed: {leftover}; ./tfb clean removes it")
            else:
                print(f"· of a run that is not known here: {leftover}")
    return Exit.ENVIRONMENT if any(need.tool is None for need in needs) else Exit.OK


def _generator() -> str:
    """Whether the project's own load generator can be built; every profile but techempower needs it."""
    if tool := toolchain.find("cargo", f">={RUST}"):
        return f"the generator of this project, built by cargo {tool}"
    older = toolchain.find("cargo")
    found = f"cargo {older} is too old" if older else "cargo is missing"
    return f"{found}: the project's own needs {RUST} (Debian: apt-get install cargo); --generator wrk does without"


def _containers() -> dict[str, Any]:
    """What there is of the Docker runtime: the engine or why there is none, and the images that runs have left."""
    try:
        version = compose.engine()
    except EnvironmentLacksError as error:
        return {"engine": None, "reason": str(error)}
    images = [{"name": compose.image_name(image), "bytes": image["Size"]} for image in compose.images()]
    return {"engine": version, "images": images}


def _print(
    facts: Machine, needs: Sequence[provision.Need], containers: dict[str, Any], problems: Sequence[str]
) -> None:
    console = terminal.console()
    tools = Table(box=None, padding=(0, 2), title="Tools of the local runtime", title_justify="left")
    for header in ("needs", "wanted by", "found"):
        tools.add_column(header, header_style="dim")
    for need in needs:
        packages = " ".join(toolchain.packages(need.kind, need.condition))
        unread = toolchain.not_understood(need.kind, need.condition)
        missing = Text.assemble(("missing", "red"), f"; Debian: apt-get install {packages}")
        what = str(need.tool) if need.tool else unread or missing
        tools.add_row(need.missing, _wanted_by(need.wanted_by), what)
    console.print(tools)
    console.print(f"load generator: {_generator()}")
    console.print()
    rows = Table(
        box=None, padding=(0, 2), title=f"Machine, grade {facts.grade}", title_justify="left", show_header=False
    )
    for name, value in _facts(facts):
        rows.add_row(name, value)
    console.print(rows)
    console.print()
    _print_containers(containers, console)
    console.print()
    for concern in facts.concerns or ("nothing would disturb a measurement, as far as can be seen",):
        console.print(f"· {concern}")
    for problem in problems:
        console.print(f"! {problem}", style="red")


def _wanted_by(names: Sequence[str]) -> str:
    if not names:
        return "the harness"
    return ", ".join(names) if len(names) <= MANY else f"{len(names)} implementations"


def _print_containers(containers: dict[str, Any], console: SafeConsole) -> None:
    if containers["engine"] is None:
        console.print(f"Docker runtime: {containers['reason']}")
        return
    title = f"Docker runtime, engine {containers['engine']}"
    table = Table(box=None, padding=(0, 2), title=title, title_justify="left")
    table.add_column("image of a run", header_style="dim")
    table.add_column("size, with what it shares", header_style="dim", justify="right")
    for image in containers["images"]:
        table.add_row(image["name"], format_bytes(image["bytes"]))
    console.print(table)


def _facts(facts: Machine) -> list[tuple[str, str]]:
    def word(value: object) -> str:
        return "unknown" if value is None else "on" if value is True else "off" if value is False else str(value)

    def number(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.1f}"

    cpus = ",".join(map(str, facts.cpus_usable))
    pressure = "unknown" if facts.pressure_cpu is None else f"{facts.pressure_cpu:.1f} %"
    steal = "unknown" if facts.steal_share is None else f"{facts.steal_share:.1%}"
    return [
        ("CPU", facts.cpu_model),
        ("CPUs that may be used", f"{cpus} ({len(facts.cpus_usable)} of {facts.cpus_online})"),
        ("memory", format_bytes(facts.memory_bytes)),
        ("system", f"{facts.os}, kernel {facts.kernel}"),
        ("governor, turbo, SMT", f"{word(facts.governor)}, {word(facts.turbo)}, {word(facts.smt)}"),
        ("virtualised", facts.virtualised or "no sign of it"),
        ("open files", f"{facts.nofile_soft}, at most {facts.nofile_hard}"),
        ("load, CPU pressure, steal", ", ".join((number(facts.load_average), pressure, steal))),
        ("CPU quota", word(facts.cpu_quota) if facts.cpu_quota else "none"),
    ]
