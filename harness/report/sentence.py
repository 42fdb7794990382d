"""The answer of a run in a few sentences: who is settled before whom, who ties, on which machine, what would help.

Pure: the command line and the page show the same words. Everything is read from the ranking; nothing is estimated here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.dashboard.titles import name_of
from harness.plan.orders import CREATE
from harness.records.models import RunInfo
from harness.report.tables import ORDER, by_place, counted, is_ranked, standing
from harness.stats.groups import in_words
from harness.stats.model import Quantity, Ranking, Ratio, Standing
from harness.units import format_micros, format_rate

QUANTITIES: tuple[Quantity, ...] = ("cpu", "throughput")
NAMES = {"cpu": "CPU per request", "throughput": "throughput"}
OVERALL = "overall"
FIRM_PROCESSES = 5  # with fewer an interval is honest but wide

Placed = list[tuple[str, Standing]]  # implementations with their standings, best first


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """An answer in four parts; an empty one has nothing to say."""

    lead: str  # what is settled
    figures: str  # of the first, and its advantage
    place: str  # on which machine, with which profile
    surer: str  # what would make it surer

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """The parts in their order."""
        return self.lead, self.figures, self.place, self.surer

    def __str__(self) -> str:
        return " ".join(part for part in self.parts if part)


def answer(info: RunInfo, ranking: Ranking) -> Sentence:
    """Of the whole run, by the figure that leads on its machine, with the other one beside it."""
    kind = OVERALL if ranking.overall else next(iter(ranking.test_types), "")
    if not kind:
        return Sentence(lead="", figures="", place="", surer="")
    found = sentence(info, ranking, kind, ranking.leading)
    other: Quantity = "throughput" if ranking.leading == "cpu" else "cpu"
    if not is_ranked(info) or not _placed(ranking, kind, other):
        return found
    beside = sentence(info, ranking, kind, other).lead
    return Sentence(lead=found.lead, figures=f"{found.figures} {beside}".strip(), place=found.place, surer=found.surer)


def sentence(info: RunInfo, ranking: Ranking, kind: str, quantity: Quantity) -> Sentence:
    """The answer of one test type, or of ``overall``, by one of the two figures."""
    if not is_ranked(info):
        text = f"Profile {info.profile} checks that things run: its figures rank nothing."
        return Sentence(lead=text, figures="", place=_where(info), surer="")
    placed = _placed(ranking, kind, quantity)
    subject = f"{'Overall' if kind == OVERALL else name_of(kind)}, by {_what(kind, quantity)}"
    if not placed:
        nothing = f"{subject}: nothing has been measured that can be ranked."
        return Sentence(lead=nothing, figures="", place=_where(info), surer="")
    if len(placed) == 1:
        lead = f"{subject}: {placed[0][0]} alone was measured."
    else:
        lead = f"{subject}: {in_words([(name, each.rank) for name, each in placed])}."
    if info.status == "running":
        lead = f"So far: {lead}"
    return Sentence(
        lead=lead,
        figures=_figures(placed, kind, quantity),
        place=_where(info),
        surer=_surer(info, placed),
    )


def sentences(info: RunInfo, ranking: Ranking) -> dict[str, dict[str, tuple[str, ...]]]:
    """Every answer of a run as its parts: by test type (``overall`` among them), then by figure."""
    kinds = [*([OVERALL] if ranking.overall else []), *ranking.test_types]
    return {kind: {each: sentence(info, ranking, kind, each).parts for each in QUANTITIES} for kind in kinds}


def _placed(ranking: Ranking, kind: str, quantity: Quantity) -> Placed:
    found: list[tuple[str, Standing | None]]
    if kind == OVERALL:
        found = [(s.implementation, s.cpu if quantity == "cpu" else s.throughput) for s in ranking.overall]
    elif kind == ORDER and ranking.orders and ranking.orders.tables:
        rows = [row for row in ranking.orders.tables[0].rows if row.ranked]
        found = [(r.implementation, r.cpu_per_arrival if quantity == "cpu" else r.response) for r in rows]
    else:
        headline = ranking.test_types[kind].headline
        found = [(row.implementation, standing(row, quantity)) for row in headline.rows]
    return by_place([(name, each) for name, each in found if each is not None], lambda item: item[1])


def _what(kind: str, quantity: Quantity) -> str:
    if kind == ORDER:
        return "CPU per arrival" if quantity == "cpu" else "response time"
    return NAMES[quantity]


# ---- how much, where, what would help -------------------------------------------------------------------------------


def _figures(placed: Placed, kind: str, quantity: Quantity) -> str:
    """The first one's figure, and how much better it is than the next group and than the last."""
    name, first = placed[0]
    show = _show(kind, quantity)
    less = quantity == "cpu" or kind == ORDER  # is better
    told = f"{name} {'has' if kind == OVERALL else 'takes' if less else 'answers'} {show(first.estimate.median)}"
    behind = [(other, each) for other, each in placed if each.rank.low > first.rank.high]
    factors = [
        f"{_factor(each.to_best, kind == OVERALL or not less)} {other}'s"
        for other, each in dict(behind[:1] + behind[-1:]).items()
        if each.to_best
    ]
    processes = min(each.estimate.processes for _, each in placed)
    of = f" ({counted(processes, 'process')} of each)" if processes else ""
    return f"{told}{''.join(f', {factor}' for factor in factors)}{of}."


def _show(kind: str, quantity: Quantity) -> Callable[[float], str]:
    if kind == OVERALL:
        return lambda value: f"a score of {value:.2f}"
    if quantity == "cpu":
        return lambda value: f"{format_micros(value)} µs of CPU {'an arrival' if kind == ORDER else 'a request'}"
    if kind == ORDER:
        return lambda value: f"{value * 1e3:,.2f} ms for {CREATE}"
    return lambda value: f"{format_rate(value)} requests/s"


def _factor(to_best: Ratio, turned: bool) -> str:
    """The best one's figure over this one's: ``1.50× [1.43, 1.58]``, where ratios are of this one to the best."""
    low, high = to_best.low, to_best.high
    digits = 2 if 0.1 < to_best.value < 10 else 1
    text = f"{1 / to_best.value:.{digits}f}×"
    del turned
    return text if not low or not high or low == high else f"{text} [{1 / high:.{digits}f}, {1 / low:.{digits}f}]"


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
