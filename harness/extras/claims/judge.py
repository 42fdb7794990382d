"""The verdict on a claim from records of runs, or from a program's figures: every ratio is ``harness.stats``'s."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from harness.extras.claims import show, verdict
from harness.extras.claims.claim import ERRORS, Cell, Claim, Statement
from harness.extras.claims.verdict import MANY, Finding
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.records.models import Machine, ProcessRecord, RunRecords, Trial
from harness.stats import values
from harness.stats.compare import ratio, ratio_of_values
from harness.stats.model import Ratio
from harness.stats.verdicts import unranked
from harness.units import whole_seconds

# Evidence accumulates, and is looked at after each run: at 98 % three looks err together in 5 % (Pocock 1977,
# Biometrika 64, table 1: a nominal 2.2 % each).
CONFIDENCE = 0.98
AGAIN = "another run: what was to be compared has no figure"

Pace = Callable[[Statement], float]  # seconds that one more process of each of its cells takes


def of_runs(claim: Claim, records: RunRecords, runs: Sequence[str], pace: Pace | None = None) -> ClaimVerdict:
    """The verdict on a claim about implementations, from the records of these runs as of one."""
    info = records.info
    statements = [_of_trials(each, records, pace) for each in claim.compare]
    where = {name: getattr(info, name) for name in ("profile", "runtime", "revision", "dirty")}
    at = info.completed_at or info.started_at
    return _verdict(claim, info.machine, statements, measured_at=at, runs=tuple(runs), **where)


def of_program(claim: Claim, figures: Sequence[Mapping[str, float]], machine: Machine, **where: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    """The verdict on a claim about a program, from what each of its starts printed."""
    statements = [_of_figures(each, figures, len(machine.cpus_usable)) for each in claim.compare]
    return _verdict(claim, machine, statements, figures=tuple(map(dict, figures)), **where)


def _verdict(claim: Claim, machine: Machine, statements: Sequence[StatementVerdict], **rest: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    virtual = f", {machine.virtualised}" if machine.virtualised else ""
    word = verdict.of_claim([each.verdict for each in statements if not each.context], can=claim.can)
    return ClaimVerdict(
        claim=claim.name,
        **claim.model_dump(include={"title", "talk", "page", "said", "conditions", "here"}),
        claimed_cpus=claim.cpus,
        verdict=word,
        sentence=show.sentence(word, [each for each in statements if not each.context]),
        statements=tuple(statements),
        machine=f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs{virtual}, kernel {machine.kernel}",
        cpus=len(machine.cpus_usable),
        grade=machine.grade,
        concerns=machine.concerns,
        **rest,
    )


def _of_trials(said: Statement, records: RunRecords, pace: Pace | None) -> StatementVerdict:
    cpus = len(records.info.machine.cpus_usable)
    trials = {cell: _trials(cell, records.trials) for cell in said.cells}
    for cell, found in trials.items():
        if lacking := _lacking(cell, found, records, counted=said.metric == ERRORS):
            return _statement(said, cpus, Finding(word="undecided", reason=lacking), takes=AGAIN)
    of, *others = said.cells
    flags = tuple(dict.fromkeys(gate.word for found in trials.values() for each in found for gate in each.gates))
    remarks = tuple(flag for flag in flags if flag)
    if not others:
        errors = sum(trial.errors.total for trial in trials[of])
        requests = sum(trial.requests for trial in trials[of])
        finding = verdict.of_count(errors, none=said.none, of=f"{requests:,} requests")
        return _statement(said, cpus, finding, value=float(errors), remarks=remarks)
    to = others[0]
    measured = ratio(records.trials, of.key, to.key, said.metric, CONFIDENCE, records.processes)
    if measured is None:
        finding = Finding(word="undecided", reason=f"no {said.metric} was recorded")
        return _statement(said, cpus, finding, remarks=remarks, takes=AGAIN)
    sides = [_figures(said.metric, trials[cell], records.processes) for cell in (of, to)]
    finding = _of_ratio(said, cpus, measured, min(map(len, sides)))
    if said.needs:
        costs = [median(map(_cpu_seconds, trials[cell])) for cell in (of, to)]
        finding = verdict.of_size(finding, list(zip((said.needs.of, said.needs.to), costs, strict=True)), cpus)
    takes = _takes(said, finding, pace)
    return _statement(said, cpus, finding, measured, sides, remarks=remarks, takes=takes)


def _trials(cell: Cell, trials: Sequence[Trial]) -> list[Trial]:
    return [
        each
        for each in trials
        if (each.implementation, each.test_type, each.load) == cell.key and each.purpose == "measure"
    ]


def _figures(metric: str, trials: Sequence[Trial], processes: Sequence[ProcessRecord]) -> tuple[float, ...]:
    """One a process."""
    of = values.METRICS[metric]
    if of.of_process:
        names = {trial.implementation for trial in trials}
        found = [of.of_process(each) for each in processes if each.implementation in names]
        return tuple(value for value in found if value)
    return tuple(float(f"{value:.4g}") for value in values.Cell(trials).by_process(of).values())


def _cpu_seconds(trial: Trial) -> float:
    """Of server, generator and database, a request."""
    together = trial.server.cpu_seconds + trial.generator_cpu_seconds + (trial.database_cpu_seconds or 0.0)
    return together / max(trial.requests, 1)


def _lacking(cell: Cell, trials: Sequence[Trial], records: RunRecords, *, counted: bool) -> str:
    """Why a cell cannot be judged; errors are counted whatever the gates say."""
    if reason := unranked(records.info, records.trials, records.processes, records.verdicts).get(cell.key[:2]):
        return f"{cell.implementation} {cell.test_type}: {reason}"
    if not trials:
        return f"{cell.label}: not measured"
    if counted or any(trial.rankable for trial in trials):
        return ""
    failed = dict.fromkeys(gate.word or gate.name for trial in trials for gate in trial.gates if gate.outcome == "fail")
    return f"{cell.label}: kept out by its gates: {', '.join(failed)}"


def _of_figures(said: Statement, figures: Sequence[Mapping[str, float]], cpus: int) -> StatementVerdict:
    of, to = str(said.of), str(said.to)
    if said.to is None:
        seen = [start[of] for start in figures if of in start]
        count = sum(map(bool, seen))
        finding = verdict.of_count(count, none=said.none, of=f"{len(seen)} starts")
        if not seen or 0 < count < len(seen):
            finding = Finding(word="undecided", reason=finding.reason)
        return _statement(said, cpus, finding, value=float(count), processes=len(seen))
    sides = [tuple(start[name] for start in figures if start.get(name)) for name in (of, to)]
    measured = ratio_of_values(sides[0], sides[1], CONFIDENCE) if all(sides) else None
    if measured is None:
        lacking = next((name for name, own in zip((of, to), sides, strict=True) if not own), f"{of} and {to}")
        return _statement(said, cpus, Finding(word="undecided", reason=f"no start printed {lacking}"), takes=AGAIN)
    finding = _of_ratio(said, cpus, measured, min(map(len, sides)))
    return _statement(said, cpus, finding, measured, sides, takes=_takes(said, finding, None))


def _of_ratio(said: Statement, cpus: int, measured: Ratio, processes: int) -> Finding:
    expected = said.expected(cpus)
    if expected is None:
        return verdict.of_order(said.order or "", said.least, measured, processes, substantial=said.substantial)
    return verdict.of_ratio(expected, said.tolerance, measured, processes, said.least)


def _takes(said: Statement, finding: Finding, pace: Pace | None) -> str:
    if not finding.more:
        return ""
    if finding.more > MANY:
        return f"more than {MANY} processes of each, or a quieter machine: what was measured is at the edge"
    time = f", {whole_seconds(finding.more * pace(said))}" if pace else ""
    return f"about {finding.more:.0f} more of each{time}"


def _statement(
    said: Statement,
    cpus: int,
    finding: Finding,
    measured: Ratio | None = None,
    sides: Sequence[tuple[float, ...]] = ((), ()),
    **rest: Any,  # noqa: ANN401 - fields of the verdict
) -> StatementVerdict:
    if measured:
        rest |= measured.model_dump() | {"confidence": CONFIDENCE, "processes": min(map(len, sides))}
    ends = [end if 0 < end < float("inf") else None for end in finding.range or ()] or [None, None]
    of, to = (side.label if isinstance(side, Cell) else side or "" for side in (said.of, said.to))
    why = said.needs.why if said.needs and finding.word == "needs a larger machine" else said.why
    return StatementVerdict(
        name=said.name, metric=said.metric, of=of, to=to, said=said.said, expected=said.expected(cpus), theory=why,
        least=ends[0], most=ends[1], figures_of=sides[0], figures_to=sides[1], context=said.context,
        verdict=finding.word, reason=finding.reason, more=min(finding.more, 1e6), **rest,
    )  # fmt: skip
