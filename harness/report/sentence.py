"""The title of a run, and its answer in a few sentences: who is settled before whom, who ties, where, what would help.

Pure: the command line and the page show the same words. Everything is read from the ranking; nothing is estimated here.
"""

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from harness.plan.testtypes.registry import ranked_operation
from harness.records.run_info import RunInfo
from harness.report.tables import by_place, counted, ratio, standing
from harness.stats.ranking_model import Quantity, Ranking, Standing
from harness.stats.unranked import is_ranked
from harness.units import format_micros, format_rate

QUANTITIES: tuple[Quantity, ...] = ("cpu", "throughput")
OVERALL = "overall"
SCENARIO = "scenario"
MeasureTexts = tuple[str, Callable[[float], str], str]  # compared quantity, its format, its unit
MEASURES: dict[tuple[str, Quantity], MeasureTexts] = {
    (OVERALL, "cpu"): ("CPU per request", "{:.2f}".format, "times as good as the reference"),
    (OVERALL, "throughput"): ("throughput", "{:.2f}".format, "times as good as the reference"),
    (SCENARIO, "cpu"): ("CPU per arrival", format_micros, "µs of CPU an arrival"),
    (SCENARIO, "throughput"): ("response time", lambda seconds: f"{seconds * 1e3:,.2f}", "ms for {operation}"),
    ("", "cpu"): ("CPU per request", format_micros, "µs of CPU a request"),
    ("", "throughput"): ("throughput", format_rate, "requests/s"),
}
FIRM_PROCESSES = 5  # with fewer an interval is honest but wide
MOST_NAMES = 4
MOST_GROUPS = 5
MOST_IN_TITLE = 3
TIME = re.compile(r"[\d\s:._TZ-]+")  # a name of digits and separators alone says when, not what
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

Placed = list[tuple[str, Standing]]  # implementations with their standings, best first


def title_of(info: RunInfo) -> str:
    """``es4x, express and vertx-web, 7 test types``, or the name that somebody gave it."""
    name = info.name.strip()
    if name and name != info.run_id and not TIME.fullmatch(name):
        return name
    names = [item.name for item in info.implementations]
    if not names:
        return name or info.run_id
    kinds = list(info.loads)
    who = f"{len(names)} implementations" if len(names) > MOST_IN_TITLE else _and(names)
    what = ", ".join(kinds) if len(kinds) <= MOST_IN_TITLE else f"{len(kinds)} test types"
    return f"{who}, {what}" if kinds else who


class Sentence(NamedTuple):
    """An answer in four parts; an empty one has nothing to say."""

    lead: str = ""  # what is settled
    figures: str = ""  # of the first, and its advantage
    place: str = ""  # on which machine, with which profile
    surer: str = ""  # what would make it surer

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


def answer(info: RunInfo, ranking: Ranking) -> Sentence:
    """Of the whole run, by the figure that leads on its machine, with the other one beside it."""
    kind = OVERALL if ranking.overall else next(iter(ranking.test_types), "")
    if not kind:
        return Sentence()
    found = sentence(info, ranking, kind, ranking.leading)
    other: Quantity = "throughput" if ranking.leading == "cpu" else "cpu"
    if not is_ranked(info) or not _placed(ranking, kind, other):
        return found
    beside = sentence(info, ranking, kind, other).lead
    return found._replace(figures=f"{found.figures} {beside}".strip())


def sentence(info: RunInfo, ranking: Ranking, kind: str, quantity: Quantity) -> Sentence:
    """The answer of one test type, or of ``overall``, by one of the two figures."""
    if not is_ranked(info):
        text = f"Profile {info.profile} checks that things run: its figures rank nothing."
        return Sentence(lead=text, place=_where(info))
    placed = _placed(ranking, kind, quantity)
    by = _measure(ranking, kind, quantity)[0]
    subject = f"{'Overall' if kind == OVERALL else TEST_NAMES.get(kind, kind)}, by {by}"
    if not placed:
        nothing = f"{subject}: nothing has been measured that can be ranked."
        return Sentence(lead=nothing, place=_where(info))
    groups = [list(group) for _, group in groupby(placed, lambda item: item[1].tie_group)]  # of those that tie
    lead = f"{subject}: {placed[0][0]} alone was measured." if len(placed) == 1 else f"{subject}: {_in_words(groups)}."
    if info.status == "running":
        lead = f"So far: {lead}"
    return Sentence(lead, _figures(groups, _measure(ranking, kind, quantity)), _where(info), _surer(info, placed))


def _measure(ranking: Ranking, kind: str, quantity: Quantity) -> MeasureTexts:
    """Return what is compared, how it is written, and its unit."""
    scenario = kind in ranking.test_types and ranking.test_types[kind].is_scenario
    compared, show, unit = MEASURES[OVERALL if kind == OVERALL else SCENARIO if scenario else "", quantity]
    return compared, show, unit.format(operation=ranked_operation(kind))


def sentences(info: RunInfo, ranking: Ranking) -> dict[str, dict[str, tuple[str, ...]]]:
    """Every answer of a run as its parts: by test type (``overall`` among them), then by figure."""
    kinds = [*([OVERALL] if ranking.overall else []), *ranking.test_types]
    return {kind: {each: tuple(sentence(info, ranking, kind, each)) for each in QUANTITIES} for kind in kinds}


def _placed(ranking: Ranking, kind: str, quantity: Quantity) -> Placed:
    found: list[tuple[str, Standing | None]]
    if kind == OVERALL:
        found = [(s.implementation, s.cpu if quantity == "cpu" else s.throughput) for s in ranking.overall]
    elif ranking.test_types[kind].is_scenario and ranking.orders and ranking.orders.tables:
        rows = ranking.orders.tables[0].rows
        found = [(r.implementation, standing(r, "cpu") if quantity == "cpu" else r.response) for r in rows]
    else:
        headline = ranking.test_types[kind].headline
        found = [(row.implementation, standing(row, quantity)) for row in headline.rows]
    return by_place([(name, each) for name, each in found if each is not None], lambda item: item[1])


# ---- who, how much, where, what would help ---------------------------------------------------------------------------


def _in_words(groups: Sequence[Placed]) -> str:
    """``vertx-web first; es4x in place 2–3; resteasy and express tie``: no ordinal where the rank is open."""
    if len(groups) == 1:
        return f"{_names(groups[0])} tie, and nobody is known to lead"
    found, place = [], 0
    for group in groups:
        ordinal = (
            ORDINALS[place] if place < len(ORDINALS) else "last" if group is groups[-1] else f"in place {place + 1}"
        )
        rank = group[0][1].rank
        alone = ordinal if rank.low == rank.high else f"in place {rank.label}"
        found.append(f"{_names(group)} {'tie' if len(group) > 1 else alone}")
        place += len(group)
    if len(found) > MOST_GROUPS:
        between = sum(map(len, groups[MOST_GROUPS - 1 : -1]))
        found = [*found[: MOST_GROUPS - 1], f"{between} more between", found[-1]]
    return "; ".join(found)


def _names(group: Placed) -> str:
    names = [name for name, _ in group]
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
    return _and(names)


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _figures(groups: Sequence[Placed], measure: MeasureTexts) -> str:
    """What those in front have, and what the next and the last have of the best one's."""
    front = groups[0]
    _, show, unit = measure
    figures = [each.estimate.median for _, each in front]
    between = f"{show(min(figures))} to " if len(front) > 1 else ""
    told = [f"{_names(front)}: {between}{show(max(figures))} {unit}"]
    behind = {name: each.to_best for name, each in (*groups[1:2][0][:1], *groups[-1][-1:])} if groups[1:] else {}
    told += [f"{name} {ratio(to_best)} of the best" for name, to_best in behind.items() if to_best]
    counts = [each.estimate.processes for group in groups for _, each in group]
    fewest = f"{min(counts)} to " if min(counts) < max(counts) else ""
    return f"{', '.join(told)} ({fewest}{counted(max(counts), 'process')} of each)."


def _where(info: RunInfo) -> str:
    machine = info.machine
    if not machine.cpus_online:
        return ""
    grade = f", machine grade {machine.grade}" if machine.grade else ""
    virtual = f", virtualised ({machine.virtualised})" if machine.virtualised else ""
    model = " ".join(machine.cpu_model.split())
    return f"Measured on {model}, {counted(machine.cpus_online, 'CPU')}{virtual}{grade}, profile {info.profile}."


def _surer(info: RunInfo, placed: Sequence[tuple[str, Standing]]) -> str:
    helps = []
    if min(each.estimate.processes for _, each in placed) < FIRM_PROCESSES:
        helps.append("more processes (--profile standard)")
    if info.machine.concerns:
        helps.append(f"a quieter machine ({info.machine.concerns[0]})")
    return f"What would make it surer: {'; '.join(helps)}." if helps else ""
