"""Why an implementation is not ranked in a test type, and the caveats of its figures."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.records.models import CheckResult, Outcome, ProcessRecord, RunInfo, Trial, Verdict

SERVER = "http"  # key of the verdict on the whole server rather than on one test type
Key = tuple[str, str]  # implementation, test type


def is_ranked(info: RunInfo) -> bool:
    """Return whether the run's profile ranks implementations; ``smoke`` only checks that they run."""
    profile = info.settings.get("profile")
    return not (isinstance(profile, dict) and profile.get("ranked") is False)


def unranked(
    info: RunInfo, trials: Sequence[Trial], processes: Sequence[ProcessRecord], verdicts: Sequence[Verdict]
) -> dict[Key, str]:
    """Return the reason for each (implementation, test type) that is not ranked."""
    reasons: dict[Key, str] = {}
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


def caveats(info: RunInfo, trials: Sequence[Trial], verdicts: Sequence[Verdict]) -> dict[Key, tuple[str, ...]]:
    """Return what was measured under conditions that differ from this project's rules.

    These are violations of rules that TechEmpower does not have (each check once), stand-in base images, extra
    privileges of a container, and trials without a check of responses under load.
    """
    results = [*_objections(trials)]
    results += [((one.implementation, one.test_type), result) for one in verdicts for result in one.results]
    waived: defaultdict[Key, set[str]] = defaultdict(set)
    for key, result in results:
        if result.waived:
            waived[key].add(result.check)
    audited = {(trial.implementation, trial.test_type): False for trial in trials}
    audited |= {(t.implementation, t.test_type): True for t in trials if t.evidence is not None}
    flags: dict[Key, tuple[str, ...]] = {}
    for one in info.implementations:
        own = [f"built on stand-ins for {', '.join(one.build.stand_ins)}"] if one.build and one.build.stand_ins else []
        own += [f"allowed {', '.join(one.allowed)}"] if one.allowed else []
        for kind in one.test_types:
            broken = len(waived[one.name, kind] | waived[one.name, SERVER])
            rules = "TechEmpower's rules" + (f": {broken} of ours broken" if broken else "")
            caveats_of_type = [rules, *own] if one.rules == "techempower" else own
            if info.status != "running" and not audited.get((one.name, kind), True):
                caveats_of_type = [*caveats_of_type, "not audited"]
            if caveats_of_type:
                flags[one.name, kind] = tuple(caveats_of_type)
    return flags


def _objections(trials: Sequence[Trial]) -> Iterator[tuple[Key, CheckResult]]:
    for trial in trials:
        for result in trial.evidence.objections if trial.evidence else ():
            yield (trial.implementation, trial.test_type), result
