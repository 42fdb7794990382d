"""The answer of a run in a few sentences: who leads by what, who ties, how sure, on which machine, what would help.

Pure: the command line and the page show the same words. Everything is read from the ranking; nothing is estimated here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.dashboard.titles import name_of
from harness.plan.orders import CREATE
from harness.records.models import RunInfo
from harness.stats.model import OrderTable, Ranking, RankInterval, Ratio, Score, Standing, Table
from harness.stats.orders import TYPE as ORDER
from harness.stats.orders import headline
from harness.units import format_micros, format_rate

Metric = Literal["throughput", "cpu"]
METRICS: tuple[Metric, ...] = ("throughput", "cpu")
OVERALL = "overall"
FIRM_REPLICATES = 5  # with fewer an interval is honest but wide
MOST_NAMES = 4


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """An answer in four parts; an empty one has nothing to say."""

    lead: str  # who leads, by what factor, who ties
    certainty: str  # how sure
    place: str  # on which machine, with which profile
    surer: str  # what would make it surer

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """The parts in their order."""
        return self.lead, self.certainty, self.place, self.surer

    def __str__(self) -> str:
        return " ".join(part for part in self.parts if part)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One implementation of an order, best first."""

    name: str
    rank: RankInterval | None
    figure: str  # with its unit
    behind: Ratio | None  # the best's advantage over it, above 1
    replicates: int
    in_turns: bool = False  # one process has an interval then, from its windows

    @property
    def sure(self) -> bool:
        """Whether its rank says anything."""
        return self.replicates >= 2 or self.in_turns


def sentence(info: RunInfo, ranking: Ranking, test_type: str, metric: Metric = "throughput") -> Sentence:
    """The answer of one test type, or of ``overall``."""
    if test_type == OVERALL:
        places = _overall(ranking, metric)
        subject = "overall"
        what = "score" if metric == "throughput" else "CPU score"
    elif test_type == ORDER and ranking.orders and ranking.orders.tables:
        table = headline(ranking.orders, ranking.test_types[test_type].headline)
        places = _orders(table, metric)
        subject = f"{name_of(test_type)} ×{table.factor:g}"
        what = "response time" if metric == "throughput" else "CPU per arrival"
    else:
        places = _table(ranking.test_types[test_type].headline, metric)
        subject = name_of(test_type)
        what = "requests/s" if metric == "throughput" else "CPU per request"
    soonest = what == "response time"
    lead = _lead(places, subject, "cpu" if soonest else metric, overall=test_type == OVERALL, soonest=soonest)
    if info.status == "running" and lead:
        lead = f"So far: {lead}"
    return Sentence(
        lead=lead,
        certainty=_certainty(places, ranking.confidence, what) if places else "",
        place=_where(info),
        surer=_surer(info, places) if places else "",
    )


def sentences(info: RunInfo, ranking: Ranking) -> dict[str, dict[str, tuple[str, ...]]]:
    """Every answer of a run as its parts: by test type (``overall`` among them), then by metric."""
    kinds = [*([OVERALL] if ranking.overall else []), *ranking.test_types]
    return {kind: {metric: sentence(info, ranking, kind, metric).parts for metric in METRICS} for kind in kinds}


# ---- who ------------------------------------------------------------------------------------------------------------


def _table(table: Table, metric: Metric) -> list[_Place]:
    if metric == "throughput":
        return _places(
            ((row.implementation, row.throughput) for row in table.rows if row.ranked),
            lambda median: f"{format_rate(median)} requests/s",
            metric,
        )
    return _places(
        ((row.implementation, row.cpu_per_request) for row in table.rows if row.ranked),
        lambda median: f"{format_micros(median)} µs of CPU per request",
        metric,
    )


def _orders(table: OrderTable, metric: Metric) -> list[_Place]:
    """By response time where others are by throughput: that of the order service is given. Less is better of both."""
    if metric == "throughput":
        return _places(
            ((row.implementation, row.response) for row in table.rows if row.ranked),
            lambda median: f"a median of {median * 1e3:,.2f} ms for {CREATE}",
            "cpu",
        )
    return _places(
        ((row.implementation, row.cpu_per_arrival) for row in table.rows if row.ranked),
        lambda median: f"{format_micros(median)} µs of CPU per arrival",
        "cpu",
    )


def _places(
    standings: Iterable[tuple[str, Standing | None]], figure: Callable[[float], str], metric: Metric
) -> list[_Place]:
    """Those that have a standing, best first."""
    known = [(name, standing) for name, standing in standings if standing is not None]
    known.sort(key=lambda item: item[1].position)
    return [
        _Place(
            name=name,
            rank=standing.rank,
            figure=figure(standing.estimate.median),
            behind=_advantage(standing.to_best, metric),
            replicates=standing.estimate.replicates,
            in_turns=standing.components is not None,
        )
        for name, standing in known
    ]


def _overall(ranking: Ranking, metric: Metric) -> list[_Place]:
    known = [(score, value) for score in ranking.overall if (value := _value(score, metric)) is not None]
    known.sort(key=lambda item: -item[1])
    if not known:
        return []
    best = known[0][1]
    replicates, in_turns = _fewest(ranking), _in_turns(ranking)
    return [
        _Place(
            name=score.implementation,
            rank=score.rank if metric == "throughput" else None,
            figure=f"a score of {value:.2f}",
            behind=Ratio(value=best / value, low=None, high=None) if value > 0 else None,
            replicates=replicates.get(score.implementation, 0),
            in_turns=in_turns,
        )
        for score, value in known
    ]


def _value(score: Score, metric: Metric) -> float | None:
    return score.score if metric == "throughput" else score.cpu_score


def _fewest(ranking: Ranking) -> dict[str, int]:
    """Of each implementation, the replicates of the test type where it has fewest."""
    fewest: dict[str, int] = {}
    for test in ranking.test_types.values():
        for row in test.headline.rows:
            if row.throughput and row.ranked:
                count = row.throughput.estimate.replicates
                fewest[row.implementation] = min(count, fewest.get(row.implementation, count))
    return fewest


def _in_turns(ranking: Ranking) -> bool:
    """Whether every row was measured in short windows in turns."""
    rows = [row.throughput for test in ranking.test_types.values() for row in test.headline.rows if row.throughput]
    return bool(rows) and all(standing.components is not None for standing in rows)


def _advantage(to_best: Ratio | None, metric: Metric) -> Ratio | None:
    """The best's advantage as a factor above 1: ratios of throughput are turned round, those of cost are one."""
    if to_best is None or to_best.value <= 0:
        return None
    if metric == "cpu":
        return to_best
    low, high = to_best.low, to_best.high
    turned = (1 / high, 1 / low) if low and high else (None, None)
    return Ratio(value=1 / to_best.value, low=turned[0], high=turned[1])


def _lead(places: Sequence[_Place], subject: str, metric: Metric, *, overall: bool, soonest: bool = False) -> str:
    if not places:
        return "" if overall else f"{subject}: nothing has been measured that can be ranked."
    first, rest = places[0], places[1:]
    if not rest:
        return f"{subject}: {first.name} alone was measured, with {first.figure}."
    verb = "answers soonest" if soonest else "leads" if metric == "throughput" else "needs the least CPU"
    within = "" if overall else " in"
    unranked = first.rank is None or not first.sure
    tied = [] if unranked else [place for place in rest if place.rank is not None and place.rank.low == 1]
    after = next((place for place in rest if place not in tied), None)
    last = rest[-1]
    if tied and len(tied) == len(rest):
        group = _names([first, *tied])
        return f"{subject.capitalize() if overall else subject}: {group} tie, and nobody is known to lead."
    if tied:
        lead = f"{_names([first, *tied])} tie for the lead {subject if overall else f'in {subject}'}"
    else:
        lead = f"{first.name} {verb}{within} {subject}"
    lead += f" with {first.figure}"
    if after and after.behind:
        role = "" if after is last else ", the next"
        lead += f", {_factor(after.behind)} {'better than' if metric == 'cpu' else 'as much as'} {after.name}{role}"
    if last is not after and last.behind:
        than = "better than" if metric == "cpu" else "as much as"
        lead += f", and {_factor(last.behind, short=True)} {than} {last.name}, the last of {len(places)}"
    return f"{lead}."


def _factor(ratio: Ratio, *, short: bool = False) -> str:
    digits = 2 if ratio.value < 10 else 1
    if short or ratio.low is None or ratio.high is None or ratio.low == ratio.high:
        return f"{ratio.value:.{digits}f}×"
    return f"{ratio.value:.{digits}f}× [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def _names(places: Sequence[_Place]) -> str:
    names = [place.name for place in places]
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


# ---- how sure, where, what would help -------------------------------------------------------------------------------


def _certainty(places: Sequence[_Place], confidence: float, what: str) -> str:
    alone = [place for place in places if not place.sure]
    if len(alone) == len(places):
        return "One replicate each: an order of point estimates, none of which is sure."
    if alone:
        rest = _certainty([place for place in places if place.sure], confidence, what)
        return f"{rest} {_names(alone)} {'has' if len(alone) == 1 else 'have'} one replicate, which decides nothing."
    replicates = min(place.replicates for place in places)
    share = f"{confidence * 100:.0f} %"
    if places[0].rank is None:
        return f"By point estimates of {replicates} replicates: the order by {what} has no interval."
    first_alone = places[0].rank.low == places[0].rank.high
    firm = "" if replicates >= FIRM_REPLICATES else ", so provisional"
    settled = sum(place.rank is not None and place.rank.low == place.rank.high for place in places)
    counted = "one process of each" if replicates == 1 else f"{replicates} replicates"
    if len(places) == 1:
        return f"{counted.capitalize()}{firm}."
    if settled == len(places):
        return f"Every place is sure at {share} ({counted}{firm})."
    first = f"First place is sure at {share}" if first_alone else f"First place is not decided at {share}"
    are = "is" if settled == 1 else "are"
    return f"{first}; {settled} of {len(places)} places {are} settled ({counted}{firm})."


def _where(info: RunInfo) -> str:
    machine = info.machine
    cpus = f"{machine.cpus_online} CPU{'' if machine.cpus_online == 1 else 's'}"
    grade = f", machine grade {machine.grade}" if machine.grade else ""
    model = " ".join(machine.cpu_model.split())
    virtual = f", virtualised ({machine.virtualised})" if machine.virtualised else ""
    if not machine.cpus_online:
        return ""
    return f"Measured on {model}, {cpus}{virtual}{grade}, profile {info.profile}."


def _surer(info: RunInfo, places: Sequence[_Place]) -> str:
    helps = list(_what_helps(info, places))
    if not helps:
        return ""
    return f"What would make it surer: {'; '.join(helps)}."


def _what_helps(info: RunInfo, places: Sequence[_Place]) -> Iterable[str]:
    replicates = min(place.replicates for place in places)
    open_places = any(place.rank is not None and place.rank.low != place.rank.high for place in places)
    if replicates < FIRM_REPLICATES:
        yield "more replicates (--profile standard)"
    elif open_places:
        yield "measuring neighbours at the same time (--order duet)"
    if info.noise_floor is None:
        yield "knowing this machine's noise (./tfb calibrate)"
    if info.machine.concerns:
        yield f"a quieter machine ({info.machine.concerns[0]})"
