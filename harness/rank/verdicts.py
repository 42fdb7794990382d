"""Why an implementation x test type is not ranked, whatever it measured."""

from collections.abc import Container, Sequence

from harness.results.records import ImplementationInfo, Outcome, ReplicateRecord, RunInfo, Sample, Verdict


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
