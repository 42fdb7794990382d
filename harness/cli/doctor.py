"""Verbs about this machine: ``./tfb doctor`` looks at it, ``./tfb clean`` removes what runs have left on it."""

import json
from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from harness.cli.consent import ask_consent, find_leftovers
from harness.cli.flags import MachineFlags
from harness.cli.run import resolve_hosts
from harness.errors import EnvironmentLacksError, Exit
from harness.host import leftovers as killed
from harness.host import machine
from harness.plain_text import json_text, printable
from harness.plan.config import Consent
from harness.plan.discovery import scan
from harness.plugins import Hook
from harness.provisioning import advice, requirements
from harness.provisioning.requirements import ToolRequirement
from harness.records.machine_record import Machine
from harness.report import terminal
from harness.runtime import compose, images
from harness.units import format_bytes

MANY = 6  # implementations that want a tool: more are counted
NO_MACHINES = MachineFlags()
DOCTOR_MACHINES: Hook[Callable[..., int]] = Hook(name="doctor_machines", purpose="doctor for other machines")
CLEAN_MACHINES: Hook[Callable[..., int]] = Hook(name="clean_machines", purpose="clean for other machines")


def doctor(
    *,
    as_json: Annotated[bool, Parameter(name="--json", help="machine-readable output")] = False,
    machines: MachineFlags = NO_MACHINES,
) -> int:
    """Show tools, machine facts and what would disturb a measurement; the exit code is 3 when something is missing."""
    if (hosts := resolve_hosts(machines)).elsewhere:
        return DOCTOR_MACHINES.load()(hosts, as_json=as_json)
    facts, found = machine.read_machine(), scan()
    needs = requirements.tool_requirements(found.implementations, own_database=True)
    complete = all(need.tool for need in needs)
    try:
        docker = f"engine {compose.engine_version()}"
    except EnvironmentLacksError as error:
        docker = str(error)
    left = find_leftovers()
    if as_json:
        tools = [
            {
                "tool": n.description,
                "wanted_by": n.required_by,
                "found": str(n.tool) if n.tool else None,
                "advice": None if n.tool else advice.describe_missing(n.kind, n.condition),
            }
            for n in needs
        ]
        document = {"machine": facts.model_dump(mode="json"), "tools": tools, "problems": found.problems}
        document |= {"leftovers": [*map(str, left)], "docker": docker}
        print(json_text(json.dumps(document)))
    else:
        show_tools(needs)
        show_facts(facts)
        console = terminal.make_console()
        console.print(f"\nDocker runtime: {docker}\n")
        for problem in found.problems:
            console.print(f"! {problem}", style="red")
        for leftover in left:
            if leftover.certain:
                console.print(f"! left by a run that was killed: {leftover}; ./tfb clean removes it")
            else:
                console.print(f"· of a run that is not known here: {leftover}")
    return Exit.OK if complete else Exit.ENVIRONMENT


def show_tools(needs: Sequence[ToolRequirement]) -> None:
    """What the local runtime needs, who wants it, and what was found."""
    table = Table(box=None, padding=(0, 2), title="Tools of the local runtime", title_justify="left")
    for header in ("needs", "wanted by", "found"):
        table.add_column(header, header_style="dim")
    for need in needs:
        missing = (
            Text.assemble(
                ("missing", "red"),
                f": {advice.describe_installed(need.kind)}; {advice.suggest_remedy(need.kind, need.condition)}",
            )
            if need.tool is None
            else Text("")
        )
        many = f"{len(need.required_by)} implementations"
        wanted_by = ", ".join(need.required_by or ["the harness"]) if len(need.required_by) <= MANY else many
        table.add_row(need.description, wanted_by, str(need.tool) if need.tool else missing)
    terminal.make_console().print(table)


def show_facts(facts: Machine) -> None:
    """Which machine it is, and what would disturb a measurement on it."""
    cpus = f"{len(facts.cpus_usable)} of {facts.cpus_online} CPUs ({','.join(map(str, facts.cpus_usable))})"
    memory, system = format_bytes(facts.memory_bytes), f"{facts.os}, kernel {facts.kernel}"
    console = terminal.make_console()
    console.print(f"\nMachine, grade {facts.grade}: {facts.cpu_model}, {cpus}, {memory}, {system}")
    for concern in facts.concerns or ("nothing would disturb a measurement, as far as can be seen",):
        console.print(f"· {concern}")


def clean(
    *,
    dry_run: Annotated[bool, Parameter(help="say what would be removed")] = False,
    leftovers: Annotated[bool, Parameter(help="only what runs that were killed have left; images stay")] = False,
    yes: Annotated[bool, Parameter(help="remove what killed runs have left without asking")] = False,
    machines: MachineFlags = NO_MACHINES,
) -> int:
    """Remove what killed runs have left (processes, scratch folders, containers, networks), and images of runs.

    Images that tfb did not tag, the base image and the build cache stay. With --server-host and its like, this removes
    what ended runs have left on those machines. The exit code is 1 when something had to stay.
    """
    if (hosts := resolve_hosts(machines)).elsewhere:
        return CLEAN_MACHINES.load()(hosts, dry_run=dry_run)
    kept = _remove_leftovers(dry_run=dry_run, consent="yes" if yes else "ask")
    if not leftovers:
        kept |= _remove_images(dry_run=dry_run)
    return Exit.FAILED if kept else Exit.OK


def _remove_images(*, dry_run: bool) -> bool:
    """Print the images that tfb tagged and remove them; return whether one stays that should not."""
    try:
        compose.engine_version()
    except EnvironmentLacksError:
        print("images were not looked at: no container engine answers; ./tfb doctor says why")
        return False
    found = images.own_images()
    for image in found:
        print(f"{format_bytes(image.bytes):>9}  {image.shown}")
    if dry_run or not found:
        print(f"{len(found)} images; layers that they share are counted with each")
        return False
    kept = images.remove_images([image.name for image in found])
    images.forget_removed()
    for name, reason in kept:
        print(f"stays: {name}: {reason}")
    print(f"removed {len(found) - len(kept)} of {len(found)} images")
    return bool(kept)


def _remove_leftovers(*, dry_run: bool, consent: Consent) -> bool:
    """Name what killed runs have left, and remove it with consent; whether something stays that should not."""
    everything = find_leftovers()
    found = [leftover for leftover in everything if leftover.certain]
    for leftover in everything:
        if leftover.certain:
            print(f"left by a killed run: {leftover}")
        else:  # another machine's, another container's, or an older version's: it may well be in use
            print(f"of a run that is not known here, and not touched: {leftover}")
    if dry_run or not found:
        return False
    if not ask_consent(consent, f"Remove {len(found)} thing(s) that killed runs have left?"):
        print("they stay: ./tfb clean --yes removes them")
        return True
    kept = killed.remove(found)
    for what in kept:
        print(f"stays: {printable(what)}")
    print(f"removed {len(found) - len(kept)} of {len(found)} things that killed runs had left")
    return bool(kept)
