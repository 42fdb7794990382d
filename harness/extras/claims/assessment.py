"""Judges the statements of a claim and derives the claim's verdict. ``harness.stats`` computes ratios and intervals.

A statement compares two sides: two cells, or two figures that a program prints. It claims a range for their ratio:

- For a claimed ratio r with tolerance t, the range is r / (1 + t) to r (1 + t). If the range contains 1, the statement
  claims that the two sides are equal.
- For a claimed order, the range is everything above 1 or everything below 1. The orders "not lower" and "not higher"
  ignore differences below ``Statement.least``. With ``Statement.substantial``, the range begins at this difference.

The conclusion depends on how the claimed range and the measured ratio's confidence interval overlap:

- refuted: the interval excludes a relevant difference in the claimed direction or, for claimed equality, lies outside
  the range.
- supported: the interval lies within the range.
- direction only: the interval lies on the claimed side of 1, but not within the range.
- undecided: all other cases.

The orders ``none`` and ``some`` apply to counts. A count is the number of errors in a cell, or the number of starts at
which a program printed a nonzero figure.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from harness.extras.claims import show
from harness.extras.claims.claim import ERRORS, Claim, Statement
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.records.run_info import Machine, RunInfo
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import ClaimConclusion
from harness.stats import cell_values
from harness.stats.cell_comparison import ratio, ratio_of_values
from harness.stats.ranking_model import Ratio
from harness.stats.unranked import unranked_reasons

# tfb judges claims again after each run, and each judgement may be wrong. At 98 % confidence, the total error
# probability is 5 % after three judgements and 8 % after eight (Pocock 1977, Biometrika 64, table 1: nominal 2.2 %).
# The number of judgements is not limited.
CONFIDENCE = 0.98
MISSING_VALUE = "another run, because a side has no value"
MAX_FURTHER_PROCESSES = 100  # per side; give up on statements that would need more
# Conclusions, worst first. A claim's verdict is the worst conclusion on its statements. If one supported statement is
# enough, the verdict is the best conclusion instead.
WORST_FIRST: tuple[ClaimConclusion, ...] = (
    "refuted",
    "undecided",
    "needs a larger machine",
    "direction only",
    "supported",
)


class Range(NamedTuple):
    """The range of ratios that a statement claims. A missing lower limit is 0; a missing upper limit is infinity."""

    least: float
    most: float

    def __str__(self) -> str:
        ends = [f"{end:.3g}" for end in self if 0 < end < math.inf]
        return " to ".join(ends) if len(ends) > 1 else f"{'above' if math.isinf(self.most) else 'below'} {ends[0]}"


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A conclusion about a statement, and the reason for it."""

    conclusion: ClaimConclusion
    reason: str
    more_processes: float = 0.0  # additional processes per side that could improve the conclusion
    range: Range | None = None  # the claimed range; None for a count, or if a value is missing


def judge_claimed_ratio(
    expected: float, tolerance: float, measured_ratio: Ratio, processes: int, smallest_relevant: float
) -> Assessment:
    """Judge a claimed ratio. ``tolerance`` and ``smallest_relevant`` are relative differences, such as 0.15."""
    claimed_range = Range(expected / (1 + tolerance), expected * (1 + tolerance))
    low, high = measured_ratio.low or 0.0, measured_ratio.high or math.inf
    if claimed_range.least <= low and high <= claimed_range.most:
        return Assessment(
            conclusion="supported", reason=f"the interval lies within {claimed_range}", range=claimed_range
        )
    excludes_claimed = high < claimed_range.least or low > claimed_range.most
    if claimed_range.least <= 1 <= claimed_range.most:
        if excludes_claimed:
            return Assessment(
                conclusion="refuted",
                reason=f"the sides differ: the interval excludes {claimed_range}",
                range=claimed_range,
            )
        return _leave_open(
            "undecided",
            measured_ratio,
            processes,
            claimed_range,
            claimed_range,
            f"the interval extends beyond {claimed_range}",
        )
    if excludes_claimed and ((high < 1 + smallest_relevant) if expected > 1 else (low > 1 / (1 + smallest_relevant))):
        return Assessment(
            conclusion="refuted",
            reason=f"the interval excludes a difference of {smallest_relevant:.0%} in the claimed direction",
            range=claimed_range,
        )
    if (low > 1) if expected > 1 else (high < 1):
        if excludes_claimed:
            return Assessment(
                conclusion="direction only",
                reason=f"the order is as claimed, but the ratio is not {claimed_range}",
                range=claimed_range,
            )
        return _leave_open(
            "direction only",
            measured_ratio,
            processes,
            claimed_range,
            claimed_range,
            f"it is undecided whether the ratio is {claimed_range}",
        )
    return _leave_open(
        "undecided",
        measured_ratio,
        processes,
        claimed_range,
        (1.0, *claimed_range),
        "the interval contains 1, so the order is undecided",
    )


def judge_claimed_order(
    order: str, smallest_relevant: float, measured_ratio: Ratio, processes: int, *, substantial: bool = False
) -> Assessment:
    """Judge a claimed order. If ``substantial`` is set, the claimed difference is at least ``smallest_relevant``."""
    edge = 1 + smallest_relevant if order.endswith("higher") else 1 / (1 + smallest_relevant)
    above = order in ("higher", "not lower")
    limit = edge if substantial or order.startswith("not ") else 1.0
    claimed_range = Range(limit, math.inf) if above else Range(0.0, limit)
    low, high = measured_ratio.low or 0.0, measured_ratio.high or math.inf
    if (high < edge) if above else (low > edge):
        return Assessment(
            conclusion="refuted",
            reason=f"the interval excludes a difference of {smallest_relevant:.0%} in the claimed direction",
            range=claimed_range,
        )
    if (claimed_range.least < low) if above else (high < claimed_range.most):
        return Assessment(conclusion="supported", reason=f"the interval lies {claimed_range}", range=claimed_range)
    return _leave_open(
        "undecided", measured_ratio, processes, claimed_range, (limit, edge), f"the interval contains {limit:.3g}"
    )


def _leave_open(
    conclusion: ClaimConclusion,
    measured_ratio: Ratio,
    processes: int,
    claimed_range: Range,
    edges: Sequence[float],
    reason: str,
) -> Assessment:
    """Return an assessment with the number of additional processes that would probably be enough for a decision.

    ``edges`` are the ratios at which the conclusion changes. A decision requires an interval that does not contain the
    nearest of them. The half-width decreases with the square root of the number of processes. The estimate is
    conservative, because it ignores that Student's quantile also decreases.
    """
    if measured_ratio.low is None or measured_ratio.high is None:
        reason_without_interval = f"the ratio {measured_ratio.value:.2f} has no interval: each side has one process"
        return Assessment(conclusion="undecided", reason=reason_without_interval, more_processes=1, range=claimed_range)
    half_width = math.log(measured_ratio.high / measured_ratio.low) / 2
    gap = min(abs(math.log(measured_ratio.value / edge)) for edge in edges)
    total_processes = math.ceil(processes * (half_width / gap) ** 2) if gap > 0 else math.inf
    return Assessment(
        conclusion=conclusion, reason=reason, more_processes=max(total_processes - processes, 1), range=claimed_range
    )


def judge_count(count: int, order: str, total: int, what: str) -> Assessment:
    """Judge the claim that ``count`` is zero ("none") or above zero ("some"). ``what`` is the unit of ``total``."""
    conclusion: ClaimConclusion = "supported" if (count == 0) == (order == "none") else "refuted"
    return Assessment(conclusion=conclusion if count or total else "undecided", reason=f"{count:,} in {total:,} {what}")


def consider_machine_size(assessment: Assessment, loads: Sequence[tuple[float, float]], cpus: int) -> Assessment:
    """Return "needs a larger machine" if the claimed rates exceed the capacity of ``cpus``, otherwise the assessment.

    ``loads`` contains each side's requests/s and CPU seconds per request. Their product is the number of busy CPUs.
    """
    rate, cost = max(loads, key=math.prod)
    if rate * cost <= cpus:
        return assessment
    reason = (
        f"{rate:,.0f} requests/s need {math.ceil(rate * cost)} CPUs, because each request takes {cost * 1e6:,.0f} µs "
        f"of CPU time in the server, generator and database; this machine has {cpus} CPUs"
    )
    return replace(assessment, conclusion="needs a larger machine", reason=reason, more_processes=0.0)


def combine_conclusions(words: Sequence[ClaimConclusion], *, can: bool = False) -> ClaimConclusion:
    """Return a claim's verdict: the worst conclusion on its statements, or the best conclusion if ``can`` is set."""
    return next((word for word in (WORST_FIRST[::-1] if can else WORST_FIRST) if word in words), "undecided")


# ---- verdicts from recorded runs and program output ------------------------------------------------------------------


def judge_by_runs(claim: Claim, records: RunRecords, runs: Sequence[RunInfo]) -> ClaimVerdict:
    """Judge a claim about implementations from the combined records of several runs."""
    info = max(runs, key=lambda run: run.started_at)
    concerns = tuple(dict.fromkeys(concern for run in runs for concern in run.machine.concerns))
    machine = info.machine.model_copy(update={"concerns": concerns, "grade": max(run.machine.grade for run in runs)})
    statements = [_judge_by_trials(each, records) for each in claim.compare]
    where = {name: getattr(info, name) for name in ("profile", "runtime", "revision", "dirty")}
    measured_at, names = info.completed_at or info.started_at, tuple(run.run_id for run in runs)
    return _verdict(claim, machine, statements, measured_at=measured_at, runs=names, **where)


def judge_by_program(
    claim: Claim,
    figures: Sequence[Mapping[str, float]],
    machine: Machine,
    **fields: Any,  # noqa: ANN401 - fields of the verdict
) -> ClaimVerdict:
    """Judge a claim about a program from the figures that the program printed at each start."""
    statements = [_judge_by_figures(each, figures, len(machine.cpus_usable)) for each in claim.compare]
    return _verdict(claim, machine, statements, figures=tuple(map(dict, figures)), **fields)


def _verdict(claim: Claim, machine: Machine, statements: Sequence[StatementVerdict], **fields: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    virtual = f", {machine.virtualised}" if machine.virtualised else ""
    claimed_statements = [each for each in statements if not each.context]
    conclusion = combine_conclusions([each.verdict for each in claimed_statements], can=claim.can)
    return ClaimVerdict(
        claim=claim.name,
        **claim.model_dump(include={"title", "talk", "page", "said", "conditions", "here"}),
        verdict=conclusion,
        sentence=show.sentence(conclusion, claimed_statements),
        statements=tuple(statements),
        machine=f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs{virtual}, kernel {machine.kernel}",
        cpus=len(machine.cpus_usable),
        grade=machine.grade,
        concerns=machine.concerns,
        **fields,
    )


def _judge_by_trials(statement: Statement, records: RunRecords) -> StatementVerdict:
    cpus, cells = len(records.info.machine.cpus_usable), cell_values.collect_cells(records.trials)
    measured_cells = [cells.get(cell.key, cell_values.CellTrials(())) for cell in statement.cells]
    unranked = unranked_reasons(records.info, records.trials, records.processes, records.verdicts)
    for cell, cell_trials in zip(statement.cells, measured_cells, strict=True):
        missing = ""
        if reason := unranked.get(cell.key[:2]):
            missing = f"{cell.implementation} {cell.test_type}: {reason}"
        elif not cell_trials.trials:
            missing = f"{cell.label}: not measured"
        elif statement.metric != ERRORS and not cell_trials.valid:  # excluded trials still count towards errors
            missing = f"{cell.label}: excluded by validity checks: {cell_trials.why_empty}"
        if missing:
            return _statement(statement, cpus, Assessment(conclusion="undecided", reason=missing), takes=MISSING_VALUE)
    remarks = tuple(
        dict.fromkeys(check.flag for cell_trials in measured_cells for check in cell_trials.objections if check.flag)
    )
    if statement.metric == ERRORS:
        errors = sum(trial.errors.total for trial in measured_cells[0].trials)
        assessment = judge_count(
            errors, statement.said, sum(trial.requests for trial in measured_cells[0].trials), "requests"
        )
        return _statement(statement, cpus, assessment, value=float(errors), remarks=remarks)
    (numerator, denominator), metric = (cell.key for cell in statement.cells), cell_values.METRICS[statement.metric]
    measured_ratio = ratio(records.trials, numerator, denominator, statement.metric, CONFIDENCE, records.processes)
    # Some metrics, such as the startup time, have a single value per process.
    starts = cell_values.collect_process_values(records.processes, metric)
    sides = [
        tuple(starts.get(name, {}).values()) if metric.of_process else _rounded(cell_trials.by_process(metric).values())
        for (name, *_), cell_trials in zip((numerator, denominator), measured_cells, strict=True)
    ]
    costs = [median(map(_cpu_seconds, cell_trials.valid)) for cell_trials in measured_cells]
    return _judge_two_sides(
        statement, cpus, measured_ratio, sides, f"no {statement.metric} was recorded", costs, remarks=remarks
    )


def _rounded(figures: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in figures)


def _cpu_seconds(trial: Trial) -> float:
    """Return the CPU seconds per request, summed over the server, the generator and the database."""
    seconds = trial.server.cpu_seconds + trial.generator_cpu_seconds + (trial.database_cpu_seconds or 0.0)
    return seconds / max(trial.requests, 1)


def _judge_by_figures(statement: Statement, figures: Sequence[Mapping[str, float]], cpus: int) -> StatementVerdict:
    sides = [tuple(start[name] for start in figures) for name in statement.figures]
    if len(sides) == 1:
        count = sum(map(bool, sides[0]))
        assessment = judge_count(count, statement.said, len(sides[0]), "starts")
        if 0 < count < len(sides[0]):
            assessment = Assessment(conclusion="undecided", reason=assessment.reason)
        return _statement(statement, cpus, assessment, value=float(count), processes=len(sides[0]))
    of, to = (dict(enumerate(side)) for side in sides)
    measured = ratio_of_values(of, to, CONFIDENCE) if all(map(all, sides)) else None
    return _judge_two_sides(statement, cpus, measured, sides, "the program printed zero at one or more starts")


def _judge_two_sides(
    statement: Statement,
    cpus: int,
    measured_ratio: Ratio | None,
    sides: Sequence[tuple[float, ...]],
    missing_reason: str,
    costs: Sequence[float] = (),
    **fields: Any,  # noqa: ANN401 - fields of the verdict
) -> StatementVerdict:
    """Judge a statement about two sides.

    ``sides`` contains each side's values, one per process. ``costs`` contains each side's CPU seconds per request.
    """
    if measured_ratio is None:
        return _statement(
            statement, cpus, Assessment(conclusion="undecided", reason=missing_reason), takes=MISSING_VALUE, **fields
        )
    processes = min(map(len, sides))
    if (expected := statement.expected(cpus)) is not None:
        assessment = judge_claimed_ratio(expected, statement.tolerance, measured_ratio, processes, statement.least)
    else:
        assessment = judge_claimed_order(
            statement.said, statement.least, measured_ratio, processes, substantial=statement.substantial
        )
    if statement.needs:
        assessment = consider_machine_size(
            assessment, list(zip((statement.needs.of, statement.needs.to), costs, strict=True)), cpus
        )
    takes = f"about {assessment.more_processes:.0f} more processes per side" if assessment.more_processes else ""
    if assessment.more_processes > MAX_FURTHER_PROCESSES:
        takes = f"more than {MAX_FURTHER_PROCESSES} processes per side, or a quieter machine"
    fields |= {"figures_of": sides[0], "figures_to": sides[1], "confidence": CONFIDENCE, "processes": processes}
    return _statement(statement, cpus, assessment, takes=takes, **measured_ratio.model_dump(), **fields)


def _statement(statement: Statement, cpus: int, assessment: Assessment, **fields: Any) -> StatementVerdict:  # noqa: ANN401 - fields of the verdict
    low, high = (end if 0 < end < math.inf else None for end in assessment.range or (0.0, 0.0))
    numerator, denominator, *_ = (*(cell.label for cell in statement.cells), *statement.figures, "")
    explanation = (
        statement.needs.why if statement.needs and assessment.conclusion == "needs a larger machine" else statement.why
    )
    return StatementVerdict(
        name=statement.name, metric=statement.metric, of=numerator, to=denominator, said=statement.said,
        expected=statement.expected(cpus), theory=explanation, least=low, most=high,
        context=statement.context, verdict=assessment.conclusion, reason=assessment.reason,
        more=min(assessment.more_processes, 1e6), **fields,
    )  # fmt: skip
