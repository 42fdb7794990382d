"""Finds that a side works while another side is loaded: its CPU then counts for nobody, or slows the other side.

Head could pass its requests on to base, whose CPU is not metered then, or keep the CPUs busy while base is loaded.
"""

from collections.abc import Sequence
from statistics import fmean

from harness.extras.gate.judge import ALL, ORDER, GateResult, RequestVerdict
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.records.models import RunRecords, Trial

IDLE_CPUS = 0.05  # that head may use on average while base is loaded: a task in the background takes less
ASKED_CPUS, ASKED_SHARE = 0.005, 0.05  # that base may use while head is loaded: in CPUs, and in shares of head's CPU
UNEQUAL = 2.0  # times as much as the other sides: what all of them do in the background favours none


def undisturbed(result: GateResult, records: RunRecords) -> GateResult:
    """Return the result without good verdicts on requests under which one side worked during the load of another."""
    known = {name: _interference(records, name) for name in records.info.loads}
    known[ALL] = next(filter(None, known.values()), "")
    found = tuple(_left_open(one, known.get(one.request, "")) for one in result.requests)
    verdict = min((one.verdict for one in found if one.verdict in ORDER), key=ORDER.index, default=result.verdict)
    return result.model_copy(update={"requests": found, "verdict": verdict})


def _left_open(one: RequestVerdict, why: str) -> RequestVerdict:
    """Return the verdict on a request: cannot tell in place of a good one if there is a reason."""
    if not why or one.verdict not in ("faster", "the same"):
        return one
    reason = f"{why} (it would be {one.verdict})"
    return one.model_copy(update={"verdict": "cannot tell", "reason": reason, "minutes_more": None})


def _interference(records: RunRecords, name: str) -> str:
    """Return which side worked while another was loaded; empty if all did about as much."""
    loads = [trial for trial in records.trials if trial.test_type == name and trial.load.kind == "open"]
    of_head = [trial for trial in loads if trial.implementation == HEAD]
    own = fmean([trial.server.cpu_seconds / trial.duration for trial in of_head if trial.duration] or [0.0])
    under_head = _others(of_head)
    under_base = _others([trial for trial in loads if trial.implementation in (BASE, COPY)])
    if under_head > max(ASKED_CPUS, ASKED_SHARE * own, UNEQUAL * under_base):
        return f"base uses {under_head:.3f} CPUs while head is loaded: does head ask base?"
    if under_base > max(IDLE_CPUS, UNEQUAL * under_head):
        return f"head uses {under_base:.2f} CPUs while base is loaded, which slows base"
    return ""


def _others(trials: Sequence[Trial]) -> float:
    """Return the CPUs that the busiest of the other sides used, on average."""
    return fmean([trial.idle_cpu_share or 0.0 for trial in trials] or [0.0])
