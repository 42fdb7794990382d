"""Determines why an implementation is not ranked, which caveats apply to it, and how thoroughly it was verified."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from harness.records.loads import Load
from harness.records.run_info import RunInfo
from harness.records.run_records import ProcessRecord, RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import WHOLE_SERVER, CheckResult, Outcome, VerificationRecord

VerdictKey = tuple[str, str]  # (implementation, test type)
NO_VALID_TRIAL, NOT_REACHED = "no valid trial", "not reached: time was up"
UNCONNECTED = "not comparable with other parts: the baseline has no result in the same processes"
AT_RATES = "at given rates"


def is_ranked(info: RunInfo) -> bool:
    """Return whether the run's profile ranks implementations. The ``smoke`` profile only checks that they run."""
    profile = info.settings.get("profile")
    return not (isinstance(profile, dict) and profile.get("ranked") is False)


def unranked_reasons(
    info: RunInfo, trials: Sequence[Trial], processes: Sequence[ProcessRecord], verdicts: Sequence[VerificationRecord]
) -> dict[VerdictKey, str]:
    """Return why implementations are not ranked, by (implementation, test type). Ranked pairs are omitted."""
    reasons: dict[VerdictKey, str] = {}
    for key, result in _objections(trials):
        if result.outcome is Outcome.FAIL:
            reasons[key] = f"wrong responses under load: {result.check}"
    for verdict in verdicts:
        if verdict.outcome is Outcome.FAIL:
            failed = [f": {result.check}" for result in verdict.results if result.outcome is Outcome.FAIL]
            reasons[verdict.implementation, verdict.test_type] = "".join(("verification failed", *failed[:1]))
    measured_names = {trial.implementation for trial in trials}
    for implementation in info.implementations:
        starts = [record for record in processes if record.implementation == implementation.name]
        reason = ""
        if implementation.build is not None and implementation.build.status != "ok":
            reason = f"build {implementation.build.status}" + (
                f": {implementation.build.reason}" if implementation.build.reason else ""
            )
        elif starts and all(record.status == "failed" for record in starts):
            reason = starts[-1].reason or "every start failed"
        if reason and implementation.name not in measured_names:
            for kind in implementation.test_types:
                reasons.setdefault((implementation.name, kind), reason)
    return reasons


def verified_amounts(
    trials: Sequence[Trial], verdicts: Sequence[VerificationRecord]
) -> dict[VerdictKey, tuple[int, int]]:
    """Return (checks in the most thorough verification, responses checked under load) by (implementation, test type).

    If a verdict lists no passed checks, it was shortened for publication. The number of checks is then unknown (0).
    """
    checks, responses = Counter[VerdictKey](), Counter[VerdictKey]()
    for verdict in verdicts:
        key = (verdict.implementation, verdict.test_type)
        is_complete = any(result.outcome is Outcome.PASS for result in verdict.results)
        checks[key] = max(checks[key], len(verdict.results) if is_complete else 0)
    for trial in trials:
        responses[trial.implementation, trial.test_type] += trial.evidence.judged if trial.evidence else 0
    return {key: (checks[key], responses[key]) for key in (*checks, *responses)}


def why_no_figure(name: str, test_type: str, load: Load, processes: Sequence[ProcessRecord]) -> str:
    """Return why a planned cell has no valid trial although the implementation was built and passed verification."""
    own_records = [record for record in processes if record.implementation == name and record.status != "interrupted"]
    if any(load in record.failed_loads.get(test_type, ()) for record in own_records):
        return NO_VALID_TRIAL
    if any(load in record.unreached.get(test_type, ()) for record in own_records):
        return NOT_REACHED
    if all(record.startup_time is None for record in own_records):
        return "not tried: no process started"
    if any(record.status == "failed" for record in own_records):
        return "not tried: the process failed before this load was measured"
    return NO_VALID_TRIAL


def planned_loads(info: RunInfo, name: str, test_type: str) -> tuple[Load, ...]:
    """Return the loads that the run planned for an implementation and test type."""
    return (info.cells.get(name, {}) if info.cells else info.loads).get(test_type, ())


def loads_without_figure(records: RunRecords, name: str, test_type: str) -> Iterator[tuple[Load, str]]:
    """Yield (load, reason) for each planned load that has no valid trial."""
    own = [t for t in records.trials if (t.implementation, t.test_type, t.purpose) == (name, test_type, "measure")]
    tried, valid = {trial.load for trial in own}, {trial.load for trial in own if trial.rankable}
    for load in planned_loads(records.info, name, test_type):
        if load not in valid:
            yield load, NO_VALID_TRIAL if load in tried else why_no_figure(name, test_type, load, records.processes)


def rates_unreached(name: str, test_type: str, trials: Sequence[Trial], processes: Sequence[ProcessRecord]) -> bool:
    """Return whether the run's time was up before the first open-loop load.

    The plan does not list these loads, because their rates depend on the measured throughput.
    """
    own = (record for record in processes if record.implementation == name)
    late = any(load.kind == "open" for record in own for load in record.unreached.get(test_type, ()))
    return late and not any(
        (trial.implementation, trial.test_type) == (name, test_type) and trial.purpose in ("share", "common")
        for trial in trials
    )


def unreached_cells(records: RunRecords, name: str) -> tuple[str, ...]:
    """Return a text per test type with the loads that the run had no time to measure, such as ``json c64, c256``."""
    failed = {v.test_type for v in records.verdicts if v.implementation == name and v.outcome is Outcome.FAIL}
    unreached = []
    for test_type in next((each.test_types for each in records.info.implementations if each.name == name), ()):
        loads = [load.label for load, why in loads_without_figure(records, name, test_type) if why == NOT_REACHED]
        if rates_unreached(name, test_type, records.trials, records.processes):
            loads.append(AT_RATES)
        if loads and test_type not in failed:
            unreached.append(f"{test_type} {', '.join(loads)}")
    return tuple(unreached)


def caveats(
    info: RunInfo, trials: Sequence[Trial], verdicts: Sequence[VerificationRecord]
) -> dict[VerdictKey, tuple[str, ...]]:
    """Return the deviations from tfb's rules, by (implementation, test type).

    Examples are TechEmpower's rules (with the number of violated tfb rules), stand-in base images, container
    privileges, and trials in which responses were not checked.
    """
    results = [*_objections(trials)]
    results += [((one.implementation, one.test_type), result) for one in verdicts for result in one.results]
    waived: defaultdict[VerdictKey, set[str]] = defaultdict(set)
    for key, result in results:
        if result.waived:
            waived[key].add(result.check)
    audited = {(trial.implementation, trial.test_type): False for trial in trials}
    audited |= {(t.implementation, t.test_type): True for t in trials if t.evidence is not None}
    flags: dict[VerdictKey, tuple[str, ...]] = {}
    for implementation in info.implementations:
        own_caveats = (
            [f"built on stand-ins for {', '.join(implementation.build.stand_ins)}"]
            if implementation.build and implementation.build.stand_ins
            else []
        )
        own_caveats += [f"allowed {', '.join(implementation.allowed)}"] if implementation.allowed else []
        for kind in implementation.test_types:
            broken = len(waived[implementation.name, kind] | waived[implementation.name, WHOLE_SERVER])
            rules = "TechEmpower's rules, which are less strict" + (
                f": violates {broken} of tfb's rules" if broken else ""
            )
            caveats_of_type = [rules, *own_caveats] if implementation.rules == "techempower" else own_caveats
            if info.status != "running" and not audited.get((implementation.name, kind), True):
                caveats_of_type = [*caveats_of_type, "not audited"]
            if caveats_of_type:
                flags[implementation.name, kind] = tuple(caveats_of_type)
    return flags


def _objections(trials: Sequence[Trial]) -> Iterator[tuple[VerdictKey, CheckResult]]:
    for trial in trials:
        for result in trial.evidence.objections if trial.evidence else ():
            yield (trial.implementation, trial.test_type), result
