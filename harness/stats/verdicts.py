"""Why an implementation x test type is not ranked, whatever it measured, and what else to know of it. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.records.models import CheckResult, Outcome, ProcessRecord, RunInfo, Trial, Verdict

SERVER = "http"  # verdicts of a server as a whole, not of one test type
Key = tuple[str, str]  # implementation, test type


def is_ranked(info: RunInfo) -> bool:
    """Whether the run's profile measures well enough to rank by: ``smoke`` only checks that things run."""
    profile = info.settings.get("profile")
    return not (isinstance(profile, dict) and profile.get("ranked") is False)


def unranked(
    info: RunInfo, trials: Sequence[Trial], processes: Sequence[ProcessRecord], verdicts: Sequence[Verdict]
) -> dict[Key, str]:
    """The reasons; absent where nothing speaks against it."""
    reasons: dict[Key, str] = {}
    for key, result in _objections(trials):
        if result.outcome is Outcome.FAIL:
            reasons[key] = f"wrong answers under load: {result.check}"
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
    """What is measured under other terms than this project's own.

    Violations of its rules that TechEmpower's do not ask for (each check once), base images that are stand-ins,
    privileges beyond a container's usual ones, and answers of which none was looked at under load.
    """
    found = [*_objections(trials)]
    found += [((one.implementation, one.test_type), result) for one in verdicts for result in one.results]
    waived: defaultdict[Key, set[str]] = defaultdict(set)
    for key, result in found:
        if result.waived:
            waived[key].add(result.check)
    looked_at = {(trial.implementation, trial.test_type): False for trial in trials}
    looked_at |= {(t.implementation, t.test_type): True for t in trials if t.evidence is not None}
    flags: dict[Key, tuple[str, ...]] = {}
    for one in info.implementations:
        own = [f"built on stand-ins for {', '.join(one.build.stand_ins)}"] if one.build and one.build.stand_ins else []
        own += [f"allowed {', '.join(one.allowed)}"] if one.allowed else []
        for kind in one.test_types:
            broken = len(waived[one.name, kind] | waived[one.name, SERVER])
            rules = "TechEmpower's rules" + (f": {broken} of ours broken" if broken else "")
            told = [rules, *own] if one.rules == "techempower" else own
            if info.status != "running" and not looked_at.get((one.name, kind), True):
                told = [*told, "not audited"]
            if told:
                flags[one.name, kind] = tuple(told)
    return flags


def _objections(trials: Sequence[Trial]) -> Iterator[tuple[Key, CheckResult]]:
    for trial in trials:
        for result in trial.evidence.objections if trial.evidence else ():
            yield (trial.implementation, trial.test_type), result
