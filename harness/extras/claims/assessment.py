"""Judges claims by their statements. ``harness.stats`` computes every ratio and interval.

A statement claims a range of ratios. A ratio r with tolerance t claims r / (1 + t) to r (1 + t). An order claims all
ratios on one side of 1; "not lower" and "not higher" ignore differences below ``Statement.least``. A range that
contains 1 claims that the two sides are equal.

- refuted: the interval excludes a relevant difference in the claimed direction. If equality was claimed, the interval
  lies outside the range.
- supported: the interval lies within the range.
- direction only: the interval lies on the claimed side of 1, but not within the range.
- undecided: all other cases.

The orders ``none`` and ``some`` apply to counts: nonzero figures among all starts of a program, or errors among all
requests of a cell.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from harness.extras.claims import show
from harness.extras.claims.claim import ERRORS, Claim, Statement
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.records.machine_record import Machine
from harness.records.run_info import RunInfo
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import ClaimConclusion
from harness.stats import cell_values
from harness.stats.cell_comparison import ratio, ratio_of_values
from harness.stats.ranking_model import Ratio
from harness.stats.unranked import unranked_reasons

# Claims are judged again after each run. At 98 %, the error probability of three looks together is 5 % (Pocock 1977,
# Biometrika 64, table 1: nominal 2.2 % each), of eight looks 8 %. The number of looks is not limited.
CONFIDENCE = 0.98
AGAIN = "another run: what was to be compared has no figure"
MANY = 100  # number of further processes above which no estimate is shown
# A claim gets the first of these verdicts that one of its statements has; the last if a single statement suffices.
ORDER: tuple[ClaimConclusion, ...] = ("refuted", "undecided", "needs a larger machine", "direction only", "supported")


class Range(NamedTuple):
    """The range of ratios that a statement claims; 0 or infinity where a side is unlimited."""

    least: float
    most: float

    def __str__(self) -> str:
        ends = [f"{end:.3g}" for end in self if 0 < end < math.inf]
        return " to ".join(ends) if len(ends) > 1 else f"{'above' if math.isinf(self.most) else 'below'} {ends[0]}"


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A verdict with a reason, and the number of further processes per side that could decide more."""

    word: ClaimConclusion
    reason: str
    more: float = 0.0
    range: Range | None = None


def of_ratio(expected: float, tolerance: float, measured: Ratio, processes: int, least: float = 0.05) -> Assessment:
    """Judge a claimed ratio.

    Args:
        expected: The claimed ratio.
        tolerance: Relative tolerance of the claimed ratio.
        measured: The measured ratio with the interval.
        processes: Number of measured processes per side.
        least: Smallest relevant relative difference.
    """
    meant = Range(expected / (1 + tolerance), expected * (1 + tolerance))
    low, high = measured.low or 0.0, measured.high or math.inf
    if meant.least <= low and high <= meant.most:
        return Assessment(word="supported", reason=f"all of the interval is within {meant}", range=meant)
    outside = high < meant.least or low > meant.most
    if meant.least <= 1 <= meant.most:
        if outside:
            return Assessment(word="refuted", reason=f"the two are not alike: {meant} is excluded", range=meant)
        return _open("undecided", measured, processes, meant, meant, f"the interval reaches beyond {meant}")
    if outside and ((high < 1 + least) if expected > 1 else (low > 1 / (1 + least))):
        return Assessment(word="refuted", reason=f"a difference of {least:.0%} as it was said is excluded", range=meant)
    if (low > 1) if expected > 1 else (high < 1):
        if outside:
            return Assessment(
                word="direction only", reason=f"the order is as said, the size is not {meant}", range=meant
            )
        return _open("direction only", measured, processes, meant, meant, f"whether the size is {meant} is open")
    return _open("undecided", measured, processes, meant, (1.0, *meant), "the order is open: the interval holds 1")


def of_order(order: str, least: float, measured: Ratio, processes: int, *, substantial: bool = False) -> Assessment:
    """Judge a claimed order: higher, lower, not higher or not lower.

    Args:
        order: The claimed order.
        least: Smallest relevant relative difference.
        measured: The measured ratio with the interval.
        processes: Number of measured processes per side.
        substantial: Whether the claimed difference is at least ``least``.
    """
    edge = 1 + least if order.endswith("higher") else 1 / (1 + least)
    above = order in ("higher", "not lower")
    side = edge if substantial or order.startswith("not ") else 1.0
    meant = Range(side, math.inf) if above else Range(0.0, side)
    low, high = measured.low or 0.0, measured.high or math.inf
    if (high < edge) if above else (low > edge):
        return Assessment(word="refuted", reason=f"a difference of {least:.0%} as it was said is excluded", range=meant)
    if (meant.least < low) if above else (high < meant.most):
        return Assessment(word="supported", reason=f"all of the interval is {meant}", range=meant)
    return _open("undecided", measured, processes, meant, (side, edge), f"the interval holds {side:.3g}")


def _open(
    word: ClaimConclusion, measured: Ratio, processes: int, meant: Range, edges: Sequence[float], reason: str
) -> Assessment:
    """Return an undecided finding with an estimate of the processes that move the interval off the nearest edge.

    The half-width decreases with the square root of the number of processes. The estimate ignores that Student's
    quantile decreases as well, so it is conservative.
    """
    if measured.low is None or measured.high is None:
        alone = f"{measured.value:.2f} of one process each has no interval"
        return Assessment(word="undecided", reason=alone, more=1, range=meant)
    half = math.log(measured.high / measured.low) / 2
    gap = min(abs(math.log(measured.value / edge)) for edge in edges)
    wanted = math.ceil(processes * (half / gap) ** 2) if gap > 0 else math.inf
    return Assessment(word=word, reason=reason, more=max(wanted - processes, 1), range=meant)


def of_count(count: int, said: str, total: int, what: str) -> Assessment:
    """Judge a count against "none" or "some"; ``total`` is the number of requests or starts, named by ``what``."""
    word: ClaimConclusion = "supported" if (count == 0) == (said == "none") else "refuted"
    return Assessment(word=word if count or total else "undecided", reason=f"{count:,} in {total:,} {what}")


def of_size(finding: Assessment, loads: Sequence[tuple[float, float]], cpus: int) -> Assessment:
    """Return "needs a larger machine" if the claimed rates need more CPUs than the machine has, else the finding.

    The utilisation law gives the CPUs: requests/s times CPU seconds per request. ``loads`` has both for each side.
    """
    rate, cost = max(loads, key=math.prod)
    if rate * cost <= cpus:
        return finding
    reason = (
        f"{rate:,.0f} requests/s at the {cost * 1e6:,.0f} µs of CPU that one took here, generator and database with "
        f"it, are {math.ceil(rate * cost)} CPUs; here are {cpus}"
    )
    return replace(finding, word="needs a larger machine", reason=reason, more=0.0)


def of_claim(words: Sequence[ClaimConclusion], *, can: bool = False) -> ClaimConclusion:
    """Return the verdict on a claim: the least favourable of the statements, or the most favourable if ``can``."""
    return next((word for word in (ORDER[::-1] if can else ORDER) if word in words), "undecided")


# ---- from records ----------------------------------------------------------------------------------------------------


def of_runs(claim: Claim, records: RunRecords, runs: Sequence[RunInfo]) -> ClaimVerdict:
    """Judge a claim about implementations by the joined records of several runs."""
    info = max(runs, key=lambda run: run.started_at)
    concerns = tuple(dict.fromkeys(concern for run in runs for concern in run.machine.concerns))
    machine = info.machine.model_copy(update={"concerns": concerns, "grade": max(run.machine.grade for run in runs)})
    statements = [_of_trials(each, records) for each in claim.compare]
    where = {name: getattr(info, name) for name in ("profile", "runtime", "revision", "dirty")}
    at, names = info.completed_at or info.started_at, tuple(run.run_id for run in runs)
    return _verdict(claim, machine, statements, measured_at=at, runs=names, **where)


def of_program(claim: Claim, figures: Sequence[Mapping[str, float]], machine: Machine, **where: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    """Judge a claim about a program by the figures that each start printed."""
    statements = [_of_figures(each, figures, len(machine.cpus_usable)) for each in claim.compare]
    return _verdict(claim, machine, statements, figures=tuple(map(dict, figures)), **where)


def _verdict(claim: Claim, machine: Machine, statements: Sequence[StatementVerdict], **rest: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    virtual = f", {machine.virtualised}" if machine.virtualised else ""
    own = [each for each in statements if not each.context]
    word = of_claim([each.verdict for each in own], can=claim.can)
    return ClaimVerdict(
        claim=claim.name,
        **claim.model_dump(include={"title", "talk", "page", "said", "conditions", "here"}),
        verdict=word,
        sentence=show.sentence(word, own),
        statements=tuple(statements),
        machine=f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs{virtual}, kernel {machine.kernel}",
        cpus=len(machine.cpus_usable),
        grade=machine.grade,
        concerns=machine.concerns,
        **rest,
    )


def _of_trials(said: Statement, records: RunRecords) -> StatementVerdict:
    cpus, cells = len(records.info.machine.cpus_usable), cell_values.collect_cells(records.trials)
    found = [cells.get(cell.key, cell_values.CellTrials(())) for cell in said.cells]
    refused = unranked_reasons(records.info, records.trials, records.processes, records.verdicts)
    for cell, own in zip(said.cells, found, strict=True):
        lacking = ""
        if reason := refused.get(cell.key[:2]):
            lacking = f"{cell.implementation} {cell.test_type}: {reason}"
        elif not own.trials:
            lacking = f"{cell.label}: not measured"
        elif said.metric != ERRORS and not own.kept:  # errors are counted in excluded trials, too
            lacking = f"{cell.label}: excluded by validity checks: {own.why_empty}"
        if lacking:
            return _statement(said, cpus, Assessment(word="undecided", reason=lacking), takes=AGAIN)
    remarks = tuple(dict.fromkeys(check.flag for own in found for check in own.objections if check.flag))
    if said.metric == ERRORS:
        errors = sum(trial.errors.total for trial in found[0].trials)
        finding = of_count(errors, said.said, sum(trial.requests for trial in found[0].trials), "requests")
        return _statement(said, cpus, finding, value=float(errors), remarks=remarks)
    (of, to), metric = (cell.key for cell in said.cells), cell_values.METRICS[said.metric]
    measured = ratio(records.trials, of, to, said.metric, CONFIDENCE, records.processes)
    starts = cell_values.collect_process_values(records.processes, metric)  # for metrics of processes
    sides = [
        tuple(starts.get(name, {}).values()) if metric.of_process else _rounded(own.by_process(metric).values())
        for (name, *_), own in zip((of, to), found, strict=True)
    ]
    costs = [median(map(_cpu_seconds, own.kept)) for own in found]
    return _of_two(said, cpus, measured, sides, f"no {said.metric} was recorded", costs, remarks=remarks)


def _rounded(figures: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in figures)


def _cpu_seconds(trial: Trial) -> float:
    """Return the CPU seconds per request of server, generator and database together."""
    together = trial.server.cpu_seconds + trial.generator_cpu_seconds + (trial.database_cpu_seconds or 0.0)
    return together / max(trial.requests, 1)


def _of_figures(said: Statement, figures: Sequence[Mapping[str, float]], cpus: int) -> StatementVerdict:
    sides = [tuple(start[name] for start in figures) for name in said.figures]
    if len(sides) == 1:
        count = sum(map(bool, sides[0]))
        finding = of_count(count, said.said, len(sides[0]), "starts")
        if 0 < count < len(sides[0]):
            finding = Assessment(word="undecided", reason=finding.reason)
        return _statement(said, cpus, finding, value=float(count), processes=len(sides[0]))
    of, to = (dict(enumerate(side)) for side in sides)
    measured = ratio_of_values(of, to, CONFIDENCE) if all(map(all, sides)) else None
    return _of_two(said, cpus, measured, sides, "a start printed zero")


def _of_two(
    said: Statement,
    cpus: int,
    measured: Ratio | None,
    sides: Sequence[tuple[float, ...]],
    lacking: str,
    costs: Sequence[float] = (),
    **rest: Any,  # noqa: ANN401 - fields of the verdict
) -> StatementVerdict:
    """Judge a statement about two sides.

    Args:
        said: The statement.
        cpus: Number of usable CPUs of the machine.
        measured: The measured ratio, or None.
        sides: The values of each process, by side.
        lacking: The reason if there is no ratio.
        costs: CPU seconds per request, by side.
        rest: Further fields of the verdict.
    """
    if measured is None:
        return _statement(said, cpus, Assessment(word="undecided", reason=lacking), takes=AGAIN, **rest)
    processes = min(map(len, sides))
    if (expected := said.expected(cpus)) is not None:
        finding = of_ratio(expected, said.tolerance, measured, processes, said.least)
    else:
        finding = of_order(said.said, said.least, measured, processes, substantial=said.substantial)
    if said.needs:
        finding = of_size(finding, list(zip((said.needs.of, said.needs.to), costs, strict=True)), cpus)
    takes = f"about {finding.more:.0f} more of each" if finding.more else ""
    if finding.more > MANY:
        takes = f"more than {MANY} processes of each, or a quieter machine: what was measured is at the edge"
    rest |= {"figures_of": sides[0], "figures_to": sides[1], "confidence": CONFIDENCE, "processes": processes}
    return _statement(said, cpus, finding, takes=takes, **measured.model_dump(), **rest)


def _statement(said: Statement, cpus: int, finding: Assessment, **rest: Any) -> StatementVerdict:  # noqa: ANN401 - fields of the verdict
    least, most = (end if 0 < end < math.inf else None for end in finding.range or (0.0, 0.0))
    of, to, *_ = (*(cell.label for cell in said.cells), *said.figures, "")
    why = said.needs.why if said.needs and finding.word == "needs a larger machine" else said.why
    return StatementVerdict(
        name=said.name, metric=said.metric, of=of, to=to, said=said.said, expected=said.expected(cpus), theory=why,
        least=least, most=most, context=said.context, verdict=finding.word, reason=finding.reason,
        more=min(finding.more, 1e6), **rest,
    )  # fmt: skip
