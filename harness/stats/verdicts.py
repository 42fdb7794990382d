"""Why an implementation x test type is not ranked, whatever it measured."""

from collections.abc import Container, Sequence, Set

from harness.records.models import AUDITS, ImplementationInfo, Outcome, ReplicateRecord, RunInfo, Sample, Verdict

UNAUDITED = "not audited"
AUDIT_CHECK = "one-answer-a-request"  # its result is in the verdict of whatever was audited


def unranked(
    run: RunInfo, samples: Sequence[Sample], replicates: Sequence[ReplicateRecord], verdicts: Sequence[Verdict]
) -> dict[tuple[str, str], str]:
    """Why an implementation x test type is not ranked, whatever it measured; absent where nothing speaks against it."""
    reasons: dict[tuple[str, str], str] = {}
    measured: set[str] = set()
    for sample in samples:
        measured.add(sample.implementation)
        for result in sample.probe_failures:
            if result.outcome is Outcome.FAIL:
                reasons[sample.implementation, sample.test_type] = f"wrong answers under load: {result.check}"
    for verdict in verdicts:
        if verdict.outcome is Outcome.FAIL:
            failed = next((result.check for result in verdict.results if result.outcome is Outcome.FAIL), "")
            reasons[verdict.implementation, verdict.test_type] = _with("verification failed", failed)
    for info, reason in _never_measured(run, measured, replicates):
        for kind in info.test_types:
            reasons.setdefault((info.name, kind), reason)
    return reasons


def caveats(
    run: RunInfo, samples: Sequence[Sample], verdicts: Sequence[Verdict]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """What to know of an implementation x test type that is measured under other terms than this project's own.

    Violations of this project's rules that TechEmpower's do not ask for (each check once), base images that are
    stand-ins, privileges beyond a container's usual ones, and that no load of it was audited.
    """
    unaudited = _unaudited(run, samples, verdicts)
    waived: dict[tuple[str, str], set[str]] = {}
    for verdict in verdicts:
        found = {result.check for result in verdict.results if result.waived}
        waived.setdefault((verdict.implementation, verdict.test_type), set()).update(found)
    for sample in samples:
        found = {result.check for result in sample.probe_failures if result.waived}
        if found:
            waived.setdefault((sample.implementation, sample.test_type), set()).update(found)
    words: dict[tuple[str, str], tuple[str, ...]] = {}
    for info in run.implementations:
        own = []
        if info.build is not None and info.build.stand_ins:
            own.append(f"built on stand-ins for {', '.join(info.build.stand_ins)}")
        if info.allowed:
            own.append(f"allowed {', '.join(info.allowed)}")
        for kind in info.test_types:
            count = len(waived.get((info.name, kind), set()) | waived.get((info.name, SERVER), set()))
            rules = []
            if info.rules == "techempower":
                rules = ["TechEmpower's rules" + (f": {count} of ours broken" if count else "")]
            trust = [UNAUDITED] if (info.name, kind) in unaudited else []
            if rules or own or trust:
                words[info.name, kind] = (*rules, *own, *trust)
    return words


def _unaudited(run: RunInfo, samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> Set[tuple[str, str]]:
    """What was measured without an audit; nothing of files from before that was kept, or while a run goes on.

    Where arrivals come at given rates there are no audits: every answer of every load is looked at.
    """
    if AUDITS not in run.tools or run.status == "running":
        return set()
    measured = {(s.implementation, s.test_type) for s in samples if s.level.factor is None and s.duet_partner is None}
    audited = {(s.implementation, s.test_type) for s in samples if s.audited is not None}
    audited |= {
        (v.implementation, v.test_type) for v in verdicts if any(result.check == AUDIT_CHECK for result in v.results)
    }
    return measured - audited


SERVER = "http"  # verdicts of a server as a whole, not of one test type


def _never_measured(
    run: RunInfo, measured: Container[str], replicates: Sequence[ReplicateRecord]
) -> list[tuple[ImplementationInfo, str]]:
    """Implementations without any sample, with the reason: their build, or every start, failed."""
    found = []
    for info in run.implementations:
        if info.name in measured:
            continue
        starts = [record for record in replicates if record.implementation == info.name]
        if info.build is not None and info.build.status != "ok":
            found.append((info, _with(f"build {info.build.status}", info.build.reason)))
        elif starts and all(record.status == "failed" for record in starts):
            found.append((info, starts[-1].reason or "every start failed"))
    return found


def _with(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason
