"""The ranking on a terminal: one table a test type, tie groups separated by rules, then overall."""

import sys
from collections.abc import Sequence
from typing import TextIO

import rich.box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from harness.rank.model import Ranking, Table
from harness.report import Report, latency
from harness.report.cells import HEADERS, OVERALL_HEADERS, cells, overall_cells, title
from harness.results.records import RunInfo
from harness.units import format_seconds

LEFT = {"implementation", "remarks", "missing"}
# A terminal of 80 columns has no room for these; the other renderings and the dashboard show them.
WIDE_ONLY = {"95 %", "memory", "first answer", "errors", "CPU rank"}
WIDE = 140
PIPE_WIDTH = 180  # of a file or pipe, which has no edge


def console(out: TextIO | None = None) -> Console:
    """As wide as the terminal, or wide enough for everything where there is none; stdout unless ``out`` is given."""
    return Console(file=out, width=None if (out or sys.stdout).isatty() else PIPE_WIDTH)


def export(report: Report, out: TextIO) -> None:
    """The tables as they are shown when a run ends."""
    show(report.records.info, report.ranking, console(out), levels=report.every_level)


def show(info: RunInfo, ranking: Ranking, console: Console, *, levels: bool = False) -> None:
    """Print the ranking; with ``levels`` every level's table, otherwise the headline of each test type."""
    console.print(heading(info))
    for test_type in ranking.test_types.values():
        for table in (test_type.headline, *(test_type.levels if levels and len(test_type.levels) > 1 else ())):
            console.print()
            console.print(_table(table, wide=console.width >= WIDE))
    for heading_text, headers, lines in latency.tables(ranking):
        console.print()
        console.print(_plain(heading_text, headers, lines))
    if ranking.overall:
        console.print()
        console.print(_overall(ranking))
    for note in (*ranking.notes, *footnotes(info, ranking)):
        console.print(Text(f"· {note}", style="dim"))
    for problem in info.problems:
        console.print(Text(f"! {problem.splitlines()[0]}", style="red"))


def heading(info: RunInfo) -> Text:
    """Which run this is."""
    took = format_seconds(info.completed_at - info.started_at) if info.completed_at else "unfinished"
    machine = info.machine
    return Text.assemble(
        (f"Run {info.run_id}", "bold"),
        f"  {info.status}, profile {info.profile}, {info.runtime} runtime, seed {info.seed}, {took}\n",
        (f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs, {machine.os}, kernel {machine.kernel}", "dim"),
        (f", machine grade {machine.grade}" if machine.grade else "", "dim"),
    )


def footnotes(info: RunInfo, ranking: Ranking) -> list[str]:
    """What a reader must know of the figures."""
    notes = [
        "req/s: completed 2xx responses of a closed loop (wrk); µs CPU/req: CPU time of the server's processes per "
        "response, the steadier figure on a shared machine",
        "medians over replicates with 95 % intervals; ranks that the data does not exclude are shown as 2–3",
    ]
    if info.blocks_expected < 5:
        notes.append(f"{info.blocks_expected} replicate(s): provisional; --profile standard decides more")
    if ranking.noise_floor:
        floor = ranking.noise_floor
        notes.append(
            f"noise floor (A/A, {floor.pairs} pairs of {floor.implementation}): throughput {floor.throughput:.1%}, "
            f"CPU per request {floor.cpu_per_request:.1%}; no smaller difference is called one"
        )
    notes += latency.notes(ranking)
    notes += list(info.machine.concerns)
    return notes


def _table(table: Table, *, wide: bool) -> RichTable:
    shown = [index for index, header in enumerate(HEADERS) if wide or header not in WIDE_ONLY]
    out = RichTable(title=title(table), box=rich.box.SIMPLE_HEAD, padding=(0, 1), title_justify="left")
    for index in shown:
        left = HEADERS[index] in LEFT
        out.add_column(HEADERS[index], justify="left" if left else "right", no_wrap=HEADERS[index] != "remarks")
    for row, following in zip(table.rows, (*table.rows[1:], None), strict=True):
        texts = cells(row, show_level=table.level is None, wide=wide)
        group = row.throughput.tie_group if row.throughput else None
        after = following.throughput.tie_group if following and following.throughput else None
        style = "" if row.ranked else "dim"
        out.add_row(*(texts[index] for index in shown), style=style, end_section=group != after)
    return out


def _plain(text: str, headers: Sequence[str], lines: Sequence[Sequence[str]]) -> RichTable:
    out = RichTable(title=text, box=rich.box.SIMPLE_HEAD, padding=(0, 1), title_justify="left")
    for header in headers:
        out.add_column(header, justify="left" if header in LEFT else "right", no_wrap=header != "remarks")
    for line in lines:
        out.add_row(*line)
    return out


def _overall(ranking: Ranking) -> RichTable:
    caption = f"geometric mean of throughput ratios to {ranking.reference}, scoring version {ranking.scoring_version}"
    out = RichTable(
        title="overall",
        box=rich.box.SIMPLE_HEAD,
        padding=(0, 1),
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    for header in OVERALL_HEADERS:
        out.add_column(header, justify="left" if header in LEFT else "right")
    for score in ranking.overall:
        out.add_row(*overall_cells(score))
    return out
