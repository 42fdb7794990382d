"""The verdict on a claim from a run's records, or from a program's figures: every ratio is ``harness.stats``'s."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.extras.claims import verdict
from harness.extras.claims.claim import ERRORS, Cell, Claim, Statement
from harness.extras.claims.verdict import Finding
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.records.models import Machine, RunRecords, Trial
from harness.stats.compare import ratio, ratio_of_values
from harness.stats.model import Ratio
from harness.stats.verdicts import unranked

CONFIDENCE = 0.95
AGAIN = "run it again: what was to be compared has no figure"


def of_run(claim: Claim, records: RunRecords) -> ClaimVerdict:
    """The verdict on a claim about implementations."""
    info = records.info
    statements = [_of_trials(each, records) for each in claim.compare]
    return _verdict(
        claim,
        info.machine,
        statements,
        measured_at=info.completed_at or info.started_at,
        **{name: getattr(info, name) for name in ("profile", "runtime", "run_id", "status", "revision", "dirty")},
    )


def of_program(claim: Claim, figures: Sequence[Mapping[str, float]], machine: Machine, **where: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    """The verdict on a claim about a program, from what each of its starts printed."""
    statements = [_of_figures(each, figures, len(machine.cpus_usable)) for each in claim.compare]
    return _verdict(claim, machine, statements, run_id="", figures=tuple(map(dict, figures)), **where)


def _verdict(claim: Claim, machine: Machine, statements: Sequence[StatementVerdict], **rest: Any) -> ClaimVerdict:  # noqa: ANN401 - fields of the verdict
    virtual = f", {machine.virtualised}" if machine.virtualised else ""
    return ClaimVerdict(
        claim=claim.name,
        **claim.model_dump(include={"title", "talk", "page", "said", "conditions", "here"}),
        claimed_cpus=claim.cpus,
        verdict=verdict.of_claim([each.verdict for each in statements if not each.ours]),
        statements=tuple(statements),
        machine=f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs{virtual}, kernel {machine.kernel}",
        cpus=len(machine.cpus_usable),
        grade=machine.grade,
        concerns=machine.concerns,
        **rest,
    )


def _of_trials(said: Statement, records: RunRecords) -> StatementVerdict:
    cpus = len(records.info.machine.cpus_usable)
    trials = {cell: _trials(cell, records) for cell in said.cells}
    for cell, found in trials.items():
        if lacking := _lacking(cell, found, records, counted=said.metric == ERRORS):
            return _statement(said, cpus, Finding(word="undecided", reason=lacking, takes=AGAIN))
    of, *others = said.cells
    flags = tuple(dict.fromkeys(gate.word for found in trials.values() for each in found for gate in each.gates))
    remarks = tuple(flag for flag in flags if flag)
    if not others:
        errors = sum(trial.errors.total for trial in trials[of])
        finding = verdict.of_count(errors, none=said.none, requests=sum(trial.requests for trial in trials[of]))
        return _statement(said, cpus, finding, value=float(errors), remarks=remarks)
    processes = min(len({trial.process for trial in found if trial.rankable}) for found in trials.values())
    measured = ratio(records.trials, of.key, others[0].key, said.metric, CONFIDENCE, records.processes)
    if measured is None:
        finding = Finding(word="undecided", reason=f"no {said.metric} was recorded", takes=AGAIN)
        return _statement(said, cpus, finding, remarks=remarks)
    return _of_ratio(said, cpus, measured, processes, remarks=remarks)


def _trials(cell: Cell, records: RunRecords) -> list[Trial]:
    return [each for each in records.trials if (each.implementation, each.test_type, each.load) == cell.key]


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
        values = [start[of] for start in figures if of in start]
        finding = verdict.of_occurrences(values, none=said.none)
        return _statement(said, cpus, finding, value=float(sum(map(bool, values))), processes=len(values))
    sides = {name: [start[name] for start in figures if start.get(name)] for name in (of, to)}
    measured = ratio_of_values(sides[of], sides[to], CONFIDENCE) if all(sides.values()) else None
    if measured is None:
        lacking = next((name for name, values in sides.items() if not values), f"{of} and {to}")
        return _statement(said, cpus, Finding(word="undecided", reason=f"no start printed {lacking}", takes=AGAIN))
    return _of_ratio(said, cpus, measured, min(map(len, sides.values())))


def _of_ratio(
    said: Statement, cpus: int, measured: Ratio, processes: int, remarks: tuple[str, ...] = ()
) -> StatementVerdict:
    expected = said.expected(cpus)
    if expected is None:
        finding = verdict.of_order(said.order or "", measured, processes)
    else:
        finding = verdict.of_ratio(expected, said.tolerance, measured, processes)
    ends = {"value": measured.value, "low": measured.low, "high": measured.high}
    return _statement(said, cpus, finding, **ends, processes=processes, confidence=CONFIDENCE, remarks=remarks)


def _statement(said: Statement, cpus: int, finding: Finding, **measured: Any) -> StatementVerdict:  # noqa: ANN401 - fields of the verdict
    expected = said.expected(cpus)
    return StatementVerdict(
        name=said.name,
        metric=said.metric,
        of=_side(said.of),
        to=_side(said.to),
        said=said.said,
        expected=expected,
        theory=said.why,
        tolerance=None if expected is None else said.tolerance,
        ours=said.ours,
        verdict=finding.word,
        reason=finding.reason,
        takes=finding.takes,
        **measured,
    )


def _side(side: Cell | str | None) -> str:
    return side.label if isinstance(side, Cell) else side or ""
