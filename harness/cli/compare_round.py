"""``./tfb compare ROUND.json RUN``: a run beside a round that TechEmpower published."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.cli.arguments import Parser
from harness.cli.settings import results_folder
from harness.errors import Exit, UsageError
from harness.records import store
from harness.records.models import RunInfo
from harness.stats.published import Held, Round, hold, read_round
from harness.stats.ranking import rank


def is_round(words: Sequence[str]) -> bool:
    """Whether the first name is that of a JSON file: runs are folders."""
    named = [word for word in words if not word.startswith("-")]
    return bool(named) and named[0].endswith(".json") and Path(named[0]).is_file()


def main(argv: Sequence[str]) -> int:
    """Show both; it decides nothing, so the exit code is 0 where there was something to hold side by side."""
    p = Parser(
        prog="./tfb compare", description="A run beside a results.json that TechEmpower published: order and ratios."
    )
    p.add_argument("round")
    p.add_argument("run")
    p.add_argument("--json", action="store_true", help="machine-readable output")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    options = p.parse_args(list(argv))
    published = read_round(Path(options.round))
    records = store.read(store.find(results_folder(options.results), options.run))
    ranking = rank(records.info, records.samples, records.replicates, records.verdicts)
    held = hold(published, ranking)
    if not held.rows:
        raise UsageError(f"{options.round} and {options.run} have no implementation in common")
    if options.json:
        print(json.dumps({"round": published.name, "environment": published.environment, **asdict(held)}))
        return Exit.OK
    _show(published, records.info, held)
    return Exit.OK


def _show(published: Round, info: RunInfo, held: Held) -> None:
    console = Console()
    console.print(
        f"Round {published.name} ({published.environment})\nbeside run {info.run_id} ({info.machine.cpu_model}, "
        f"{len(info.machine.cpus_usable)} CPUs, {info.runtime} runtime)",
        highlight=False,
    )
    table = Table(box=None, padding=(0, 2))
    for header in ("test", "implementation", "rank there", "rank here", "× mean there", "× mean here", "here ÷ there"):
        table.add_column(header, justify="left" if header in ("test", "implementation") else "right")
    for row in held.rows:
        table.add_row(
            row.test_type,
            row.implementation,
            f"{row.round_rank}",
            f"{row.run_rank}",
            f"{row.round_share:.2f}",
            f"{row.run_share:.2f}",
            f"{row.run_share / row.round_share:.2f}",
        )
    console.print(table)
    for found in held.agreements:
        against = "; ".join(f"{fast} before {slow}" for fast, slow in found.reversed_decided)
        words = f", against the round's order and decided here: {against}" if against else ""
        console.print(
            f"{found.test_type}: {found.same} of {found.pairs} pairs in the same order{words}", highlight=False
        )
    if held.only_run:
        console.print(f"not in the round: {', '.join(held.only_run)}", highlight=False)
    console.print(f"in the round only: {held.only_round} names", highlight=False)
    console.print(
        "· Other machines, other generator, other network, often other versions: requests per second of the two are "
        "not divided by each other. × mean: over the geometric mean of those that both have; ranks are "
        "among these alone.",
        style="dim",
        highlight=False,
    )
