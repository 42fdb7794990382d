"""Why an implementation x test type is not ranked, whatever it measured, and what else to know of it. Pure."""

from collections import defaultdict
from collections.abc import Sequence

from harness.records.models import CheckResult, Outcome, ProcessRecord, RunInfo, Trial, Verdict

UNAUDITED = "not audited"
SERVER = "http"  # verdicts of a server as a whole, not of one test type
Key = tuple[str, str]  # implementation, test type


def unranked(
    info: RunInfo, trials: Sequence[Trial], processes: Sequence[ProcessRecord], verdicts: Sequence[Verdict]
) -> dict[Key, str]:
    """The reasons; absent where nothing speaks against it."""
    reasons: dict[Key, str] = {}
    for key, results in _objections(trials).items():
        failed = [result.check for result in results if result.outcome is Outcome.FAIL]
        if failed:
            reasons[key] = f"wrong answers under load: {failed[-1]}"
    for verdict in _last(verdicts):
        if verdict.outcome is Outcome.FAIL:
            failed = [result.check for result in verdict.results if result.outcome is Outcome.FAIL]
            reasons[verdict.implementation, verdict.test_type] = _with("verification failed", "".join(failed[:1]))
    measured = {trial.implementation for trial in trials}
    for one in info.implementations:
        starts = [record for record in processes if record.implementation == one.name]
        why = ""
        if one.build is not None and one.build.status != "ok":
            why = _with(f"build {one.build.status}", one.build.reason)
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
    waived: defaultdict[Key, set[str]] = defaultdict(set)
    for verdict in _last(verdicts):
        found = {result.check for result in verdict.results if result.waived}
        waived[verdict.implementation, verdict.test_type] |= found
    for key, results in _objections(trials).items():
        waived[key] |= {result.check for result in results if result.waived}
    measured = {(trial.implementation, trial.test_type) for trial in trials}
    measured -= {(trial.implementation, trial.test_type) for trial in trials if trial.evidence is not None}
    flags: dict[Key, tuple[str, ...]] = {}
    for one in info.implementations:
        own = [f"built on stand-ins for {', '.join(one.build.stand_ins)}"] if one.build and one.build.stand_ins else []
        own += [f"allowed {', '.join(one.allowed)}"] if one.allowed else []
        for kind in one.test_types:
            broken = len(waived[one.name, kind] | waived[one.name, SERVER])
            rules = "TechEmpower's rules" + (f": {broken} of ours broken" if broken else "")
            trust = [UNAUDITED] if (one.name, kind) in measured and info.status != "running" else []
            told = (*([rules] if one.rules == "techempower" else []), *own, *trust)
            if told:
                flags[one.name, kind] = told
    return flags


def _objections(trials: Sequence[Trial]) -> dict[Key, list[CheckResult]]:
    found: defaultdict[Key, list[CheckResult]] = defaultdict(list)
    for trial in trials:
        if trial.evidence is not None and trial.evidence.objections:
            found[trial.implementation, trial.test_type].extend(trial.evidence.objections)
    return found


def _last(verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
    """The one that counts of each implementation x test type and process."""
    return list({(one.implementation, one.test_type, one.process): one for one in verdicts}.values())


def _with(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason
