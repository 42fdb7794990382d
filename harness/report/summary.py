"""Summarizes a run in a few sentences: title, order of implementations, machine, and possible improvements.

The command line and the dashboard show the same sentences. All figures are taken from the ranking.
"""

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from harness.plan.testtypes.registry import ranked_operation
from harness.records.run_info import RunInfo
from harness.report.tables import format_count, format_ratio, row_standing, sort_by_position
from harness.stats.ranking_model import Quantity, Ranking, Standing
from harness.stats.unranked import is_ranked
from harness.units import format_micros, format_rate

QUANTITIES: tuple[Quantity, ...] = ("cpu", "throughput")
OVERALL = "overall"
SCENARIO = "scenario"
MeasureTexts = tuple[str, Callable[[float], str], str]  # name of the quantity, number format, unit
MEASURES: dict[tuple[str, Quantity], MeasureTexts] = {
    (OVERALL, "cpu"): ("CPU per request", "{:.2f}".format, "times the baseline"),
    (OVERALL, "throughput"): ("throughput", "{:.2f}".format, "times the baseline"),
    (SCENARIO, "cpu"): ("CPU per arrival", format_micros, "µs of CPU per arrival"),
    (SCENARIO, "throughput"): ("response time", lambda seconds: f"{seconds * 1e3:,.2f}", "ms for {operation}"),
    ("", "cpu"): ("CPU per request", format_micros, "µs of CPU per request"),
    ("", "throughput"): ("throughput", format_rate, "requests/s"),
}
ENOUGH_PROCESSES = 5  # per implementation; with fewer processes, intervals are wide
MAX_NAMES = 4
MAX_GROUPS = 5
MAX_IN_TITLE = 3
TIME_LIKE_NAME = re.compile(r"[\d\s:._TZ-]+")  # a run name that consists only of digits and separators
TEST_NAMES = {
    "json": "JSON",
    "plaintext": "Plaintext",
    "db": "Single query",
    "query": "Multiple queries",
    "fortune": "Fortunes",
    "update": "Updates",
    "cached-query": "Cached queries",
    "hello": "Hello",
    "delay": "Delay",
    "fan-out": "Fan-out",
    "order": "Order service",
}
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")

RankedRows = list[tuple[str, Standing]]  # (implementation, standing), best first


def run_title(info: RunInfo) -> str:
    """Return the name given by the user, or a title, for example ``es4x, express and vertx-web, 7 test types``."""
    name = info.name.strip()
    if name and name != info.run_id and not TIME_LIKE_NAME.fullmatch(name):
        return name
    names = [item.name for item in info.implementations]
    if not names:
        return name or info.run_id
    kinds = list(info.loads)
    who = f"{len(names)} implementations" if len(names) > MAX_IN_TITLE else _join_names(names)
    what = ", ".join(kinds) if len(kinds) <= MAX_IN_TITLE else f"{len(kinds)} test types"
    return f"{who}, {what}" if kinds else who


class Summary(NamedTuple):
    """A summary in four parts. Parts without content are empty."""

    lead: str = ""  # order of the implementations
    figures: str = ""  # figures of the best implementations, and ratios to the best
    place: str = ""  # machine and profile
    improvements: str = ""  # how to make the result more certain

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


def summarize_run(info: RunInfo, ranking: Ranking) -> Summary:
    """Summarize the whole run by the leading metric of the machine, and then by the other metric."""
    kind = OVERALL if ranking.overall else next(iter(ranking.test_types), "")
    if not kind:
        return Summary()
    found = summarize(info, ranking, kind, ranking.leading)
    other: Quantity = "throughput" if ranking.leading == "cpu" else "cpu"
    if not is_ranked(info) or not _ranked_rows(ranking, kind, other):
        return found
    beside = summarize(info, ranking, kind, other).lead
    return found._replace(figures=f"{found.figures} {beside}".strip())


def summarize(info: RunInfo, ranking: Ranking, kind: str, quantity: Quantity) -> Summary:
    """Summarize a test type, or the ``overall`` scores, by a metric."""
    if not is_ranked(info):
        text = f"Profile {info.profile} only checks that implementations run; the figures do not rank them."
        return Summary(lead=text, place=_describe_machine(info))
    placed = _ranked_rows(ranking, kind, quantity)
    by = _measure(ranking, kind, quantity)[0]
    subject = f"{'Overall' if kind == OVERALL else TEST_NAMES.get(kind, kind)}, by {by}"
    if not placed:
        nothing = f"{subject}: no measurement can be ranked."
        return Summary(lead=nothing, place=_describe_machine(info))
    groups = [list(group) for _, group in groupby(placed, lambda item: item[1].tie_group)]
    lead = (
        f"{subject}: only {placed[0][0]} was measured."
        if len(placed) == 1
        else f"{subject}: {_describe_order(groups)}."
    )
    if info.status == "running":
        lead = f"So far: {lead}"
    figures = _describe_figures(groups, _measure(ranking, kind, quantity))
    return Summary(lead, figures, _describe_machine(info), _suggest_improvements(info, placed))


def _measure(ranking: Ranking, kind: str, quantity: Quantity) -> MeasureTexts:
    """Return name, number format and unit of the compared quantity."""
    scenario = kind in ranking.test_types and ranking.test_types[kind].is_scenario
    compared, format_figure, unit = MEASURES[OVERALL if kind == OVERALL else SCENARIO if scenario else "", quantity]
    return compared, format_figure, unit.format(operation=ranked_operation(kind))


def summarize_all(info: RunInfo, ranking: Ranking) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return all summaries of a run as tuples of parts, by test type (or ``overall``) and metric."""
    kinds = [*([OVERALL] if ranking.overall else []), *ranking.test_types]
    return {kind: {each: tuple(summarize(info, ranking, kind, each)) for each in QUANTITIES} for kind in kinds}


def _ranked_rows(ranking: Ranking, kind: str, quantity: Quantity) -> RankedRows:
    found: list[tuple[str, Standing | None]]
    if kind == OVERALL:
        found = [(s.implementation, s.cpu if quantity == "cpu" else s.throughput) for s in ranking.overall]
    elif ranking.test_types[kind].is_scenario and ranking.orders and ranking.orders.tables:
        rows = ranking.orders.tables[0].rows
        found = [(r.implementation, row_standing(r, "cpu") if quantity == "cpu" else r.response) for r in rows]
    else:
        headline = ranking.test_types[kind].headline
        found = [(row.implementation, row_standing(row, quantity)) for row in headline.rows]
    return sort_by_position([(name, each) for name, each in found if each is not None], lambda item: item[1])


# ---- order, figures, machine, improvements ---------------------------------------------------------------------------


def _describe_order(groups: Sequence[RankedRows]) -> str:
    """Describe the order, for example ``vertx-web first; es4x rank 2–3; resteasy and express tie``."""
    if len(groups) == 1:
        return f"{_join_group(groups[0])} tie; no leader is established"
    found, place = [], 0
    for group in groups:
        ordinal = ORDINALS[place] if place < len(ORDINALS) else "last" if group is groups[-1] else f"rank {place + 1}"
        rank = group[0][1].rank
        alone = ordinal if rank.low == rank.high else f"rank {rank.label}"
        found.append(f"{_join_group(group)} {'tie' if len(group) > 1 else alone}")
        place += len(group)
    if len(found) > MAX_GROUPS:
        between = sum(map(len, groups[MAX_GROUPS - 1 : -1]))
        found = [*found[: MAX_GROUPS - 1], f"{between} more in between", found[-1]]
    return "; ".join(found)


def _join_group(group: RankedRows) -> str:
    names = [name for name, _ in group]
    if len(names) > MAX_NAMES:
        names = [*names[: MAX_NAMES - 1], f"{len(names) - MAX_NAMES + 1} more"]
    return _join_names(names)


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _describe_figures(groups: Sequence[RankedRows], measure: MeasureTexts) -> str:
    """Describe the figures of the best group, and the ratios of the next and the last implementation to the best."""
    front = groups[0]
    _, show, unit = measure
    figures = [each.estimate.median for _, each in front]
    between = f"{show(min(figures))} to " if len(front) > 1 else ""
    told = [f"{_join_group(front)}: {between}{show(max(figures))} {unit}"]
    behind = {name: each.to_best for name, each in (*groups[1:2][0][:1], *groups[-1][-1:])} if groups[1:] else {}
    told += [f"{name} {format_ratio(to_best)} of the best" for name, to_best in behind.items() if to_best]
    counts = [each.estimate.processes for group in groups for _, each in group]
    fewest = f"{min(counts)} to " if min(counts) < max(counts) else ""
    return f"{', '.join(told)} ({fewest}{format_count(max(counts), 'process')} of each)."


def _describe_machine(info: RunInfo) -> str:
    machine = info.machine
    if not machine.cpus_online:
        return ""
    grade = f", machine grade {machine.grade}" if machine.grade else ""
    virtual = f", virtualised ({machine.virtualised})" if machine.virtualised else ""
    model = " ".join(machine.cpu_model.split())
    return f"Measured on {model}, {format_count(machine.cpus_online, 'CPU')}{virtual}{grade}, profile {info.profile}."


def _suggest_improvements(info: RunInfo, placed: Sequence[tuple[str, Standing]]) -> str:
    helps = []
    if min(each.estimate.processes for _, each in placed) < ENOUGH_PROCESSES:
        helps.append("more processes (--profile standard)")
    if info.machine.concerns:
        helps.append(f"a quieter machine ({info.machine.concerns[0]})")
    return f"For a more certain result, use {'; '.join(helps)}." if helps else ""
