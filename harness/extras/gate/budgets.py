"""Compares head's response times and CPU times with the budgets that base's tfb.toml declares for each request."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

from scipy import special

from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.paired import HEAD
from harness.extras.gate.session_evidence import trials_at_rate
from harness.plan.requests import Request
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import worst
from harness.stats.cell_values import METRICS
from harness.units import format_seconds

BUDGETS = {"budget_p99": "response-time-p99", "budget_cpu": "cpu-per-request"}  # key in tfb.toml -> metric
LABELS = {"budget_p99": "99th-percentile response time", "budget_cpu": "CPU time per request"}
MAX_BUDGET_PROCESSES = 60  # maximum number of processes that tfb recommends for a comparison with a budget
BUDGET_ERROR = 0.02  # probability of the verdict "slower" if a request's true cost equals the budget


def apply_budgets(result: GateResult, records: RunRecords, requests: Sequence[Request]) -> GateResult:
    """Return the result with verdicts that take the budgets into account.

    If a cost's whole confidence interval exceeds the budget, the verdict becomes "slower". If only the mean exceeds the
    budget, or the cost is unknown, "same" and "faster" become "cannot tell".
    """
    declared = {request.name: request for request in requests}
    verdicts = tuple(
        _apply(one, trials_at_rate(records, one.request), declared[one.request], result.minutes)
        if one.request in declared
        else one
        for one in result.requests
    )
    return result.model_copy(
        update={"requests": verdicts, "verdict": worst((one.verdict for one in verdicts), result.verdict)}
    )


def _apply(verdict: RequestVerdict, trials: Sequence[Trial], request: Request, minutes: float) -> RequestVerdict:
    if verdict.verdict == "failed":
        return verdict
    above, open_budgets = [], []
    for key, metric in BUDGETS.items():
        budget: float | None = getattr(request, key)
        if budget is None:
            continue
        statement = f"{key} = {format_seconds(budget)}: head's {LABELS[key]}"
        logs = _log_costs([t for t in trials if t.implementation == HEAD], metric)
        if not logs:
            open_budgets.append(f"{statement} is unknown")
            continue
        mean, half = fmean(logs), _half_width(logs, len(logs))
        low, value, high = math.exp(mean - half), math.exp(mean), math.exp(min(mean + half, 700.0))
        statement += f" is {format_seconds(value)} ({format_seconds(low)} to {format_seconds(high)})"
        if low > budget:
            above.append(statement)
        elif value > budget:
            open_budgets.append(
                f"{statement}, so head may be within the budget: {_remedy(logs, value / budget, minutes)}"
            )
    if above:
        reason = "; ".join([*above, *([verdict.reason] if verdict.reason else [])])
        return verdict.model_copy(update={"verdict": "slower", "reason": reason, "minutes_more": None})
    if open_budgets and verdict.verdict in ("same", "faster"):
        update = {"verdict": "cannot tell", "reason": "; ".join(open_budgets), "minutes_more": None}
        return verdict.model_copy(update=update)
    return verdict


def _log_costs(trials: Sequence[Trial], metric: str) -> list[float]:
    """Return a metric's mean logarithm for each process."""
    return [fmean(map(math.log, values)) for values in _by_process(trials, metric).values()]


def _half_width(logs: Sequence[float], count: int) -> float:
    """Return the half-width that the confidence interval of the mean logarithm would have with ``count`` processes.

    Return infinity if ``count`` or the number of measured processes is below two.
    """
    if min(len(logs), count) < 2:
        return math.inf
    return float(special.stdtrit(count - 1, 1 - BUDGET_ERROR)) * stdev(logs) / math.sqrt(count)


def _remedy(logs: Sequence[float], excess: float, minutes: float) -> str:
    """Return how the user can find out whether head exceeds a budget.

    ``excess`` is the measured cost divided by the budget.
    """
    enough = (n for n in range(len(logs) + 1, MAX_BUDGET_PROCESSES + 1) if _half_width(logs, n) < math.log(excess))
    if len(logs) > 1 and (count := next(enough, 0)):
        return f"{count} processes would probably suffice (--time {math.ceil(count * minutes / len(logs))}m)"
    return "the difference is too small for this machine's noise" if len(logs) > 1 else "allow more time (--time 10m)"


def _by_process(trials: Sequence[Trial], metric: str) -> Mapping[int, Sequence[float]]:
    """Return a metric's values for each process number."""
    read = METRICS[metric].read
    values: defaultdict[int, list[float]] = defaultdict(list)
    for trial in trials:
        if value := read(trial):
            values[trial.process].append(value)
    return values


def thresholds(requests: Sequence[Request]) -> Iterator[tuple[str, float]]:
    """Yield (name, threshold) for each request that declares a threshold."""
    return ((request.name, request.threshold) for request in requests if request.threshold is not None)
