"""``./tfb doctor --server-host …``: the machines of a run, and the links between them."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from harness.console import SafeConsole
from harness.errors import Exit
from harness.plan.hosts import Hosts
from harness.runtime.machines.checkup import Checked, Link, check


def main(hosts: Hosts, *, as_json: bool) -> int:
    """Show every machine and link; exit code 3 when a run could not use one."""
    with tempfile.TemporaryDirectory(prefix="tfb-doctor-") as scratch:
        machines, links = check(hosts, Path(scratch))
    if as_json:
        print(json.dumps({"machines": [asdict(each) for each in machines], "links": [asdict(each) for each in links]}))
    else:
        _print(machines, links)
    lacking = any(each.missing for each in machines) or any(link.failed for link in links)
    return Exit.ENVIRONMENT if lacking else Exit.OK


def _print(machines: list[Checked], links: list[Link]) -> None:
    console = SafeConsole(highlight=False)
    for each in machines:
        table = Table(
            box=None, padding=(0, 2), title=f"{each.roles}: {each.name}", title_justify="left", show_header=False
        )
        for name, value in each.facts:
            table.add_row(name, value)
        console.print(table)
        if each.missing:
            console.print(f"! {each.missing}", style="red", markup=False)
        for concern in each.concerns:
            console.print(f"· {concern}", markup=False)
        console.print()
    for link in links:
        if link.round_trip is None or link.throughput is None:
            console.print(f"! {link.of} → {link.to}: {link.failed}", style="red", markup=False)
            continue
        console.print(
            f"{link.of} → {link.to}: round trip {link.round_trip * 1e6:,.0f} µs, "
            f"{link.throughput * 8 / 1e9:.2f} Gbit/s",
            markup=False,
        )
        if link.concern:
            console.print(f"· {link.concern}", markup=False)
