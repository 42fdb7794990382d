"""``./tfb doctor``: tools, machine facts and what would disturb a measurement, without running anything."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from harness import machine, provision, toolchain
from harness.cli.arguments import Parser
from harness.discovery import scan
from harness.errors import Exit
from harness.model import Machine
from harness.units import format_bytes


def main(argv: Sequence[str]) -> int:
    """Show the table; exit code 3 when something is missing."""
    p = Parser(prog="./tfb doctor", description="Show tools, machine facts and what would disturb a measurement.")
    p.add_argument("--json", action="store_true", help="machine-readable output")
    options = p.parse_args(list(argv))
    facts = machine.facts()
    found = scan()
    needs = provision.needs(found.implementations, own_database=True)
    if options.json:
        tools = [{"tool": n.missing, "wanted_by": n.wanted_by, "found": str(n.tool) if n.tool else None} for n in needs]
        print(json.dumps({"machine": facts.model_dump(mode="json"), "tools": tools, "problems": found.problems}))
    else:
        _print(facts, needs, found.problems)
    return Exit.ENVIRONMENT if any(need.tool is None for need in needs) else Exit.OK


def _print(facts: Machine, needs: Sequence[provision.Need], problems: Sequence[str]) -> None:
    console = Console(highlight=False)
    tools = Table(box=None, padding=(0, 2), title="Tools of the local runtime", title_justify="left")
    for header in ("needs", "wanted by", "found"):
        tools.add_column(header, header_style="dim")
    for need in needs:
        packages = " ".join(toolchain.packages(need.kind, need.condition))
        what = str(need.tool) if need.tool else f"[red]missing[/red]; Debian: apt-get install {packages}"
        tools.add_row(need.missing, ", ".join(need.wanted_by) or "the harness", what)
    console.print(tools)
    console.print()
    rows = Table(
        box=None, padding=(0, 2), title=f"Machine, grade {facts.grade}", title_justify="left", show_header=False
    )
    for name, value in _facts(facts):
        rows.add_row(name, value)
    console.print(rows)
    console.print()
    for concern in facts.concerns or ("nothing would disturb a measurement, as far as can be seen",):
        console.print(f"· {concern}")
    for problem in problems:
        console.print(f"! {problem}", style="red")


def _facts(facts: Machine) -> list[tuple[str, str]]:
    def word(value: object) -> str:
        return "unknown" if value is None else "on" if value is True else "off" if value is False else str(value)

    cpus = ",".join(map(str, facts.cpus_usable))
    return [
        ("CPU", facts.cpu_model),
        ("CPUs that may be used", f"{cpus} ({len(facts.cpus_usable)} of {facts.cpus_online})"),
        ("memory", format_bytes(facts.memory_bytes)),
        ("system", f"{facts.os}, kernel {facts.kernel}"),
        ("governor, turbo, SMT", f"{word(facts.governor)}, {word(facts.turbo)}, {word(facts.smt)}"),
        ("virtualised", facts.virtualised or "no sign of it"),
        ("open files", f"{facts.nofile_soft}, at most {facts.nofile_hard}"),
        ("load, CPU pressure, steal", f"{facts.load_average}, {word(facts.pressure_cpu)} %, {word(facts.steal_share)}"),
        ("CPU quota", word(facts.cpu_quota) if facts.cpu_quota else "none"),
    ]
