"""``./tfb compare ROUND.json RUN``: a run beside a round that TechEmpower published."""

import json
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from harness.errors import Exit, UsageError
from harness.records import store
from harness.records.models import RunInfo
from harness.report import terminal
from harness.report.tables import Column, Shown
from harness.stats.published import Held, Round, hold, read_round
from harness.stats.ranking import rank

NOTE = (
    "Other machines, other generator, other network, often other versions: requests per second of the two are not "
    "divided by each other. × mean: over the geometric mean of those that both have; ranks are among these alone."
)


def is_round(name: str) -> bool:
    """Whether it is the name of a JSON file: runs are folders."""
    return name.endswith(".json") and Path(name).is_file()


def compare(round_: Path, run: Path, *, as_json: bool) -> int:
    """Show both; it decides nothing, so the exit code is 0 where there was something to hold side by side."""
    published = read_round(round_)
    records = store.read(run)
    held = hold(published, rank(records.info, records.trials, records.processes, records.verdicts))
    if not held.rows:
        raise UsageError(f"{round_} and {run} have no implementation in common")
    if as_json:
        print(json.dumps({"round": published.name, "environment": published.environment, **asdict(held)}))
    else:
        _show(published, records.info, held)
    return Exit.OK


def _show(published: Round, info: RunInfo, held: Held) -> None:
    console = terminal.console()
    columns = {
        "test": [row.test_type for row in held.rows],
        "implementation": [row.implementation for row in held.rows],
        "rank there": [f"{row.round_rank}" for row in held.rows],
        "rank here": [f"{row.run_rank}" for row in held.rows],
        "× mean there": [f"{row.round_share:.2f}" for row in held.rows],
        "× mean here": [f"{row.run_share:.2f}" for row in held.rows],
        "here ÷ there": [f"{row.run_share / row.round_share:.2f}" for row in held.rows],
    }
    title = (
        f"Round {published.name} ({published.environment}) beside run {info.run_id} ({info.machine.cpu_model}, "
        f"{len(info.machine.cpus_usable)} CPUs, {info.runtime} runtime)"
    )
    shown = tuple(Column(header=name, cells=tuple(cells)) for name, cells in columns.items())
    terminal.print_table(Shown(title=title, columns=shown), console)
    for found in held.agreements:
        against = "; ".join(f"{fast} before {slow}" for fast, slow in found.reversed_decided)
        told = f", against the round's order and decided here: {against}" if against else ""
        console.print(f"{found.test_type}: {found.same} of {found.pairs} pairs in the same order{told}")
    if held.only_run:
        console.print(f"not in the round: {', '.join(held.only_run)}")
    console.print(f"in the round only: {held.only_round} names")
    console.print(Text(f"· {NOTE}", "dim"))
