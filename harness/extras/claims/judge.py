"""The verdict on a claim, by its source's own statements: every ratio with its interval is ``harness.stats``'s.

A statement means a range of ratios: of a ratio r, all from r / (1 + t) to r (1 + t); of an order, all on its side of 1,
where "not lower" lets a difference pass that is smaller than one that anybody would speak of. A range that holds 1 says
that two are alike, and no order.

- refuted: the interval leaves no room for a difference that is worth the name; where two were said to be alike, it lies
  outside of the range;
- supported: it lies within the range;
- direction only: it lies on the claimed side of 1, and not within the range;
- undecided: anything else.

Of what is counted, ``none`` and ``some`` speak of every start of a program, and of all requests together.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from harness.extras.claims import show
from harness.extras.claims.claim import ERRORS, Claim, Statement
from harness.records.claims import ClaimVerdict, StatementVerdict, Word
from harness.records.models import Machine, RunInfo, RunRecords, Trial
from harness.stats import values
from harness.stats.compare import ratio, ratio_of_values
from harness.stats.model import Ratio
from harness.stats.verdicts import unranked

# Evidence accumulates, and is looked at after each run: at 98 % three looks err together in 5 % (Pocock 1977,
# Biometrika 64, table 1: a nominal 2.2 % each), eight in 8 %, and nothing ends them. A verdict names its runs.
CONFIDENCE = 0.98
AGAIN = "another run: what was to be compared has no figure"
MANY = 100  # processes: beyond, what a claim takes is told as more than that
# Of a claim the first of these that its statements have; where one is enough, the first from the end.
ORDER: tuple[Word, ...] = ("refuted", "undecided", "needs a larger machine", "direction only", "supported")


class Range(NamedTuple):
    """Ratios that count as what was said; endless where there is no end on a side."""

    least: float
    most: float

    def __str__(self) -> str:
        ends = [f"{end:.3g}" for end in self if 0 < end < math.inf]
        return " to ".join(ends) if len(ends) > 1 else f"{'above' if math.isinf(self.most) else 'below'} {ends[0]}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A verdict with the reason in a sentence, and how many more processes of each would decide more."""

    word: Word
    reason: str
    more: float = 0.0
    range: Range | None = None


def of_ratio(expected: float, tolerance: float, measured: Ratio, processes: int, least: float = 0.05) -> Finding:
    """Whether a measured ratio is what was claimed, within the tolerance. ``least``: the least difference of two."""
    meant = Range(expected / (1 + tolerance), expected * (1 + tolerance))
    low, high = measured.low or 0.0, measured.high or math.inf
    if meant.least <= low and high <= meant.most:
        return Finding(word="supported", reason=f"all of the interval is within {meant}", range=meant)
    outside = high < meant.least or low > meant.most
    if meant.least <= 1 <= meant.most:
        if outside:
            return Finding(word="refuted", reason=f"the two are not alike: {meant} is excluded", range=meant)
        return _open("undecided", measured, processes, meant, meant, f"the interval reaches beyond {meant}")
    if outside and ((high < 1 + least) if expected > 1 else (low > 1 / (1 + least))):
        return Finding(word="refuted", reason=f"a difference of {least:.0%} as it was said is excluded", range=meant)
    if (low > 1) if expected > 1 else (high < 1):
        if outside:
            return Finding(word="direction only", reason=f"the order is as said, the size is not {meant}", range=meant)
        return _open("direction only", measured, processes, meant, meant, f"whether the size is {meant} is open")
    return _open("undecided", measured, processes, meant, (1.0, *meant), "the order is open: the interval holds 1")


def of_order(order: str, least: float, measured: Ratio, processes: int, *, substantial: bool = False) -> Finding:
    """Whether the one is higher, lower, not higher or not lower than the other, by ``least`` where substantially so."""
    edge = 1 + least if order.endswith("higher") else 1 / (1 + least)
    above = order in ("higher", "not lower")
    side = edge if substantial or order.startswith("not ") else 1.0
    meant = Range(side, math.inf) if above else Range(0.0, side)
    low, high = measured.low or 0.0, measured.high or math.inf
    if (high < edge) if above else (low > edge):
        return Finding(word="refuted", reason=f"a difference of {least:.0%} as it was said is excluded", range=meant)
    if (meant.least < low) if above else (high < meant.most):
        return Finding(word="supported", reason=f"all of the interval is {meant}", range=meant)
    return _open("undecided", measured, processes, meant, (side, edge), f"the interval holds {side:.3g}")


def _open(word: Word, measured: Ratio, processes: int, meant: Range, edges: Sequence[float], reason: str) -> Finding:
    """Open, with the processes after which the interval would lie clear of the nearest edge: a cautious guess.

    Half-widths fall with the root of the number of processes; that t's quantile falls, too, is left out.
    """
    if measured.low is None or measured.high is None:
        alone = f"{measured.value:.2f} of one process each has no interval"
        return Finding(word="undecided", reason=alone, more=1, range=meant)
    half = math.log(measured.high / measured.low) / 2
    gap = min(abs(math.log(measured.value / edge)) for edge in edges)
    wanted = math.ceil(processes * (half / gap) ** 2) if gap > 0 else math.inf
    return Finding(word=word, reason=reason, more=max(wanted - processes, 1), range=meant)


def of_count(count: int, said: str, total: int, what: str) -> Finding:
    """Whether there was none, or some, of what was counted in so many."""
    word: Word = "supported" if (count == 0) == (said == "none") else "refuted"
    return Finding(word=word if count or total else "undecided", reason=f"{count:,} in {total:,} {what}")


def of_size(finding: Finding, loads: Sequence[tuple[float, float]], cpus: int) -> Finding:
    """By the utilisation law, requests/s take so many CPUs times the CPU seconds of one; as found where there are."""
    rate, cost = max(loads, key=math.prod)
    if rate * cost <= cpus:
        return finding
    reason = (
        f"{rate:,.0f} requests/s at the {cost * 1e6:,.0f} µs of CPU that one took here, generator and database with "
        f"it, are {math.ceil(rate * cost)} CPUs; here are {cpus}"
    )
    return replace(finding, word="needs a larger machine", reason=reason, more=0.0)


def of_claim(words: Sequence[Word], *, can: bool = False) -> Word:
    """The verdict on a claim: the least favourable of its statements, or the most where one of them is enough."""
    return next((word for word in (ORDER[::-1] if can else ORDER) if word in words), "undecided")


# ---- from records ----------------------------------------------------------------------------------------------------


def of_runs(claim: Claim, records: RunRecords, runs: Sequence[RunInfo]) -> ClaimVerdict:
    """The verdict on a claim about implementations, from the records of these runs as of one."""
    info = max(runs, key=lambda run: run.started_at)
    concerns = tuple(dict.fromkeys(concern for run in runs for concern in run.machine.concerns))
    machine = info.machine.model_copy(update={"concerns": concerns, "grade": max(run.machine.grade for run in runs)})
    statements = [_of_trials(each, records) for each in claim.compare]
    where = {name: getattr(info, name) for name in ("profile", "runtime", "revision", "dirty")}
    at, names = info.completed_at or info.started_at, tuple(run.run_id for run in runs)
    return _verdict(claim, machine, statements, measured_at=at, runs=names, **where)


def of_program(claim: Claim, figures: Sequence[Mapping[str, float]], machine: Machine, **where: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    """The verdict on a claim about a program, from what each of its starts printed."""
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
    cpus, cells = len(records.info.machine.cpus_usable), values.collect(records.trials)
    found = [cells.get(cell.key, values.Cell(())) for cell in said.cells]
    refused = unranked(records.info, records.trials, records.processes, records.verdicts)
    for cell, own in zip(said.cells, found, strict=True):
        lacking = ""
        if reason := refused.get(cell.key[:2]):
            lacking = f"{cell.implementation} {cell.test_type}: {reason}"
        elif not own.trials:
            lacking = f"{cell.label}: not measured"
        elif said.metric != ERRORS and not own.kept:  # errors are counted whatever the gates say
            lacking = f"{cell.label}: kept out by its gates: {own.why_empty}"
        if lacking:
            return _statement(said, cpus, Finding(word="undecided", reason=lacking), takes=AGAIN)
    remarks = tuple(dict.fromkeys(gate.word for own in found for gate in own.objections if gate.word))
    if said.metric == ERRORS:
        errors = sum(trial.errors.total for trial in found[0].trials)
        finding = of_count(errors, said.said, sum(trial.requests for trial in found[0].trials), "requests")
        return _statement(said, cpus, finding, value=float(errors), remarks=remarks)
    (of, to), metric = (cell.key for cell in said.cells), values.METRICS[said.metric]
    measured = ratio(records.trials, of, to, said.metric, CONFIDENCE, records.processes)
    starts = values.by_start(records.processes, metric)  # of a metric of processes
    sides = [
        tuple(starts.get(name, {}).values()) if metric.of_process else _rounded(own.by_process(metric).values())
        for (name, *_), own in zip((of, to), found, strict=True)
    ]
    costs = [median(map(_cpu_seconds, own.kept)) for own in found]
    return _of_two(said, cpus, measured, sides, f"no {said.metric} was recorded", costs, remarks=remarks)


def _rounded(figures: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in figures)


def _cpu_seconds(trial: Trial) -> float:
    """Of server, generator and database, a request."""
    together = trial.server.cpu_seconds + trial.generator_cpu_seconds + (trial.database_cpu_seconds or 0.0)
    return together / max(trial.requests, 1)


def _of_figures(said: Statement, figures: Sequence[Mapping[str, float]], cpus: int) -> StatementVerdict:
    sides = [tuple(start[name] for start in figures) for name in said.figures]
    if len(sides) == 1:
        count = sum(map(bool, sides[0]))
        finding = of_count(count, said.said, len(sides[0]), "starts")
        if 0 < count < len(sides[0]):
            finding = Finding(word="undecided", reason=finding.reason)
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
    """Of a ratio, or why there is none; ``costs``: CPU seconds that a request of each side took."""
    if measured is None:
        return _statement(said, cpus, Finding(word="undecided", reason=lacking), takes=AGAIN, **rest)
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


def _statement(said: Statement, cpus: int, finding: Finding, **rest: Any) -> StatementVerdict:  # noqa: ANN401 - fields of the verdict
    least, most = (end if 0 < end < math.inf else None for end in finding.range or (0.0, 0.0))
    of, to, *_ = (*(cell.label for cell in said.cells), *said.figures, "")
    why = said.needs.why if said.needs and finding.word == "needs a larger machine" else said.why
    return StatementVerdict(
        name=said.name, metric=said.metric, of=of, to=to, said=said.said, expected=said.expected(cpus), theory=why,
        least=least, most=most, context=said.context, verdict=finding.word, reason=finding.reason,
        more=min(finding.more, 1e6), **rest,
    )  # fmt: skip
