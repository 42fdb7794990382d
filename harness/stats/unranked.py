"""Determines why an implementation is not ranked in a test type, and the caveats of figures."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.records.loads import Load
from harness.records.outcome import Outcome
from harness.records.process_record import ProcessRecord
from harness.records.run_info import RunInfo
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import CheckResult, VerificationRecord

WHOLE_SERVER = "http"  # test type in verdicts that apply to the whole server
VerdictKey = tuple[str, str]  # implementation, test type
NO_VALID_TRIAL, NOT_REACHED = "no valid trial", "not reached: time was up"
AT_RATES = "at given rates"


def is_ranked(info: RunInfo) -> bool:
    """Return whether the run's profile ranks implementations. The profile ``smoke`` only checks that they run."""
    profile = info.settings.get("profile")
    return not (isinstance(profile, dict) and profile.get("ranked") is False)


def unranked_reasons(
    info: RunInfo, trials: Sequence[Trial], processes: Sequence[ProcessRecord], verdicts: Sequence[VerificationRecord]
) -> dict[VerdictKey, str]:
    """Return the reason for each (implementation, test type) that is not ranked."""
    reasons: dict[VerdictKey, str] = {}
    for key, result in _objections(trials):
        if result.outcome is Outcome.FAIL:
            reasons[key] = f"wrong responses under load: {result.check}"
    for verdict in verdicts:
        if verdict.outcome is Outcome.FAIL:
            failed = [f": {result.check}" for result in verdict.results if result.outcome is Outcome.FAIL]
            reasons[verdict.implementation, verdict.test_type] = "".join(("verification failed", *failed[:1]))
    measured = {trial.implementation for trial in trials}
    for one in info.implementations:
        starts = [record for record in processes if record.implementation == one.name]
        why = ""
        if one.build is not None and one.build.status != "ok":
            why = f"build {one.build.status}" + (f": {one.build.reason}" if one.build.reason else "")
        elif starts and all(record.status == "failed" for record in starts):
            why = starts[-1].reason or "every start failed"
        if why and one.name not in measured:
            for kind in one.test_types:
                reasons.setdefault((one.name, kind), why)
    return reasons


def why_no_figure(name: str, test_type: str, load: Load, processes: Sequence[ProcessRecord]) -> str:
    """Return why a planned cell has no valid trial, according to the records of all processes.

    The caller has already excluded failed builds and failed verification.
    """
    own = [record for record in processes if record.implementation == name and record.status != "interrupted"]
    if any(load in record.failed_loads.get(test_type, ()) for record in own):
        return NO_VALID_TRIAL
    if any(load in record.unreached.get(test_type, ()) for record in own):
        return NOT_REACHED
    if all(record.startup_time is None for record in own):
        return "not tried: no process started"
    if any(record.status == "failed" for record in own):
        return "not tried: the process failed before its turn"
    return NO_VALID_TRIAL


def planned_loads(info: RunInfo, name: str, test_type: str) -> tuple[Load, ...]:
    """Return the loads that the run planned for an implementation and test type."""
    return (info.cells.get(name, {}) if info.cells else info.loads).get(test_type, ())


def loads_without_figure(records: RunRecords, name: str, test_type: str) -> Iterator[tuple[Load, str]]:
    """Yield each planned load without a valid trial, with the reason."""
    own = [t for t in records.trials if (t.implementation, t.test_type, t.purpose) == (name, test_type, "measure")]
    tried, valid = {trial.load for trial in own}, {trial.load for trial in own if trial.rankable}
    for load in planned_loads(records.info, name, test_type):
        if load not in valid:
            yield load, NO_VALID_TRIAL if load in tried else why_no_figure(name, test_type, load, records.processes)


def rates_unreached(name: str, test_type: str, trials: Sequence[Trial], processes: Sequence[ProcessRecord]) -> bool:
    """Return whether the time limit prevented all loads at given rates.

    These rates depend on the throughput of the process.
    """
    own = (record for record in processes if record.implementation == name)
    late = any(load.kind == "open" for record in own for load in record.unreached.get(test_type, ()))
    return late and not any(
        (trial.implementation, trial.test_type) == (name, test_type) and trial.purpose in ("share", "common")
        for trial in trials
    )


def unreached_cells(records: RunRecords, name: str) -> tuple[str, ...]:
    """Return the cells that an implementation did not reach in time, by test type, for example ``json c64, c256``."""
    failed = {v.test_type for v in records.verdicts if v.implementation == name and v.outcome is Outcome.FAIL}
    found = []
    for test_type in next((each.test_types for each in records.info.implementations if each.name == name), ()):
        loads = [load.label for load, why in loads_without_figure(records, name, test_type) if why == NOT_REACHED]
        if rates_unreached(name, test_type, records.trials, records.processes):
            loads.append(AT_RATES)
        if loads and test_type not in failed:
            found.append(f"{test_type} {', '.join(loads)}")
    return tuple(found)


def caveats(
    info: RunInfo, trials: Sequence[Trial], verdicts: Sequence[VerificationRecord]
) -> dict[VerdictKey, tuple[str, ...]]:
    """Return the conditions of measurement that differ from this project's rules.

    These are: violations of rules that TechEmpower does not have (counted once per check), stand-in base images,
    additional privileges of a container, and trials without checks of responses under load.
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
    for one in info.implementations:
        own = [f"built on stand-ins for {', '.join(one.build.stand_ins)}"] if one.build and one.build.stand_ins else []
        own += [f"allowed {', '.join(one.allowed)}"] if one.allowed else []
        for kind in one.test_types:
            broken = len(waived[one.name, kind] | waived[one.name, WHOLE_SERVER])
            rules = "TechEmpower's rules" + (f": {broken} of ours broken" if broken else "")
            caveats_of_type = [rules, *own] if one.rules == "techempower" else own
            if info.status != "running" and not audited.get((one.name, kind), True):
                caveats_of_type = [*caveats_of_type, "not audited"]
            if caveats_of_type:
                flags[one.name, kind] = tuple(caveats_of_type)
    return flags


def _objections(trials: Sequence[Trial]) -> Iterator[tuple[VerdictKey, CheckResult]]:
    for trial in trials:
        for result in trial.evidence.objections if trial.evidence else ():
            yield (trial.implementation, trial.test_type), result
