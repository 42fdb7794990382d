"""Selects trials from a comparison's records, explains problems with a side, and computes additional figures."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from harness.extras.gate.gate_design import MIN_CLOSED_REQUESTS
from harness.extras.gate.paired import BASE, COPY, HEAD, SIDES, PairedCosts
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import Outcome, VerificationRecord
from harness.stats.cell_comparison import ratio
from harness.stats.cell_values import METRICS
from harness.stats.ranking_model import Ratio
from harness.verify.wire import TIMEOUT_SECONDS

KEEP_LOG = "keep the log with --results DIR"
TOO_SLOW = (
    "the side does not keep up with the rate: lower service.connections in tfb.toml, or allow more time (--time 10m)"
)
ADVICE: Mapping[str, str] = {  # flag of a validity check -> explanation with a remedy
    "rate not achieved": TOO_SLOW,
    "unfinished requests": TOO_SLOW,
    "timeouts": TOO_SLOW,
    "errors": f"the side closes connections or sends unexpected statuses under load: {KEEP_LOG}",
    "restarted": f"the process was replaced under load: {KEEP_LOG}",
    "generator lag": "the load generator had to wait for a CPU: stop other programs on this machine",
}
# If these flags invalidate trials of head, but few or none of base's, head has failed.
FAILURE_FLAGS = frozenset({"errors", "restarted", "wrong answers"})
# Flags of trials in which a side is too slow for the load.
OVERLOAD_FLAGS = frozenset({"rate not achieved", "unfinished requests", "timeouts"})
TOO_LATE_CHECK = "declared-time"  # verification check that finds late responses
# Relative difference in mean response length that tfb ignores, because responses contain different values.
LENGTH_TOLERANCE = 0.1
# A process's memory growth counts as a leak above this many bytes and above this share of the initial memory.
LEAK_BYTES, LEAK_SHARE = 32e6, 0.5
LEAK_FACTOR = 3.0  # minimum ratio of head's memory growth to base's memory growth
# Share of a side's trials that may be invalid by chance, and factor by which head's number of invalid trials may exceed
# the other sides' numbers.
EXPECTED_LOSS_SHARE, LOSS_FACTOR = 0.1, 2


def trials_at_rate(records: RunRecords, request: str) -> list[Trial]:
    """Return a request's valid open-loop trials."""
    return [trial for trial in measured_trials(records, request) if trial.load.kind == "open" and trial.rankable]


def measured_trials(records: RunRecords, request: str) -> list[Trial]:
    """Return a request's valid and invalid trials. Omit trials that only served to find a suitable load."""
    trials = [trial for trial in records.trials if trial.test_type == request and trial.purpose == "measure"]
    closed = [trial for trial in trials if trial.load.kind == "closed"]
    connections = min((trial.load.connections for trial in closed), default=0)
    superseded = [trial for trial in closed if trial.load.connections > connections]
    if any(trial.requests >= MIN_CLOSED_REQUESTS for trial in closed):
        superseded += [trial for trial in closed if trial.rankable and trial.requests < MIN_CLOSED_REQUESTS]
    return [trial for trial in trials if trial not in superseded]


def open_loop_trials(records: RunRecords) -> list[Trial]:
    """Return the open-loop trials of all requests."""
    return [trial for trial in records.trials if trial.load.kind == "open"]


def failed_flags(trials: Sequence[Trial]) -> list[str]:
    """Return the flags of all failed validity checks. A flag is a check's short name, such as "timeouts"."""
    return [check.flag for trial in trials for check in trial.validity if check.outcome is Outcome.FAIL]


def head_over_base(
    trials: Sequence[Trial], request: str, metric: str, confidence: float = 0.95, side: str = BASE
) -> Ratio | None:
    """Return a metric's ratio of head to ``side``, or None unless all trials of the request have the same load."""
    loads = {trial.load for trial in trials if trial.test_type == request}
    if len(loads) != 1:
        return None
    load = loads.pop()
    return ratio(trials, (HEAD, request, load), (side, request, load), metric, confidence)


def side_medians(trials: Sequence[Trial], metric: str) -> tuple[float, float, float] | None:
    """Return a metric's median over trials for base, head and control copy, or None if a side has no value."""
    read = METRICS[metric].read
    values = [[value for t in trials if t.implementation == side and (value := read(t))] for side in SIDES]
    base, head, copy = values
    return (median(base), median(head), median(copy)) if all(values) else None


def time_per_response(records: RunRecords, request: str, error: float) -> Ratio | None:
    """Return the ratio of head's time per response to base's in a closed loop, or None if it is unknown.

    Compute a second ratio, to the control copy. Return the ratio whose interval has the smaller lower end. ``error`` is
    1 minus the confidence level.
    """
    closed = [t for t in measured_trials(records, request) if t.load.kind == "closed" and t.rankable]
    ratios = [head_over_base(closed, request, "throughput", 1 - error, side) for side in (BASE, COPY)]
    times = [Ratio(value=1 / r.value, low=1 / r.high, high=1 / r.low) for r in ratios if r and r.low and r.high]
    return min(times, key=lambda each: each.low or 0.0) if len(times) == len(ratios) else None


def connection_notes(records: RunRecords) -> Iterator[str]:
    """Yield a note for each request that was measured with fewer connections than declared."""
    for request, loads in records.info.loads.items():
        used = min((t.load.connections for t in measured_trials(records, request)), default=0)
        if 0 < used < (declared := max(load.connections for load in loads)):
            late = {t.implementation for t in records.trials if t.test_type == request and t.errors.timeout}
            sides = ", ".join(side for side in SIDES if side in late)
            yield (
                f"{request}: measured with {used} instead of {declared} connections, because responses of "
                f"{sides} took more than {TIMEOUT_SECONDS:g} s"
            )


# ---- problems with a side --------------------------------------------------------------------------------------------


def describe_violation(verdict: VerificationRecord) -> str:
    """Return the first violation that verification found, as a single line."""
    failed = next(result for result in verdict.results if result.outcome is Outcome.FAIL)
    expected = f": expected {failed.expected}, got {failed.actual}" if failed.expected is not None else ""
    return " ".join(f"{verdict.implementation} sends wrong responses: {failed.message}{expected}".split())


def too_late_sides(records: RunRecords, request: str) -> set[str]:
    """Return the sides that respond late even if tfb sends one request at a time."""
    late_sides = {
        verdict.implementation
        for verdict in records.verdicts
        if verdict.test_type == request and verdict.outcome is Outcome.FAIL and is_too_late(verdict)
    }
    closed = [t for t in measured_trials(records, request) if t.load.kind == "closed" and t.load.connections == 1]
    return late_sides | {trial.implementation for trial in closed if trial.errors.timeout}


def is_too_late(verdict: VerificationRecord) -> bool:
    """Return whether late responses are the only violations in a verification."""
    return {result.check for result in verdict.results if result.outcome is Outcome.FAIL} == {TOO_LATE_CHECK}


def describe_overload(trials: Sequence[Trial]) -> str:
    """Explain that head is too slow for a rate that base achieves. Return an empty string if this is not the case."""
    lost = {side: [t for t in trials if t.implementation == side and not t.rankable] for side in SIDES}
    of_head = [t for t in trials if t.implementation == HEAD]
    overloaded = [t for t in lost[HEAD] if OVERLOAD_FLAGS.issuperset(failed_flags([t]))]
    others = EXPECTED_LOSS_SHARE * len(of_head)
    alone = 2 * len(overloaded) > len(of_head) and max(len(lost[BASE]), len(lost[COPY])) <= others
    flag = Counter(failed_flags(overloaded)).most_common(1)[0][0] if alone else ""
    return flag and f"head: {flag}: head does not keep up with a rate that base achieves"


def explain_missing(records: RunRecords, flags: Sequence[str], side: str) -> str:
    """Return why a side has too few valid trials, with a remedy. ``flags`` are the flags of failed validity checks."""
    if flags:
        return f"{side}: {flags[0]}: {ADVICE.get(flags[0], KEEP_LOG)}"
    reduced = any(connection_notes(records))
    for process in records.processes:
        if reduced and any(flag in process.reason for flag in OVERLOAD_FLAGS):
            continue  # too many connections caused the failure, and tfb has since reduced them
        if process.implementation == side and process.reason:
            known = (advice for flag, advice in ADVICE.items() if flag in process.reason)
            return f"{side}: {process.reason.splitlines()[0]}: {next(known, KEEP_LOG)}"
    return f"{side}: the time was too short for a measurement: allow more time (--time 10m)"


def explain_too_few(records: RunRecords, request: str, table: PairedCosts | None, minutes: float) -> str:
    """Return why a request has no useful interval, with a remedy."""
    rounds = 0 if table is None else round(float(table.rounds.sum()))
    flags = Counter(failed_flags([t for t in measured_trials(records, request) if t.load.kind == "open"]))
    excluded = "".join(f"; other trials are excluded: {flag}" for flag, _ in flags.most_common(1))
    time = max(10, round(2 * minutes))
    return f"only {rounds} rounds have valid trials of all sides{excluded}; allow more time (--time {time}m)"


def excess_losses(trials: Sequence[Trial]) -> list[str]:
    """Return a flag for each of head's invalid trials if head has far more of them than other sides, otherwise []."""
    lost = {side: [t for t in trials if t.implementation == side and not t.rankable] for side in SIDES}
    expected = EXPECTED_LOSS_SHARE * len(trials) / len(SIDES)
    tolerated = max(expected, 2 + LOSS_FACTOR * max(len(lost[BASE]), len(lost[COPY])))
    return [] if len(lost[HEAD]) <= tolerated else [failed_flags([trial])[0] for trial in lost[HEAD]]


def describe_end(records: RunRecords) -> str:
    """Describe how head exited or restarted under load. Return an empty string if head continued to run."""
    if any(t.implementation == HEAD and t.restarted for t in records.trials):
        return f"head: restarted: {ADVICE['restarted']}"
    measured = {t.process for t in records.trials if t.implementation == HEAD}
    for process in records.processes:
        if process.exit_reason and process.implementation == HEAD and process.process in measured:
            return f"head exited under load: {process.exit_reason.removeprefix(f'{HEAD}: ')}"
    return ""


def describe_leak(records: RunRecords) -> str:
    """Describe head's memory growth under load if it far exceeds base's, otherwise return an empty string."""
    trials = open_loop_trials(records)
    head, base = _memory_growth(trials, HEAD), _memory_growth(trials, BASE)
    if not head or not base or head[1] < max(LEAK_BYTES, LEAK_SHARE * head[0], LEAK_FACTOR * base[1]):
        return ""
    return (
        f"head's memory grows by {head[1] / 1e6:.0f} MB under load (from {head[0] / 1e6:.0f} MB), base's by "
        f"{max(0.0, base[1]) / 1e6:.0f} MB: find the data that head retains after each request"
    )


def _memory_growth(trials: Sequence[Trial], side: str) -> tuple[float, float] | None:
    """Return medians over a side's processes, in bytes: memory under the first load, and growth until the last load.

    Return None if no process has two trials.
    """
    peaks: defaultdict[int, list[float]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: trial.started_at):
        if trial.implementation == side and trial.server.rss_peak:
            peaks[trial.process].append(trial.server.rss_peak)
    growths = [(own[0], own[-1] - own[0]) for own in peaks.values() if len(own) > 1]
    return (median(first for first, _ in growths), median(growth for _, growth in growths)) if growths else None


def length_notes(records: RunRecords) -> Iterator[str]:
    """Yield a note for each request whose responses from head and base differ in length."""
    for request in records.info.loads:
        trials = [t for t in trials_at_rate(records, request) if t.requests]
        lengths = [[t.bytes / t.requests for t in trials if t.implementation == side] for side in SIDES]
        if not all(lengths):
            continue  # the verdict already reports sides without trials
        base, head, copy = map(median, lengths)
        if abs(math.log(head / base)) > math.log1p(LENGTH_TOLERANCE) + abs(math.log(copy / base)):
            sizes = f"head's responses have {head:.0f} bytes, base's {base:.0f}"
            yield f"{request}: {sizes}: check that head sends all data"
