"""Prints a run's ranking: caveats, a table per test type, and a summary."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TextIO

import rich.box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from harness.console import SafeConsole
from harness.plan.testtypes.registry import footnote
from harness.records.run_info import RunInfo
from harness.report import Report, summary
from harness.report.tables import Column, TextTable, ranking_tables, separate_common_remarks
from harness.report.verification_results import ImplementationVerdict
from harness.stats.ranking_model import Ranking
from harness.stats.unranked import is_ranked
from harness.units import format_seconds

PIPE_WIDTH = 10_000  # output width for files and pipes, so that no column moves and no name is folded
CELL_STYLES = {"slower": "red", "failed": "red", "faster": "green"}
GAP = 2  # width of the space between cells in characters
MIN_NAME_WIDTH = 20  # names are not folded to less than this width; columns move to a second table instead
ROW_NAMES = {"implementation", "request"}  # headers of the columns with row names, the only columns that are folded
LEFT_ALIGNED = ROW_NAMES | {"tie", "missing", "use case", "operation", "load", "verdict"}
RULES = rich.box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")  # draws only a line below the header


def make_console(file: TextIO | None = None) -> SafeConsole:
    """Return a console for ``file`` or stdout. If this is not a terminal, the width is $COLUMNS or else unlimited."""
    width = None
    if not (file or sys.stdout).isatty():
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() and 0 < int(columns) < PIPE_WIDTH else PIPE_WIDTH
    return SafeConsole(file=file, width=width, highlight=False)


def export(report: Report, out: TextIO) -> None:
    """Write caveats, tables and the summary as ``tfb run`` prints them at the end."""
    console, info = make_console(out), report.records.info
    print_ranking(info, report.ranking, console, every_load=report.every_load)
    print_summary(summary.summarize_run(info, report.ranking), console)


def print_ranking(info: RunInfo, ranking: Ranking, console: SafeConsole, *, every_load: bool = False) -> None:
    """Print the caveats and the headline table of each test type. ``every_load`` adds a table per load."""
    console.print(heading(info))
    tables, common_remarks = separate_common_remarks(ranking_tables(info, ranking, every_load=every_load))
    for problem in info.problems:
        console.print(Text("! " + problem.partition("\n")[0], style="red"))
    for remark in common_remarks:
        console.print(Text(f"! {remark}", style="yellow"))
    for caveat in caveats(info, ranking):
        console.print(Text(f"! {caveat}", style="dim"))
    for table in tables:
        print_table(table, console)
    console.print()
    for note in footnotes(info, ranking):
        console.print(Text(f"· {note}", style="dim"))


def print_summary(texts: summary.Summary, console: SafeConsole) -> None:
    """Print a run's summary, with suggestions for a more certain result."""
    if texts.lead:
        console.print(Text.assemble("\n", (texts.lead, "bold"), " ", texts.figures))
    if texts.improvements:
        console.print(Text(texts.improvements))


def print_verdicts(verdicts: Sequence[ImplementationVerdict], console: SafeConsole) -> None:
    """Print a line per implementation, including those that were not built or started."""
    console.print()
    for verdict in verdicts:
        console.print(format_verdict(verdict, console))


def format_verdict(verdict: ImplementationVerdict, console: SafeConsole) -> Text:
    """Return a verdict as a coloured line. On a terminal, the line starts with ✓ or ✗."""
    symbol, style = ("✓ ", "green") if verdict.verdict == "verified" else ("✗ ", "red")
    return Text(f"{symbol if console.is_terminal else ''}{verdict.line}", style)


def heading(info: RunInfo) -> Text:
    """Return the first lines of a report, which describe the run and the machines."""
    completed_at = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.completed_at))
    end = f"ended {completed_at}" if info.completed_at else "unfinished"
    machine = info.machine
    grade = f", machine grade {machine.grade}" if machine.grade else ""
    lines = [
        f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs, {machine.os}, kernel {machine.kernel}{grade}",
        *(
            f"{each.role}: {each.name} ({each.address}), {each.machine.cpu_model}, {len(each.machine.cpus_usable)} "
            f"CPUs, Docker {each.engine}, grade {each.machine.grade}"
            for each in info.machines
        ),
        *(
            f"{link.of} to {link.to}: round trip {format_seconds(link.round_trip)}, "
            f"{link.throughput * 8 / 1e9:.2f} Gbit/s"
            for link in info.links
        ),
    ]
    return Text.assemble(
        (f"Run {info.run_id}", "bold"),
        f"  {info.status}, profile {info.profile}, {info.runtime} runtime, seed {info.seed}, {end}",
        ("\n" + "\n".join(lines), "dim"),
    )


def footnotes(info: RunInfo, ranking: Ranking) -> list[str]:
    """Return notes that explain the figures in the tables."""
    notes = []
    if any(not test.is_scenario or ranking.orders is None for test in ranking.test_types.values()):
        notes += [
            f"req/s: completed 2xx responses in a closed loop ({info.generator}); µs CPU/req: CPU time of the server's "
            "processes per response (varies less than req/s on a shared machine)",
            "p50, p99: service time in a closed loop; to measure latency at a given rate, use --profile latency",
        ]
    if is_ranked(info):
        notes.append(
            "medians over processes with 95 % intervals; a rank of 2–4 means that the true rank may be 2nd, 3rd or 4th "
            "(95 % confidence); rows with the same letter are tied"
        )
    if floor := ranking.noise_floor:
        notes.append(
            f"noise floor (A/A, {floor.pairs} pairs of {floor.implementation}): throughput {floor.throughput:.1%}, "
            f"CPU per request {floor.cpu_per_request:.1%}; smaller differences are noise"
        )
    if ranking.latency:
        notes.append(
            "latency over load: measured from the intended send time (open loop, Poisson arrivals) to the last byte. "
            'Capacity at a goal: the highest tested rate that met the goal. The true capacity is below "missed at"'
        )
    if ranking.orders:
        notes += [f"{name}: {note}" for name in ranking.test_types if (note := footnote(name))]
    return notes


def caveats(info: RunInfo, ranking: Ranking) -> list[str]:
    """Return the ranking's notes and the machines' likely sources of noise."""
    others = [each for each in info.machines if each.machine.concerns != info.machine.concerns]
    concerns = [f"{each.name}: {concern}" for each in others for concern in each.machine.concerns]
    return [*ranking.notes, *info.machine.concerns, *concerns]


def print_table(table: TextTable, console: SafeConsole) -> None:
    """Print a table with remarks. Columns that do not fit into the console move to further tables below."""
    console.print(Text(f"\n{table.title}", style="italic"))
    names = [column for column in table.columns if column.header in ROW_NAMES]
    for number, columns in enumerate(split_columns(table.columns, names, console.width)):
        if number:
            console.print()
        _print_columns(columns, console, len(names) if number else 0)
    for remark in table.remarks:
        console.print(Text(f"  {remark}", style="yellow"))


def _print_columns(columns: Sequence[Column], console: SafeConsole, skipped: int = 0) -> None:
    """Print columns as a table. Omit rows in which all cells after the first ``skipped`` columns are empty."""
    table = Table(box=RULES, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for column in columns:
        table.add_column(
            column.header,
            justify="left" if column.header in LEFT_ALIGNED else "right",
            no_wrap=column.header not in ROW_NAMES,  # fold only names
            overflow="fold",
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        if set(cells[skipped:]) - {"", "–"}:
            table.add_row(*(Text(cell, CELL_STYLES.get(cell, "")) for cell in cells))
    console.print(table)


def split_columns(columns: Sequence[Column], names: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Split columns into tables that fit into ``width``. Each table after the first repeats the columns ``names``."""
    fitting, overflow = list(columns), list[Column]()
    while _table_width(fitting) > width and (lowest_priority := max(column.order for column in fitting)):
        overflow = [column for column in fitting if column.order == lowest_priority] + overflow
        fitting = [column for column in fitting if column.order != lowest_priority]
    yield fitting
    while overflow:
        count = len(overflow)
        while count > 1 and _table_width([*names, *overflow[:count]]) > width:
            count -= 1
        yield [*names, *overflow[:count]]
        overflow = overflow[count:]


def _table_width(columns: Sequence[Column]) -> int:
    """Return a table's width in characters if names are folded to ``MIN_NAME_WIDTH``."""
    widths = [max(map(cell_len, (each.header, *each.cells))) for each in columns]
    limits = [MIN_NAME_WIDTH if each.header in ROW_NAMES else PIPE_WIDTH for each in columns]
    return sum(map(min, widths, limits)) + GAP * (len(columns) - 1)
