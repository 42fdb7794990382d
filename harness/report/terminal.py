"""Prints the ranking: a summary, followed by a table for each test type with rules between tie groups."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

import rich.box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from harness.console import SafeConsole
from harness.plan.testtypes.registry import footnote
from harness.records.run_info import RunInfo
from harness.report import Report, summary
from harness.report.tables import Column, TextTable, ranking_tables
from harness.report.verification_results import ImplementationVerdict
from harness.stats.ranking_model import Ranking
from harness.stats.unranked import is_ranked
from harness.units import format_seconds

PIPE_WIDTH = 10_000  # width of output to a file or pipe; no columns are removed or folded
GAP = 2  # terminal columns between cells
MIN_NAME_WIDTH = 20  # minimum width of names; columns are removed before names are folded below this width
LEFT_ALIGNED = {"implementation", "missing", "use case", "operation", "load"}
# A line below the header, and a dashed line between tie groups.
RULES = rich.box.Box("    \n    \n ── \n    \n ╌╌ \n    \n    \n    \n")


def make_console(out: TextIO | None = None) -> SafeConsole:
    """Return a console for ``out`` or stdout.

    In a pipe, the width is the value of COLUMNS, or unlimited. Otherwise it is the width of the terminal.
    """
    width = None
    if not (out or sys.stdout).isatty():
        asked = os.environ.get("COLUMNS", "")
        width = int(asked) if asked.isdecimal() and 0 < int(asked) < PIPE_WIDTH else PIPE_WIDTH
    return SafeConsole(file=out, width=width, highlight=False)


def export(report: Report, out: TextIO) -> None:
    """Write the summary and the tables in the same form as at the end of a run."""
    print_ranking(report.records.info, report.ranking, make_console(out), every_load=report.every_load)


def print_ranking(info: RunInfo, ranking: Ranking, console: SafeConsole, *, every_load: bool = False) -> None:
    """Print the ranking with the headline table of each test type. ``every_load`` adds a table for each load."""
    console.print(heading(info))
    texts = summary.summarize_run(info, ranking)
    if texts.lead:
        console.print(Text.assemble("\n", (texts.lead, "bold"), " ", " ".join(filter(None, texts[1:]))))
    tables = list(ranking_tables(info, ranking, every_load=every_load))
    remarks = [{*table.remarks} for table in tables if not table.sums_up]
    everywhere = set.intersection(*remarks) if len(remarks) > 1 else set()
    for table in tables:
        print_table(replace(table, remarks=tuple(each for each in table.remarks if each not in everywhere)), console)
    for remark in sorted(everywhere):
        console.print(Text(f"\nin every table: {remark}", style="yellow"))
    console.print()
    for note in (*ranking.notes, *footnotes(info, ranking)):
        console.print(Text(f"· {note}", style="dim"))
    for problem in info.problems:
        console.print(Text("! " + problem.partition("\n")[0], style="red"))


def print_verdicts(verdicts: Sequence[ImplementationVerdict], console: SafeConsole) -> None:
    """Print a line for each implementation of a run, including implementations that were not built or started."""
    console.print()
    for verdict in verdicts:
        console.print(Text(verdict.line, style="" if verdict.verdict == "verified" else "red"), soft_wrap=True)


def heading(info: RunInfo) -> Text:
    """Return the first lines of a report, which describe the run and the machines."""
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.completed_at))
    ended = f"ended {at}" if info.completed_at else "unfinished"
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
        f"  {info.status}, profile {info.profile}, {info.runtime} runtime, seed {info.seed}, {ended}",
        ("\n" + "\n".join(lines), "dim"),
    )


def footnotes(info: RunInfo, ranking: Ranking) -> list[str]:
    """Return notes that explain the figures in the tables."""
    notes = []
    if any(not test.is_scenario or ranking.orders is None for test in ranking.test_types.values()):
        notes += [
            f"req/s: completed 2xx responses of a closed loop ({info.generator}); µs CPU/req: CPU time of the server's "
            "processes per response, which varies less on a shared machine",
            "p50, p99: service time of the closed loop; to measure latency at a given rate, use --profile latency",
        ]
    if is_ranked(info):
        notes.append(
            "medians over processes with 95 % intervals; ranks are possible ranks (95 %): 2–4 means that the true rank "
            "may be 2nd, 3rd or 4th; rows between two rules are tied"
        )
    if floor := ranking.noise_floor:
        notes.append(
            f"noise floor (A/A, {floor.pairs} pairs of {floor.implementation}): throughput {floor.throughput:.1%}, "
            f"CPU per request {floor.cpu_per_request:.1%}; smaller differences are noise"
        )
    if ranking.latency:
        notes.append(
            "latency over load: from the intended send time of Poisson arrivals (open loop) to the last byte; capacity "
            'at a goal: the highest rate that met the goal; the true capacity lies between this rate and "missed at"'
        )
    if ranking.orders:
        notes += [f"{name}: {note}" for name in ranking.test_types if (note := footnote(name))]
    notes += info.machine.concerns
    others = [each for each in info.machines if each.machine.concerns != info.machine.concerns]
    return notes + [f"{each.name}: {concern}" for each in others for concern in each.machine.concerns]


def print_table(table: TextTable, console: SafeConsole) -> None:
    """Print a table with the columns that fit into the console, and the remarks."""
    console.print(Text(f"\n{table.title}", style="italic"))
    columns = fit_columns(table.columns, console.width)
    out = Table(box=RULES, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for column in columns:
        out.add_column(
            column.header,
            justify="left" if column.header in LEFT_ALIGNED else "right",
            no_wrap=column.header != "implementation",  # only names may be folded
            overflow="fold",
        )
    for index, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        out.add_row(*cells, end_section=index in table.breaks)
    console.print(out)
    for remark in table.remarks:
        console.print(Text(f"  {remark}", style="yellow"))


def fit_columns(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns that fit into the width. The least important columns are removed first."""
    kept = list(columns)
    while _table_width(kept) > width and (least := max(column.order for column in kept)):
        kept = [column for column in kept if column.order != least]
    return kept


def _table_width(columns: Sequence[Column]) -> int:
    """Return the width of a table with names folded to ``MIN_NAME_WIDTH``."""
    longest = [max(map(cell_len, (each.header, *each.cells))) for each in columns]
    most = [MIN_NAME_WIDTH if each.header == "implementation" else PIPE_WIDTH for each in columns]
    return sum(map(min, longest, most)) + GAP * (len(columns) - 1)
