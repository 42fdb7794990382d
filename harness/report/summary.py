"""Summarizes a run, or a comparison of two runs, in a few sentences.

The command line and the dashboard show the same sentences. All values are taken from the ranking.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from harness.plan.testtypes.registry import display_name, ranked_operation
from harness.records.run_info import RunInfo
from harness.records.verdicts import WORST_FIRST, Verdict
from harness.report.tables import TableRows, TextTable, format_count, format_ratio, row_standing, sort_by_position
from harness.stats.cell_values import PROVISIONAL_BELOW
from harness.stats.ranking_model import CellComparison, Comparison, Quantity, Ranking, Ratio, Standing
from harness.stats.unranked import is_ranked
from harness.units import format_micros, format_rate

# A cell's verdict is the first verdict in this list that one of its metrics has. For example, a cell is faster if one
# metric is faster and the other is the same.
CELL_ORDER: tuple[Verdict, ...] = ("slower", "faster", "cannot tell", "same")


def cell_verdict(cell: CellComparison) -> Verdict:
    """Combine the verdicts on a cell's metrics into a verdict on the cell. Metrics without a ratio are ignored."""
    verdicts = [effect.verdict for effect in (cell.cpu_per_request, cell.throughput) if effect.ratio]
    return min(verdicts, key=CELL_ORDER.index, default="cannot tell")


def common_cells(comparison: Comparison) -> tuple[CellComparison, ...]:
    """Return the cells that both runs planned to measure."""
    return tuple(cell for cell in comparison.cells if not cell.only_in)


def summarize_comparison(comparison: Comparison) -> tuple[str, ...]:
    """Return summary sentences. The first is like ``B over A, 24 cells: slower in 2, same within 5 % in 22``."""
    cells = common_cells(comparison)
    margin = f"{comparison.threshold * 100:.3g} %"
    counts = Counter(cell_verdict(cell) for cell in cells)
    names = {"same": f"same within {margin}"}
    parts = [f"{names.get(word, word)} in {counts[word]}" for word in WORST_FIRST if counts[word]]
    verdicts = ", ".join(parts) or "cannot tell, because the runs have no cell in common"
    headline = f"{comparison.run_b} over {comparison.run_a}, {format_count(len(cells), 'cell')}: {verdicts}"
    headline += f" (across {'; '.join(comparison.across)})" if comparison.across else ""
    explanation = (
        f'"Cannot tell" does not mean "same": {format_count(counts["cannot tell"], "cell")} may differ by more than '
        f"{margin}. Measure more processes, or use a quieter machine."
    )
    return headline, *([explanation] if counts["cannot tell"] else []), *_describe_single_cells(comparison)


def _describe_single_cells(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence for each run with cells that the other run did not plan to measure."""
    for letter, run in (("A", comparison.run_a), ("B", comparison.run_b)):
        cells = [cell for cell in comparison.cells if cell.only_in == letter]
        if cells:
            names = ", ".join(dict.fromkeys(cell.implementation for cell in cells))
            kinds = ", ".join(dict.fromkeys(cell.test_type for cell in cells))
            yield f"Only {run} measured {format_count(len(cells), 'cell')} ({names}; {kinds})."


def comparison_table(comparison: Comparison, *, every: bool) -> TextTable:
    """Return a table of the compared cells, worst verdicts first. Without ``every``, omit cells that are the same."""
    cells = [(cell_verdict(cell), cell) for cell in common_cells(comparison)]
    cells.sort(key=lambda item: WORST_FIRST.index(item[0]))
    rows = TableRows([item for item in cells if every or item[0] != "same"])
    return rows.table(
        f"ratios of {comparison.run_b} to {comparison.run_a}",
        rows.column("verdict", lambda row: row[0]),
        rows.column("test", lambda row: row[1].test_type),
        rows.column("load", lambda row: row[1].load.label),
        rows.column("implementation", lambda row: row[1].implementation),
        rows.column("CPU per request", lambda row: format_ratio(row[1].cpu_per_request.ratio)),
        rows.column("req/s", lambda row: format_ratio(row[1].throughput.ratio)),
        remarks=lambda row: (f"{row[1].implementation} {row[1].test_type}", [row[1].reason] if row[1].reason else []),
    )


QUANTITIES: tuple[Quantity, ...] = ("cpu", "throughput")
OVERALL = "overall"
SCENARIO = "scenario"
MeasureTexts = tuple[str, Callable[[float], str], str]  # quantity name, number format, unit
MEASURES: dict[tuple[str, Quantity], MeasureTexts] = {
    (OVERALL, "cpu"): ("CPU per request", "{:.2f}".format, "times the baseline"),
    (OVERALL, "throughput"): ("throughput", "{:.2f}".format, "times the baseline"),
    (SCENARIO, "cpu"): ("CPU per arrival", format_micros, "µs of CPU per arrival"),
    (SCENARIO, "throughput"): ("response time", lambda seconds: f"{seconds * 1e3:,.2f}", "ms for {operation}"),
    ("", "cpu"): ("CPU per request", format_micros, "µs of CPU per request"),
    ("", "throughput"): ("throughput", format_rate, "requests/s"),
}
MAX_NAMES = 4  # maximum number of names that a summary lists per tie group
MAX_GROUPS = 5  # maximum number of tie groups in a summary
MAX_COMPARED_GROUPS = 3  # maximum number of tie groups that a summary compares with the baseline
COMPARATIVES: dict[Quantity, str] = {  # quantity -> verb phrase
    "cpu": "need{s} {factor} as much CPU per request as {baseline}",
    "throughput": "serve{s} {factor} as many requests as {baseline}",
}
MAX_IN_TITLE = 3  # maximum number of implementation names in a title
TIME_LIKE_NAME = re.compile(r"[\d\s:._TZ-]+")  # a run name with only digits and separators
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")

RankedRows = list[tuple[str, Standing]]  # (implementation, standing), best first


def run_title(info: RunInfo, published: str = "") -> str:
    """Return the run's name, or a title such as ``quick: es4x, express, vertx-web +2, 2026-11-25`` if it has no name.

    ``published`` is the name of the published round that contains the run, if any. It becomes the start of the title.
    """
    name = info.name.strip()
    if name and name != info.run_id and not TIME_LIKE_NAME.fullmatch(name):
        return f"{published}: {name}" if published else name
    names = [item.name for item in info.implementations]
    if not names:
        return published or name or info.run_id
    more = f" +{len(names) - MAX_IN_TITLE}" if len(names) > MAX_IN_TITLE else ""
    day = time.strftime("%Y-%m-%d", time.gmtime(info.started_at))
    return f"{published or info.profile}: {', '.join(names[:MAX_IN_TITLE])}{more}, {day}"


class Summary(NamedTuple):
    """A summary in four parts, some of which may be empty."""

    lead: str = ""  # order of the implementations
    figures: str = ""  # values of the top tie group, and ratios of other implementations to the best
    place: str = ""  # machine and profile
    improvements: str = ""  # how to get a more certain result

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


def summarize_run(info: RunInfo, ranking: Ranking) -> Summary:
    """Summarize the whole run by the leading metric, and add the order by the other metric."""
    kind = OVERALL if ranking.overall else next(iter(ranking.test_types), "")
    if not kind:
        return Summary()
    leading_summary = summarize(info, ranking, kind, ranking.leading)
    other_metric: Quantity = "throughput" if ranking.leading == "cpu" else "cpu"
    if not is_ranked(info) or not _ranked_rows(ranking, kind, other_metric):
        return leading_summary
    other_lead = summarize(info, ranking, kind, other_metric).lead
    return leading_summary._replace(figures=f"{leading_summary.figures} {other_lead}".strip())


def summarize(info: RunInfo, ranking: Ranking, kind: str, quantity: Quantity) -> Summary:
    """Summarize a test type, or the ``overall`` scores, by a metric."""
    if not is_ranked(info):
        text = f"Profile {info.profile} only checks that implementations run; it does not rank them."
        advice = "For a ranking, use a different profile. The default, ./tfb run, takes twelve minutes plus builds."
        return Summary(lead=text, place=_describe_machine(info), improvements=advice)
    ranked = _ranked_rows(ranking, kind, quantity)
    metric = _measure(ranking, kind, quantity)[0]
    title = "Overall" if kind == OVERALL else display_name(kind)
    subject = f"{title}, by {metric}"
    if not ranked:
        sentence = f"{subject}: no measurement can be ranked."
        return Summary(lead=sentence, place=_describe_machine(info))
    groups = [list(group) for _, group in groupby(ranked, lambda item: item[1].tie_group)]
    scenario = kind in ranking.test_types and ranking.test_types[kind].is_scenario
    comparison = (
        "" if scenario else _compare_with_baseline(groups, ranking.reference, quantity, is_score=kind == OVERALL)
    )
    if len(ranked) == 1:
        lead = f"{subject}: only {ranked[0][0]} was measured."
    else:
        lead = f"{title}: {comparison}." if comparison else f"{subject}: {_describe_order(groups)}."
    if info.status == "running":
        lead = f"So far: {lead}"
    figures = _describe_figures(groups, _measure(ranking, kind, quantity), ratios=not comparison)
    return Summary(lead, figures, _describe_machine(info), _suggest_improvements(info, ranked))


def _measure(ranking: Ranking, kind: str, quantity: Quantity) -> MeasureTexts:
    """Return the name, number format and unit of the quantity by which implementations are compared."""
    scenario = kind in ranking.test_types and ranking.test_types[kind].is_scenario
    compared, format_figure, unit = MEASURES[OVERALL if kind == OVERALL else SCENARIO if scenario else "", quantity]
    return compared, format_figure, unit.format(operation=ranked_operation(kind))


def summarize_all(info: RunInfo, ranking: Ranking) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return all summaries of a run: test type (or ``overall``) -> metric -> parts of the summary."""
    kinds = [*([OVERALL] if ranking.overall else []), *ranking.test_types]
    return {kind: {each: tuple(summarize(info, ranking, kind, each)) for each in QUANTITIES} for kind in kinds}


def _ranked_rows(ranking: Ranking, kind: str, quantity: Quantity) -> RankedRows:
    standings: list[tuple[str, Standing | None]]
    if kind == OVERALL:
        standings = [(s.implementation, s.cpu if quantity == "cpu" else s.throughput) for s in ranking.overall]
    elif ranking.test_types[kind].is_scenario and ranking.orders and ranking.orders.tables:
        rows = ranking.orders.tables[0].rows
        standings = [(r.implementation, row_standing(r, "cpu") if quantity == "cpu" else r.response) for r in rows]
    else:
        headline = ranking.test_types[kind].headline
        standings = [(row.implementation, row_standing(row, quantity)) for row in headline.rows]
    return sort_by_position([(name, each) for name, each in standings if each is not None], lambda item: item[1])


# ---- order, figures, machine, improvements ---------------------------------------------------------------------------


def _describe_order(groups: Sequence[RankedRows]) -> str:
    """Describe the order, for example ``vertx-web first; es4x rank 2–3; resteasy and express tie``."""
    if len(groups) == 1:
        return f"{_join_group(groups[0])} tie: there is no clear winner"
    phrases, position = [], 0
    for group in groups:
        ordinal = (
            ORDINALS[position]
            if position < len(ORDINALS)
            else "last"
            if group is groups[-1]
            else f"rank {position + 1}"
        )
        rank = group[0][1].rank
        rank_text = ordinal if rank.low == rank.high else f"rank {rank.label}"
        phrases.append(f"{_join_group(group)} {'tie' if len(group) > 1 else rank_text}")
        position += len(group)
    if len(phrases) > MAX_GROUPS:
        between = sum(map(len, groups[MAX_GROUPS - 1 : -1]))
        phrases = [*phrases[: MAX_GROUPS - 1], f"{between} more in between", phrases[-1]]
    return "; ".join(phrases)


def _compare_with_baseline(
    groups: Sequence[RankedRows], baseline: str | None, quantity: Quantity, *, is_score: bool
) -> str:
    """Compare the first tie groups with the baseline, for example: ``es4x needs 0.41× as much CPU``.

    Return an empty string if ratios are missing or all implementations tie.
    """
    standings = {name: standing for group in groups for name, standing in group}
    if baseline not in standings or len(groups) == 1:
        return ""
    tied = {name for group in groups if baseline in dict(group) for name, _ in group}
    phrases, has_verb = [], False
    for group in groups[:MAX_COMPARED_GROUPS]:
        names = [name for name, _ in group if name != baseline]
        if tied >= set(names):
            phrases += [f"{_join_names(names)} {'ties' if len(names) == 1 else 'tie'} with {baseline}"] if names else []
            continue
        ratios = [_ratio_to_baseline(standings[name], quantity, is_score=is_score) for name in names]
        if not all(ratios):
            return ""
        known_ratios = [ratio for ratio in ratios if ratio]
        best, worst = (
            format_ratio(Ratio(value=each.value, low=None, high=None)) for each in (known_ratios[0], known_ratios[-1])
        )
        factor = best if best == worst else f"{best} to {worst}"
        if has_verb:
            phrases.append(f"{_join_group(group)} {factor}")
        else:
            interval = format_ratio(known_ratios[0]).partition(" ")[2] if best == worst else ""
            verb_phrase = COMPARATIVES[quantity].format(
                factor=factor, s="" if len(names) > 1 else "s", baseline=baseline
            )
            phrases.append(" ".join(filter(None, (_join_group(group), verb_phrase, interval))))
        has_verb = True
    if rest := sum(map(len, groups[MAX_COMPARED_GROUPS:])):
        phrases.append(f"{rest} more follow{'s' if rest == 1 else ''}")
    return "; ".join(phrases)


def _ratio_to_baseline(standing: Standing, quantity: Quantity, *, is_score: bool) -> Ratio | None:
    """Return the ratio of CPU per request or throughput to the baseline's, or None if it is unknown.

    A score by CPU per request divides the baseline's CPU per request by the implementation's.
    """
    if not is_score:
        return standing.to_reference
    score = Ratio(value=standing.estimate.median, low=standing.estimate.low, high=standing.estimate.high)
    return _inverse(score) if quantity == "cpu" else score


def _inverse(ratio: Ratio) -> Ratio:
    low, high = (None if end is None else 1 / end for end in (ratio.high, ratio.low))
    return Ratio(value=1 / ratio.value, low=low, high=high)


def _join_group(group: RankedRows) -> str:
    names = [name for name, _ in group]
    if len(names) > MAX_NAMES:
        names = [*names[: MAX_NAMES - 1], f"{len(names) - MAX_NAMES + 1} more"]
    return _join_names(names)


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _describe_figures(groups: Sequence[RankedRows], measure: MeasureTexts, *, ratios: bool) -> str:
    """Describe the values of the best tie group.

    With ``ratios``, add the ratios of two other implementations to the best: the first outside the group, and the last.
    """
    best_group = groups[0]
    _, show, unit = measure
    figures = [each.estimate.median for _, each in best_group]
    lowest = f"{show(min(figures))} to " if len(best_group) > 1 else ""
    phrases = [f"{_join_group(best_group)}: {lowest}{show(max(figures))} {unit}"]
    others = (*groups[1:2][0][:1], *groups[-1][-1:]) if ratios and groups[1:] else ()
    to_best = {name: each.to_best for name, each in others}
    phrases += [f"{name} {format_ratio(ratio)} vs the best" for name, ratio in to_best.items() if ratio]
    counts = [each.estimate.processes for group in groups for _, each in group]
    fewest = f"{min(counts)} to " if min(counts) < max(counts) else ""
    return f"{', '.join(phrases)} ({fewest}{format_count(max(counts), 'process')} each)."


def _describe_machine(info: RunInfo) -> str:
    machine = info.machine
    if not machine.cpus_online:
        return ""
    grade = f", machine grade {machine.grade}" if machine.grade else ""
    virtual = f", virtualised ({machine.virtualised})" if machine.virtualised else ""
    model = " ".join(machine.cpu_model.split())
    return f"Measured on {model}, {format_count(machine.cpus_online, 'CPU')}{virtual}{grade}, profile {info.profile}."


def _suggest_improvements(info: RunInfo, ranked: Sequence[tuple[str, Standing]]) -> str:
    suggestions = []
    if min(each.estimate.processes for _, each in ranked) < PROVISIONAL_BELOW:
        suggestions.append("more processes (--profile standard)")
    if info.machine.concerns:
        suggestions.append(f"a quieter machine ({info.machine.concerns[0]})")
    return f"For a more certain result, use {'; '.join(suggestions)}." if suggestions else ""
