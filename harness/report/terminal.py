"""The ranking on a terminal: one table a test type, tie groups separated by rules, then overall."""

import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

import rich.box
from rich.table import Table as RichTable
from rich.text import Text

from harness.console import SafeConsole
from harness.records.models import RoleMachine, RunInfo
from harness.report import Report, closed_loop, latency, orders, wording
from harness.report.cells import OVERALL_HEADERS, overall_cells, replicates, title
from harness.report.layout import GAP, LEFT, lay
from harness.report.sentence import OVERALL, sentence
from harness.stats.model import Comparability, Ranking, Table, TestTypeRanking
from harness.stats.orders import TYPE as ORDER
from harness.units import format_seconds

PIPE_WIDTH = 10_000  # of a file or pipe, which has no edge: nothing is left out or folded there
# Only a line between the head and the rows, and a thin one between groups of rows that are tied.
RULES = rich.box.Box("    \n    \n ── \n    \n ╌╌ \n    \n    \n    \n")


def console(out: TextIO | None = None) -> SafeConsole:
    """As wide as the terminal, or wide enough for everything where there is none; stdout unless ``out`` is given."""
    return SafeConsole(file=out, width=None if (out or sys.stdout).isatty() else PIPE_WIDTH, highlight=False)


def export(report: Report, out: TextIO) -> None:
    """The tables as they are shown when a run ends."""
    show(report.records.info, report.ranking, console(out), levels=report.every_level)


def show(info: RunInfo, ranking: Ranking, console: SafeConsole, *, levels: bool = False) -> None:
    """Print the ranking; with ``levels`` every level's table, otherwise the headline of each test type."""
    console.print(heading(info))
    lead, *rest = _answer(info, ranking)
    if lead:
        console.print(Text.assemble("\n", (lead, "bold"), " ", " ".join(part for part in rest if part)))
    tables = [
        table
        for test_type in shown(ranking)
        for table in (test_type.headline, *(test_type.levels if levels and len(test_type.levels) > 1 else ()))
    ]
    everywhere = wording.shared(tables)
    if everywhere:
        rows = [row for table in tables for row in table.rows]
        words = ", ".join(wording.name(word) for word in wording.in_order(everywhere, rows))
        console.print(Text.assemble("\nAll rows: ", (words, "yellow")))
    for table in tables:
        _show_table(table, console, everywhere)
    further = orders.tables(info, ranking, every_operation=levels)
    for heading_text, headers, lines in (*latency.tables(ranking), *further):
        console.print(Text(f"\n{heading_text}", style="italic"))
        console.print(_plain(headers, lines))
    if ranking.overall:
        caption = (
            f"geometric mean of throughput ratios to {ranking.reference}, scoring version {ranking.scoring_version}"
        )
        console.print(Text.assemble(("\noverall", "italic"), (f"  {caption}", "dim")))
        console.print(_plain(OVERALL_HEADERS, [overall_cells(score) for score in ranking.overall]))
    console.print()
    for note in (*ranking.notes, *footnotes(info, ranking)):
        console.print(Text(f"· {note}", style="dim"))
    for problem in info.problems:
        console.print(Text(f"! {problem.splitlines()[0]}", style="red"))


def shown(ranking: Ranking) -> list[TestTypeRanking]:
    """The test types whose tables are of throughput; the order service, whose load is given, has tables of its own."""
    return [one for kind, one in ranking.test_types.items() if ranking.orders is None or kind != ORDER]


def _answer(info: RunInfo, ranking: Ranking) -> Sequence[str]:
    """Who leads, by what, how sure: the sentence on which the page opens."""
    kinds = [*([OVERALL] if ranking.overall else []), *ranking.test_types]
    return sentence(info, ranking, kinds[0]).parts if kinds else ("",)


def heading(info: RunInfo) -> Text:
    """Which run this is."""
    took = format_seconds(info.completed_at - info.started_at) if info.completed_at else "unfinished"
    machine = info.machine
    return Text.assemble(
        (f"Run {info.run_id}", "bold"),
        f"  {info.status}, profile {info.profile}, {info.runtime} runtime, seed {info.seed}, {took}\n",
        (f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs, {machine.os}, kernel {machine.kernel}", "dim"),
        (f", machine grade {machine.grade}" if machine.grade else "", "dim"),
        *((f"\n{line}", "dim") for line in several(info)),
    )


def several(info: RunInfo) -> Sequence[str]:
    """Each role's machine with its grade, and what the links carry; nothing of a run on one machine."""
    machines = [
        f"{each.role}: {each.name} ({each.address}), {each.machine.cpu_model}, {len(each.machine.cpus_usable)} CPUs, "
        f"Docker {each.engine}, grade {each.machine.grade}"
        for each in info.machines
    ]
    links = [
        f"{link.of} to {link.to}: round trip {format_seconds(link.round_trip)}, {link.throughput * 8 / 1e9:.2f} Gbit/s"
        for link in info.links
    ]
    return (*machines, *links)


def _assumed(ranking: Ranking) -> Iterator[str]:
    """What rows of one process say that their intervals take for granted."""
    for test in ranking.test_types.values():
        for row in test.headline.rows:
            if row.throughput and row.throughput.components and row.throughput.components.text:
                yield row.throughput.components.text


def _compared(ranking: Ranking) -> list[str]:
    """What the differences of rows are held against, by metric; where tables differ in it, with the test types."""
    by_words: dict[str, list[str]] = {}
    for metric, field in (("req/s", "throughput_comparability"), ("CPU", "cpu_comparability")):
        kinds: dict[str, list[str]] = {}
        for kind, test in ranking.test_types.items():
            how: Comparability | None = getattr(test.headline, field)
            if how is not None and len(test.headline.rows) > 1:
                kinds.setdefault(how.text, []).append(kind)
        words = [f"{text} ({', '.join(of)})" if len(kinds) > 1 else text for text, of in kinds.items()]
        by_words.setdefault(" and ".join(words), []).append(metric)
    said = "; ".join(f"{' and '.join(metrics)} {words}" for words, metrics in by_words.items() if words)
    return [f"rows are compared: {said}"] if said else []


def footnotes(info: RunInfo, ranking: Ranking) -> list[str]:
    """What a reader must know of the figures."""
    generator = "loadgen" if "loadgen" in info.command else "wrk"
    closed = [
        f"req/s: completed 2xx responses of a closed loop ({generator}); µs CPU/req: CPU time of the server's "
        "processes per response, the steadier figure on a shared machine",
    ]
    notes = [
        *(closed if shown(ranking) else []),
        "medians over replicates with 95 % intervals; ranks are possible ranks (95 %): 2–4 means that the true rank "
        "may be 2nd, 3rd or 4th; between two rules rows are tied",
    ]
    if info.blocks_expected < 5:
        planned = wording.counted(info.blocks_expected, "replicate")
        planned = next(iter(_assumed(ranking)), planned)
        notes.append(f"{planned}: provisional; for firmer results use --profile standard")
    if ranking.noise_floor:
        floor = ranking.noise_floor
        notes.append(
            f"noise floor (A/A, {floor.pairs} pairs of {floor.implementation}): throughput {floor.throughput:.1%}, "
            f"CPU per request {floor.cpu_per_request:.1%}; smaller differences are noise"
        )
    notes += _compared(ranking)
    notes += closed_loop.notes(ranking)
    notes += latency.notes(ranking)
    notes += orders.notes(ranking)
    notes += list(info.machine.concerns)
    notes += [f"{each.name}: {concern}" for each in others(info) for concern in each.machine.concerns]
    return notes


def others(info: RunInfo) -> Sequence[RoleMachine]:
    """The machines beside the server's, whose concerns differ from its own."""
    return [each for each in info.machines if each.machine.concerns != info.machine.concerns]


def _show_table(table: Table, console: SafeConsole, everywhere: frozenset[str]) -> None:
    """One table with its title, what all of its rows share, and the meaning of its letters."""
    here = wording.shared([table]) - everywhere
    laid = lay(table, console.width, everywhere | here)
    counts = {replicates(row.throughput) for row in table.rows if row.throughput}
    in_turns = all(row.throughput.components for row in table.rows if row.throughput)
    units = ("process", "processes") if in_turns else ("replicate", "replicates")
    every = ""
    if len(counts) == 1:
        number = counts.pop()
        every = f"  {number} {units[number != 1]} each"
    console.print(Text.assemble((f"\n{title(table)}", "italic"), (every, "dim")))
    if here:
        words = ", ".join(wording.name(word) for word in wording.in_order(here, table.rows))
        console.print(Text.assemble("All rows: ", (words, "yellow")))
    out = _grid(laid.headers, laid.name_width)
    groups = [row.throughput.tie_group if row.throughput and row.ranked else None for row in table.rows]
    for index, (row, texts) in enumerate(zip(table.rows, laid.rows, strict=True)):
        own, following = groups[index], groups[index + 1] if index + 1 < len(groups) else None
        ties = groups.count(own) > 1 or groups.count(following) > 1
        out.add_row(*texts, style="" if row.ranked else "dim", end_section=own != following and ties)
    console.print(out)
    for letter, text in laid.legend:
        console.print(Text.assemble((f"{letter:>4}  ", "yellow"), text))


def _grid(headers: Sequence[str], name_width: int | None = None) -> RichTable:
    out = RichTable(box=RULES, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for header in headers:
        name = header in ("implementation", "name")
        out.add_column(
            header,
            justify="left" if header in LEFT or not header else "right",
            no_wrap=header != "remarks" and not name,
            overflow="fold",
            width=name_width if name else None,
            style="yellow" if header in ("", "remarks") else "",
        )
    return out


def _plain(headers: Sequence[str], lines: Sequence[Sequence[str]]) -> RichTable:
    out = _grid(headers)
    for line in lines:
        out.add_row(*line)
    return out
