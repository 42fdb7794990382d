"""Detects sides that work during the load of a different side, when tfb does not count their CPU time.

Head could forward requests to base. Head could also use CPU time during the load of base.
"""

from collections.abc import Sequence
from statistics import fmean

from harness.extras.gate.judge import ALL, GateResult, RequestVerdict
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import worst

MAX_HEAD_CPUS_UNDER_BASE = (
    0.05  # CPUs that head may use on average while base is loaded; ordinary background tasks use less
)
# Limits for base while head is loaded: number of CPUs, and share of head's CPU time.
MAX_BASE_CPUS_UNDER_HEAD, ASKED_SHARE = 0.005, 0.05
UNEQUAL = 2.0  # maximum ratio between the sides; equal background work does not favour a side


def discard_disturbed(result: GateResult, records: RunRecords) -> GateResult:
    """Return the result in which requests with interference have no good verdict."""
    known = {name: _interference(records, name) for name in records.info.loads}
    known[ALL] = next(filter(None, known.values()), "")
    found = tuple(_left_open(one, known.get(one.request, "")) for one in result.requests)
    verdict = worst((one.verdict for one in found), result.verdict)
    return result.model_copy(update={"requests": found, "verdict": verdict})


def _left_open(one: RequestVerdict, why: str) -> RequestVerdict:
    """Replace a good verdict by "cannot tell" if there is a reason."""
    if not why or one.verdict not in ("faster", "same"):
        return one
    reason = f"{why} (it would be {one.verdict})"
    return one.model_copy(update={"verdict": "cannot tell", "reason": reason, "minutes_more": None})


def _interference(records: RunRecords, name: str) -> str:
    """Return which side worked during the load of a different side, or an empty string."""
    loads = [trial for trial in records.trials if trial.test_type == name and trial.load.kind == "open"]
    of_head = [trial for trial in loads if trial.implementation == HEAD]
    own = fmean([trial.server.cpu_seconds / trial.duration for trial in of_head if trial.duration] or [0.0])
    under_head = _others(of_head)
    under_base = _others([trial for trial in loads if trial.implementation in (BASE, COPY)])
    if under_head > max(MAX_BASE_CPUS_UNDER_HEAD, ASKED_SHARE * own, UNEQUAL * under_base):
        return f"base uses {under_head:.3f} CPUs while head is loaded: does head send requests to base?"
    if under_base > max(MAX_HEAD_CPUS_UNDER_BASE, UNEQUAL * under_head):
        return f"head uses {under_base:.2f} CPUs while base is loaded, which slows base"
    return ""


def _others(trials: Sequence[Trial]) -> float:
    """Return the mean number of CPUs that the busiest idle side used."""
    return fmean([trial.idle_cpu_share or 0.0 for trial in trials] or [0.0])
