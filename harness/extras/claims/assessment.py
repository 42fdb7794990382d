"""Judges claims by their statements. ``harness.stats`` computes every ratio and interval.

A statement claims a range of ratios. A ratio r with tolerance t means the range from r / (1 + t) to r (1 + t). An order
means all ratios on one side of 1; "not lower" and "not higher" ignore differences below ``Statement.least``. If the
range contains 1, the statement claims that the two sides are equal.

- refuted: the interval excludes a relevant difference in the claimed direction. If equality was claimed, the interval
  lies outside the range.
- supported: the interval lies within the range.
- direction only: the interval lies on the claimed side of 1, but not within the range.
- undecided: all other cases.

The orders ``none`` and ``some`` apply to counts: nonzero values in the starts of a program, or errors among all
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

# Claims are judged again after each run. With a confidence of 98 % each time, the error probability after three looks
# is 5 % (Pocock 1977, Biometrika 64, table 1: nominal 2.2 % each), and after eight looks 8 %. The number of looks is
# not limited.
CONFIDENCE = 0.98
MISSING_VALUE = "another run, because a side has no value"
MAX_FURTHER_PROCESSES = 100  # no estimate is shown if more processes would be necessary
# A claim gets the first of these verdicts that any statement has, or the last one if a single statement suffices.
WORST_FIRST: tuple[ClaimConclusion, ...] = (
    "refuted",
    "undecided",
    "needs a larger machine",
    "direction only",
    "supported",
)


class Range(NamedTuple):
    """The range of ratios that a statement claims; 0 or infinity where a side is unlimited."""

    least: float
    most: float

    def __str__(self) -> str:
        ends = [f"{end:.3g}" for end in self if 0 < end < math.inf]
        return " to ".join(ends) if len(ends) > 1 else f"{'above' if math.isinf(self.most) else 'below'} {ends[0]}"


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A verdict with a reason, and the number of further processes per side that could lead to a better verdict."""

    conclusion: ClaimConclusion
    reason: str
    more: float = 0.0
    range: Range | None = None


def judge_claimed_ratio(
    expected: float, tolerance: float, measured: Ratio, processes: int, least: float = 0.05
) -> Assessment:
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
        return Assessment(conclusion="supported", reason=f"the interval lies within {meant}", range=meant)
    outside = high < meant.least or low > meant.most
    if meant.least <= 1 <= meant.most:
        if outside:
            return Assessment(
                conclusion="refuted", reason=f"the sides differ: the interval excludes {meant}", range=meant
            )
        return _leave_open("undecided", measured, processes, meant, meant, f"the interval reaches beyond {meant}")
    if outside and ((high < 1 + least) if expected > 1 else (low > 1 / (1 + least))):
        return Assessment(
            conclusion="refuted",
            reason=f"the interval excludes a difference of {least:.0%} in the claimed direction",
            range=meant,
        )
    if (low > 1) if expected > 1 else (high < 1):
        if outside:
            return Assessment(
                conclusion="direction only",
                reason=f"the order is as claimed, but the ratio is not {meant}",
                range=meant,
            )
        return _leave_open(
            "direction only",
            measured,
            processes,
            meant,
            meant,
            f"the interval does not decide whether the ratio is {meant}",
        )
    return _leave_open(
        "undecided", measured, processes, meant, (1.0, *meant), "the interval contains 1, so the order is open"
    )


def judge_claimed_order(
    order: str, least: float, measured: Ratio, processes: int, *, substantial: bool = False
) -> Assessment:
    """Judge a claimed order: higher, lower, not higher or not lower.

    Args:
        order: The claimed order.
        least: Smallest relevant relative difference.
        measured: The measured ratio with the interval.
        processes: Number of measured processes per side.
        substantial: Whether the claim means a difference of at least ``least``.
    """
    edge = 1 + least if order.endswith("higher") else 1 / (1 + least)
    above = order in ("higher", "not lower")
    side = edge if substantial or order.startswith("not ") else 1.0
    meant = Range(side, math.inf) if above else Range(0.0, side)
    low, high = measured.low or 0.0, measured.high or math.inf
    if (high < edge) if above else (low > edge):
        return Assessment(
            conclusion="refuted",
            reason=f"the interval excludes a difference of {least:.0%} in the claimed direction",
            range=meant,
        )
    if (meant.least < low) if above else (high < meant.most):
        return Assessment(conclusion="supported", reason=f"the interval lies {meant}", range=meant)
    return _leave_open("undecided", measured, processes, meant, (side, edge), f"the interval contains {side:.3g}")


def _leave_open(
    word: ClaimConclusion, measured: Ratio, processes: int, meant: Range, edges: Sequence[float], reason: str
) -> Assessment:
    """Return an undecided assessment. Estimate how many processes would move the interval past the nearest edge.

    The half-width of the interval decreases with the square root of the number of processes. Student's quantile
    decreases as well. The estimate ignores this, so it is conservative.
    """
    if measured.low is None or measured.high is None:
        alone = f"{measured.value:.2f} comes from one process per side, so it has no interval"
        return Assessment(conclusion="undecided", reason=alone, more=1, range=meant)
    half = math.log(measured.high / measured.low) / 2
    gap = min(abs(math.log(measured.value / edge)) for edge in edges)
    wanted = math.ceil(processes * (half / gap) ** 2) if gap > 0 else math.inf
    return Assessment(conclusion=word, reason=reason, more=max(wanted - processes, 1), range=meant)


def judge_count(count: int, said: str, total: int, what: str) -> Assessment:
    """Judge a count against "none" or "some"; ``total`` is the number of requests or starts (``what``)."""
    word: ClaimConclusion = "supported" if (count == 0) == (said == "none") else "refuted"
    return Assessment(conclusion=word if count or total else "undecided", reason=f"{count:,} in {total:,} {what}")


def consider_machine_size(assessment: Assessment, loads: Sequence[tuple[float, float]], cpus: int) -> Assessment:
    """Return "needs a larger machine" if the claimed rates need more CPUs than are available, else the assessment.

    By the utilisation law, the number of CPUs is requests/s times CPU seconds per request. ``loads`` contains both for
    each side.
    """
    rate, cost = max(loads, key=math.prod)
    if rate * cost <= cpus:
        return assessment
    reason = (
        f"{rate:,.0f} requests/s at the {cost * 1e6:,.0f} µs of CPU that one took here, generator and database with "
        f"it, are {math.ceil(rate * cost)} CPUs; here are {cpus}"
    )
    return replace(assessment, conclusion="needs a larger machine", reason=reason, more=0.0)


def combine_conclusions(words: Sequence[ClaimConclusion], *, can: bool = False) -> ClaimConclusion:
    """Return the verdict on a claim: the least favourable verdict of a statement, or the most favourable if ``can``."""
    return next((word for word in (WORST_FIRST[::-1] if can else WORST_FIRST) if word in words), "undecided")


# ---- from records ----------------------------------------------------------------------------------------------------


def judge_by_runs(claim: Claim, records: RunRecords, runs: Sequence[RunInfo]) -> ClaimVerdict:
    """Judge a claim about implementations by the combined records of several runs."""
    info = max(runs, key=lambda run: run.started_at)
    concerns = tuple(dict.fromkeys(concern for run in runs for concern in run.machine.concerns))
    machine = info.machine.model_copy(update={"concerns": concerns, "grade": max(run.machine.grade for run in runs)})
    statements = [_judge_by_trials(each, records) for each in claim.compare]
    where = {name: getattr(info, name) for name in ("profile", "runtime", "revision", "dirty")}
    at, names = info.completed_at or info.started_at, tuple(run.run_id for run in runs)
    return _verdict(claim, machine, statements, measured_at=at, runs=names, **where)


def judge_by_program(
    claim: Claim,
    figures: Sequence[Mapping[str, float]],
    machine: Machine,
    **where: Any,  # noqa: ANN401 - fields of the verdict
) -> ClaimVerdict:
    """Judge a claim about a program by the figures that the program printed at each start."""
    statements = [_judge_by_figures(each, figures, len(machine.cpus_usable)) for each in claim.compare]
    return _verdict(claim, machine, statements, figures=tuple(map(dict, figures)), **where)


def _verdict(claim: Claim, machine: Machine, statements: Sequence[StatementVerdict], **rest: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    virtual = f", {machine.virtualised}" if machine.virtualised else ""
    own = [each for each in statements if not each.context]
    word = combine_conclusions([each.verdict for each in own], can=claim.can)
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


def _judge_by_trials(said: Statement, records: RunRecords) -> StatementVerdict:
    cpus, cells = len(records.info.machine.cpus_usable), cell_values.collect_cells(records.trials)
    measured_cells = [cells.get(cell.key, cell_values.CellTrials(())) for cell in said.cells]
    unranked = unranked_reasons(records.info, records.trials, records.processes, records.verdicts)
    for cell, own in zip(said.cells, measured_cells, strict=True):
        missing = ""
        if reason := unranked.get(cell.key[:2]):
            missing = f"{cell.implementation} {cell.test_type}: {reason}"
        elif not own.trials:
            missing = f"{cell.label}: not measured"
        elif said.metric != ERRORS and not own.kept:  # errors are also counted in excluded trials
            missing = f"{cell.label}: excluded by validity checks: {own.why_empty}"
        if missing:
            return _statement(said, cpus, Assessment(conclusion="undecided", reason=missing), takes=MISSING_VALUE)
    remarks = tuple(dict.fromkeys(check.flag for own in measured_cells for check in own.objections if check.flag))
    if said.metric == ERRORS:
        errors = sum(trial.errors.total for trial in measured_cells[0].trials)
        assessment = judge_count(
            errors, said.said, sum(trial.requests for trial in measured_cells[0].trials), "requests"
        )
        return _statement(said, cpus, assessment, value=float(errors), remarks=remarks)
    (of, to), metric = (cell.key for cell in said.cells), cell_values.METRICS[said.metric]
    measured = ratio(records.trials, of, to, said.metric, CONFIDENCE, records.processes)
    # Used only if the metric has a single value per process.
    starts = cell_values.collect_process_values(records.processes, metric)
    sides = [
        tuple(starts.get(name, {}).values()) if metric.of_process else _rounded(own.by_process(metric).values())
        for (name, *_), own in zip((of, to), measured_cells, strict=True)
    ]
    costs = [median(map(_cpu_seconds, own.kept)) for own in measured_cells]
    return _judge_two_sides(said, cpus, measured, sides, f"no {said.metric} was recorded", costs, remarks=remarks)


def _rounded(figures: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in figures)


def _cpu_seconds(trial: Trial) -> float:
    """Return the CPU seconds per request of server, generator and database in total."""
    together = trial.server.cpu_seconds + trial.generator_cpu_seconds + (trial.database_cpu_seconds or 0.0)
    return together / max(trial.requests, 1)


def _judge_by_figures(said: Statement, figures: Sequence[Mapping[str, float]], cpus: int) -> StatementVerdict:
    sides = [tuple(start[name] for start in figures) for name in said.figures]
    if len(sides) == 1:
        count = sum(map(bool, sides[0]))
        assessment = judge_count(count, said.said, len(sides[0]), "starts")
        if 0 < count < len(sides[0]):
            assessment = Assessment(conclusion="undecided", reason=assessment.reason)
        return _statement(said, cpus, assessment, value=float(count), processes=len(sides[0]))
    of, to = (dict(enumerate(side)) for side in sides)
    measured = ratio_of_values(of, to, CONFIDENCE) if all(map(all, sides)) else None
    return _judge_two_sides(said, cpus, measured, sides, "a start printed zero")


def _judge_two_sides(
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
        return _statement(said, cpus, Assessment(conclusion="undecided", reason=lacking), takes=MISSING_VALUE, **rest)
    processes = min(map(len, sides))
    if (expected := said.expected(cpus)) is not None:
        assessment = judge_claimed_ratio(expected, said.tolerance, measured, processes, said.least)
    else:
        assessment = judge_claimed_order(said.said, said.least, measured, processes, substantial=said.substantial)
    if said.needs:
        assessment = consider_machine_size(
            assessment, list(zip((said.needs.of, said.needs.to), costs, strict=True)), cpus
        )
    takes = f"about {assessment.more:.0f} more processes per side" if assessment.more else ""
    if assessment.more > MAX_FURTHER_PROCESSES:
        takes = f"more than {MAX_FURTHER_PROCESSES} processes per side, or a quieter machine"
    rest |= {"figures_of": sides[0], "figures_to": sides[1], "confidence": CONFIDENCE, "processes": processes}
    return _statement(said, cpus, assessment, takes=takes, **measured.model_dump(), **rest)


def _statement(said: Statement, cpus: int, assessment: Assessment, **rest: Any) -> StatementVerdict:  # noqa: ANN401 - fields of the verdict
    least, most = (end if 0 < end < math.inf else None for end in assessment.range or (0.0, 0.0))
    of, to, *_ = (*(cell.label for cell in said.cells), *said.figures, "")
    why = said.needs.why if said.needs and assessment.conclusion == "needs a larger machine" else said.why
    return StatementVerdict(
        name=said.name, metric=said.metric, of=of, to=to, said=said.said, expected=said.expected(cpus), theory=why,
        least=least, most=most, context=said.context, verdict=assessment.conclusion, reason=assessment.reason,
        more=min(assessment.more, 1e6), **rest,
    )  # fmt: skip
