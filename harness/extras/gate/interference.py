"""Detects whether a side uses CPU time while a different side is under load.

tfb does not count this CPU time, so a side could hide part of the cost.
"""

from collections.abc import Sequence
from statistics import fmean

from harness.extras.gate.judge import ALL, GateResult, RequestVerdict
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import worst

MAX_HEAD_CPUS_UNDER_BASE = (
    0.05  # average number of CPUs that head may use while base is under load; normal background tasks use less
)
# Limits on base's CPU use while head is under load: in CPUs, and as a share of head's CPU use.
MAX_BASE_CPUS_UNDER_HEAD, ASKED_SHARE = 0.005, 0.05
UNEQUAL = 2.0  # maximum ratio of one side's background CPU use to the other's; equal use favours neither side


def discard_disturbed(result: GateResult, records: RunRecords) -> GateResult:
    """Replace the verdicts "same" and "faster" with "cannot tell" for requests that interference affected."""
    known = {name: _interference(records, name) for name in records.info.loads}
    known[ALL] = next(filter(None, known.values()), "")
    verdicts = tuple(_left_open(one, known.get(one.request, "")) for one in result.requests)
    verdict = worst((one.verdict for one in verdicts), result.verdict)
    return result.model_copy(update={"requests": verdicts, "verdict": verdict})


def _left_open(verdict: RequestVerdict, disturbance: str) -> RequestVerdict:
    """Replace the verdict "faster" or "same" with "cannot tell" if ``disturbance`` is not empty."""
    if not disturbance or verdict.verdict not in ("faster", "same"):
        return verdict
    reason = f"{disturbance} (otherwise the verdict would be {verdict.verdict})"
    return verdict.model_copy(update={"verdict": "cannot tell", "reason": reason, "minutes_more": None})


def _interference(records: RunRecords, name: str) -> str:
    """Describe excessive CPU use by a side that receives no load, or return an empty string."""
    loads = [trial for trial in records.trials if trial.test_type == name and trial.load.kind == "open"]
    of_head = [trial for trial in loads if trial.implementation == HEAD]
    own = fmean([trial.server.cpu_seconds / trial.duration for trial in of_head if trial.duration] or [0.0])
    under_head = _others(of_head)
    under_base = _others([trial for trial in loads if trial.implementation in (BASE, COPY)])
    if under_head > max(MAX_BASE_CPUS_UNDER_HEAD, ASKED_SHARE * own, UNEQUAL * under_base):
        return f"base uses {under_head:.3f} CPUs while head is under load: does head send requests to base?"
    if under_base > max(MAX_HEAD_CPUS_UNDER_BASE, UNEQUAL * under_head):
        return f"head uses {under_base:.2f} CPUs while base is under load, which slows base"
    return ""


def _others(trials: Sequence[Trial]) -> float:
    """Return the CPU use, in CPUs, of the busiest side without load, averaged over the trials."""
    return fmean([trial.idle_cpu_share or 0.0 for trial in trials] or [0.0])
