"""The verdict on a claim from a run's records, or from a program's figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.claims import verdict
from harness.claims.claim import Cell, Claim, Comparison
from harness.claims.evidence import Evidence, Measured
from harness.claims.verdict import Finding
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.records.models import Machine, RunRecords
from harness.stats import ratios
from harness.stats.metric import MetricRows
from harness.stats.moderation import UNLEARNED

Figures = Sequence[Mapping[str, float]]  # of a program, one a start


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where, when and by which rules the figures of a verdict came about."""

    machine: Machine
    measured_at: float  # epoch seconds
    profile: str = ""
    runtime: str = ""
    run_id: str = ""
    status: str = "complete"
    revision: str | None = None
    dirty: bool | None = None


PROGRAM_CONFIDENCE = 0.95
AGAIN = "run it again: what was to be compared has no figure"


def of_run(claim: Claim, records: RunRecords) -> ClaimVerdict:
    """The verdict on a claim about implementations."""
    info, evidence = records.info, Evidence(records)
    cpus = len(info.machine.cpus_usable)
    statements = tuple(_statement(each, evidence, cpus) for each in claim.compare)
    place = Place(
        machine=info.machine,
        measured_at=info.completed_at or info.started_at,
        profile=info.profile,
        runtime=info.runtime,
        run_id=info.run_id,
        status=info.status,
        revision=info.revision,
        dirty=info.dirty,
    )
    return _claim(claim, statements, place)


def of_program(claim: Claim, figures: Figures, place: Place) -> ClaimVerdict:
    """The verdict on a claim about a program."""
    cpus = len(place.machine.cpus_usable)
    statements = tuple(_of_figures(each, figures, cpus) for each in claim.compare)
    return _claim(claim, statements, place).model_copy(update={"figures": tuple(map(dict, figures))})


def decided(claim: Claim, records: RunRecords) -> bool:
    """Whether more measuring cannot be of use by the rules."""
    return all(statement.verdict != "undecided" for statement in of_run(claim, records).statements)


def _claim(claim: Claim, statements: tuple[StatementVerdict, ...], place: Place) -> ClaimVerdict:
    machine = place.machine
    return ClaimVerdict(
        claim=claim.name,
        title=claim.title,
        talk=claim.talk,
        page=claim.page,
        said=claim.said,
        conditions=claim.conditions,
        here=claim.here,
        claimed_cpus=claim.cpus,
        verdict=verdict.of_claim(tuple(statement.verdict for statement in statements)),
        statements=statements,
        run_id=place.run_id,
        status=place.status,
        measured_at=place.measured_at,
        machine=shown(machine),
        cpus=len(machine.cpus_usable),
        grade=machine.grade,
        concerns=machine.concerns,
        profile=place.profile,
        runtime=place.runtime,
        revision=place.revision,
        dirty=place.dirty,
    )


def shown(machine: Machine) -> str:
    """The machine in a line."""
    virtual = f", {machine.virtualised}" if machine.virtualised else ""
    return f"{machine.cpu_model}, {len(machine.cpus_usable)} CPUs{virtual}, kernel {machine.kernel}"


def _statement(comparison: Comparison, evidence: Evidence, cpus: int) -> StatementVerdict:
    if comparison.to is None:
        assert isinstance(comparison.of, Cell)  # noqa: S101 - a run's claim
        counted = evidence.errors(comparison.of)
        if counted is None:
            lacking = Finding(word="undecided", reason=f"{comparison.of.label}: not measured", takes=AGAIN)
            return _shown(comparison, cpus, Measured(), lacking)
        errors, requests = counted
        finding = verdict.of_count(errors, none=comparison.none, requests=requests)
        return _shown(comparison, cpus, Measured(), finding).model_copy(update={"value": float(errors)})
    measured = evidence.ratio(comparison)
    return _shown(comparison, cpus, measured, _found(comparison, measured, cpus))


def _of_figures(comparison: Comparison, figures: Figures, cpus: int) -> StatementVerdict:
    of, to = str(comparison.of), comparison.to
    if to is None:
        values = tuple(start[of] for start in figures if of in start)
        finding = verdict.of_occurrences(values, none=comparison.none)
        some = float(sum(value != 0 for value in values))
        return _shown(comparison, cpus, Measured(processes=len(values)), finding).model_copy(update={"value": some})
    sides = {name: {i: start[name] for i, start in enumerate(figures) if start.get(name)} for name in (of, str(to))}
    if not all(sides.values()):
        lacking = next(name for name, values in sides.items() if not values)
        return _shown(comparison, cpus, Measured(), _missing(f"no start printed {lacking}"))
    rows = MetricRows(values=sides, windows={name: {} for name in sides})
    found = ratios.ratio(rows, of, str(to), UNLEARNED, PROGRAM_CONFIDENCE)
    measured = Measured(ratio=found, processes=min(map(len, sides.values())), confidence=PROGRAM_CONFIDENCE)
    return _shown(comparison, cpus, measured, _found(comparison, measured, cpus))


def _missing(reason: str) -> Finding:
    return Finding(word="undecided", reason=reason, takes=AGAIN)


def _found(comparison: Comparison, measured: Measured, cpus: int) -> Finding:
    if measured.ratio is None:
        return _missing(measured.lacking)
    if comparison.order:
        return verdict.of_order(comparison.order, measured.ratio, measured.processes)
    expected = comparison.predicted(cpus)
    assert expected is not None  # noqa: S101 - the file was validated
    return verdict.of_ratio(expected, comparison.tolerance, measured.ratio, measured.processes)


def _shown(comparison: Comparison, cpus: int, measured: Measured, finding: Finding) -> StatementVerdict:
    ratio = measured.ratio
    expected = comparison.predicted(cpus)
    return StatementVerdict(
        name=comparison.name,
        metric=comparison.metric,
        of=_side(comparison.of),
        to=_side(comparison.to),
        said=said(comparison),
        expected=expected,
        theory=comparison.theory.why if comparison.theory else "",
        tolerance=comparison.tolerance if expected is not None else None,
        value=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        confidence=measured.confidence,
        processes=measured.processes,
        verdict=finding.word,
        reason=finding.reason,
        takes=finding.takes,
        remarks=measured.remarks,
    )


def said(comparison: Comparison) -> str:
    """What the claim says, in a word."""
    if comparison.ratio is not None:
        return f"{comparison.ratio:.3g}×"
    return comparison.order or ("none" if comparison.none else "some")


def _side(side: Cell | str | None) -> str:
    return side.label if isinstance(side, Cell) else side or ""
