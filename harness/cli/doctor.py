"""The commands ``./tfb doctor``, which checks this machine, and ``./tfb clean``, which removes leftovers and images."""

import json
from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from harness.cli.consent import ask_consent, find_leftovers
from harness.cli.flags import MachineFlags
from harness.cli.settings import resolve_hosts
from harness.errors import EnvironmentLacksError, Exit
from harness.host import leftovers as host_leftovers
from harness.host import machine
from harness.paths import build_caches_folder
from harness.plain_text import json_text, printable
from harness.plan.discovery import scan_folders
from harness.plan.run_settings import Consent
from harness.plugins import Hook
from harness.provisioning import advice, requirements
from harness.provisioning.requirements import ToolRequirement
from harness.records.remove_tree import remove_tree_if_possible
from harness.records.run_info import Machine
from harness.report import terminal
from harness.report.tables import format_count
from harness.runtime import compose, images
from harness.units import format_bytes

NO_MACHINES = MachineFlags()
DOCTOR_MACHINES: Hook[Callable[..., int]] = Hook(name="doctor_machines", purpose="doctor on remote machines")
CLEAN_MACHINES: Hook[Callable[..., int]] = Hook(name="clean_machines", purpose="clean on remote machines")


def doctor(
    *,
    as_json: Annotated[bool, Parameter(name="--json", help="print JSON to stdout")] = False,
    machines: MachineFlags = NO_MACHINES,
) -> int:
    """Show the detected tools, facts about this machine, and likely sources of noise.

    The exit code is 3 if a tool is missing.
    """
    if (hosts := resolve_hosts(machines)).uses_remote_machines:
        return DOCTOR_MACHINES.load()(hosts, as_json=as_json)
    facts, scan = machine.read_machine(), scan_folders()
    needs = requirements.tool_requirements(scan.implementations, own_database=True, witnesses=True)
    try:
        docker = f"engine {compose.engine_version()}"
    except EnvironmentLacksError as error:
        docker = str(error)
    leftovers = find_leftovers()
    if as_json:
        document = {
            "machine": facts.model_dump(mode="json"),
            "tools": [_tool_document(need) for need in needs],
            "problems": scan.problems,
            "leftovers": [*map(str, leftovers)],
            "docker": docker,
        }
        print(json_text(json.dumps(document)))
    else:
        show_tools(needs)
        show_facts(facts)
        console = terminal.make_console()
        console.print(f"\nDocker runtime: {docker}\n")
        for problem in scan.problems:
            console.print(f"! {problem}", style="red")
        for leftover in leftovers:
            if leftover.is_certain:
                console.print(f"! left by a killed run: {leftover}; remove it with ./tfb clean")
            else:
                console.print(f"· from an unknown run: {leftover}")
    return Exit.OK if all(need.tool for need in needs) else Exit.ENVIRONMENT


def _tool_document(need: ToolRequirement) -> dict[str, object]:
    """Return a required tool as a JSON document."""
    return {
        "tool": need.description,
        "wanted_by": need.required_by,
        "found": str(need.tool) if need.tool else None,
        "advice": None if need.tool else advice.describe_missing(need.kind, need.condition),
    }


def show_tools(needs: Sequence[ToolRequirement]) -> None:
    """Print the tools that the local runtime needs, the implementations that use them, and the detected versions."""
    table = Table(box=None, padding=(0, 2), title="Tools for the local runtime", title_justify="left")
    for header in ("tool", "needed by", "found"):
        table.add_column(header, header_style="dim")
    for need in needs:
        missing = Text("")
        if need.tool is None:
            remedy = f": {advice.describe_installed(need.kind)}; {advice.suggest_remedy(need.kind, need.condition)}"
            missing = Text.assemble(("missing", "red"), remedy)
        count = f"{len(need.required_by)} implementations"
        needed_by = ", ".join(need.required_by or ["tfb"]) if len(need.required_by) <= 6 else count
        table.add_row(need.description, needed_by, str(need.tool) if need.tool else missing)
    terminal.make_console().print(table)


def show_facts(facts: Machine) -> None:
    """Print a description of the machine, and likely sources of noise."""
    cpus = f"{len(facts.cpus_usable)} of {facts.cpus_online} CPUs ({','.join(map(str, facts.cpus_usable))})"
    memory, system = format_bytes(facts.memory_bytes), f"{facts.os}, kernel {facts.kernel}"
    console = terminal.make_console()
    console.print(f"\nMachine, grade {facts.grade}: {facts.cpu_model}, {cpus}, {memory}, {system}")
    for concern in facts.concerns or ("no source of noise detected",):
        console.print(f"· {concern}")


def clean(
    *,
    dry_run: Annotated[bool, Parameter(help="list leftovers and images without removing them")] = False,
    leftovers: Annotated[bool, Parameter(help="remove only leftovers from killed runs, and keep images")] = False,
    yes: Annotated[bool, Parameter(help="remove leftovers without asking")] = False,
    machines: MachineFlags = NO_MACHINES,
) -> int:
    """Remove cached dependencies, leftovers from killed runs, and images that tfb built.

    Leftovers are processes, scratch folders, containers and networks. The base
    image, the build cache, and images that tfb did not tag are kept. With
    --server-host or another machine flag, clean removes images and leftovers
    from the named machines only. The exit code is 1 if something could not be
    removed.
    """
    if (hosts := resolve_hosts(machines)).uses_remote_machines:
        return CLEAN_MACHINES.load()(hosts, dry_run=dry_run)
    failed = _remove_leftovers(dry_run=dry_run, consent="yes" if yes else "ask")
    if not leftovers:
        failed |= _remove_images(dry_run=dry_run) | _remove_build_caches(dry_run=dry_run)
    return Exit.FAILED if failed else Exit.OK


def _remove_build_caches(*, dry_run: bool) -> bool:
    """Remove the dependencies that ``compare`` keeps for later builds. Return whether any could not be removed."""
    folder = build_caches_folder()
    if folder.is_dir():
        print(f"{folder}: dependencies that compare keeps for later builds")
        if not dry_run:
            remove_tree_if_possible(folder)
    return folder.is_dir() and not dry_run


def _remove_images(*, dry_run: bool) -> bool:
    """List and remove the images that tfb tagged. Return whether an image could not be removed."""
    try:
        compose.engine_version()
    except EnvironmentLacksError:
        print("images were not checked, because no container engine responds; ./tfb doctor shows the reason")
        return False
    own_images = images.own_images()
    for image in own_images:
        print(f"{format_bytes(image.bytes):>9}  {image.description}")
    if dry_run or not own_images:
        print(f"{format_count(len(own_images), 'image')}; the sizes include shared layers")
        return False
    failures = images.remove_images([image.name for image in own_images])
    images.forget_removed()
    for name, reason in failures:
        print(f"not removed: {name}: {reason}")
    print(f"removed {len(own_images) - len(failures)} of {format_count(len(own_images), 'image')}")
    return bool(failures)


def _remove_leftovers(*, dry_run: bool, consent: Consent) -> bool:
    """List leftovers, and remove them if the user consents. Return whether the user refused or a removal failed."""
    leftovers = find_leftovers()
    removable = [leftover for leftover in leftovers if leftover.is_certain]
    for leftover in leftovers:
        if leftover.is_certain:
            print(f"left by a killed run: {leftover}")
        else:  # keep it: a run on a different machine, in a container or by an older tfb may be using it
            print(f"not removed, because it belongs to an unknown run: {leftover}")
    if dry_run or not removable:
        return False
    if not ask_consent(consent, f"Remove {format_count(len(removable), 'leftover')} of killed runs?"):
        print("no leftovers were removed; ./tfb clean --yes removes leftovers without asking")
        return True
    failures = host_leftovers.remove_leftovers(removable)
    for reason in failures:
        print(f"not removed: {printable(reason)}")
    print(f"removed {len(removable) - len(failures)} of {format_count(len(removable), 'leftover')}")
    return bool(failures)
