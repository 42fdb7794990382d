"""Reads the records of a comparison: trials of each request, reasons against a side, and additional figures."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from harness.extras.gate.paired import BASE, COPY, HEAD, SIDES, PairedCosts
from harness.records.outcome import Outcome
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord
from harness.stats.cell_comparison import ratio
from harness.stats.cell_values import METRICS
from harness.stats.ranking_model import Ratio

TOO_SLOW = "the side does not keep up with the rate: lower service.connections in tfb.toml"
ADVICE: Mapping[str, str] = {  # flag of a validity check -> explanation with a remedy
    "rate not achieved": TOO_SLOW,
    "unfinished requests": TOO_SLOW,
    "errors": "the side closes connections or sends unexpected statuses under load: keep the log with --results DIR",
    "restarted": "the process was replaced under load: keep the log with --results DIR",
    "generator lag": "the load generator did not get CPU time in time: stop other programs on this machine",
}
# Head has failed if only trials of head have these flags.
FAILURE_FLAGS = frozenset({"errors", "restarted", "wrong answers"})
# Maximum relative difference between mean response lengths; other values in a response change the length little.
LENGTH_TOLERANCE = 0.1
# Growth of a process's memory that counts as a leak: at least this many bytes, and this share of the initial memory.
LEAK_BYTES, LEAK_SHARE = 32e6, 0.5
LEAK_FACTOR = 3.0  # minimum growth of head's memory as a multiple of the growth of base's memory
# Share of loads that fail by chance, and maximum ratio of head's losses to other sides' losses.
EXPECTED_LOSS_SHARE, LOSS_FACTOR = 0.1, 2


def trials_at_rate(records: RunRecords, request: str) -> list[Trial]:
    """Return the valid trials of a request under open loops."""
    return [trial for trial in measured_trials(records, request) if trial.load.kind == "open" and trial.rankable]


def measured_trials(records: RunRecords, request: str) -> list[Trial]:
    """Return all trials of a request, including invalid trials, but not the trials that searched for a rate."""
    return [trial for trial in records.trials if trial.test_type == request and trial.purpose == "measure"]


def open_loop_trials(records: RunRecords) -> list[Trial]:
    """Return the open-loop trials of all requests."""
    return [trial for trial in records.trials if trial.load.kind == "open"]


def failed_flags(trials: Sequence[Trial]) -> list[str]:
    """Return the flag of each failed validity check."""
    return [check.flag for trial in trials for check in trial.validity if check.outcome is Outcome.FAIL]


def head_over_base(
    trials: Sequence[Trial], request: str, metric: str, confidence: float = 0.95, side: str = BASE
) -> Ratio | None:
    """Return the ratio of head to a side, or None if the trials have no common load."""
    loads = {trial.load for trial in trials if trial.test_type == request}
    if len(loads) != 1:
        return None
    load = loads.pop()
    return ratio(trials, (HEAD, request, load), (side, request, load), metric, confidence)


def side_medians(trials: Sequence[Trial], metric: str) -> tuple[float, float, float] | None:
    """Return the median over trials for base, head and the control copy, or None if a side has no value."""
    read = METRICS[metric].read
    values = [[value for t in trials if t.implementation == side and (value := read(t))] for side in SIDES]
    base, head, copy = values
    return (median(base), median(head), median(copy)) if all(values) else None


def time_per_response(records: RunRecords, request: str, error: float) -> Ratio | None:
    """Return the ratio of times per response in a closed loop: the lower of head to base and head to control copy."""
    closed = [t for t in measured_trials(records, request) if t.load.kind == "closed" and t.rankable]
    ratios = [head_over_base(closed, request, "throughput", 1 - error, side) for side in (BASE, COPY)]
    times = [Ratio(value=1 / r.value, low=1 / r.high, high=1 / r.low) for r in ratios if r and r.low and r.high]
    return min(times, key=lambda each: each.low or 0.0) if len(times) == len(ratios) else None


# ---- reasons against a side ------------------------------------------------------------------------------------------


def describe_violation(verdict: VerificationRecord) -> str:
    """Return the first violation that verification found, as a single line."""
    failed = next(result for result in verdict.results if result.outcome is Outcome.FAIL)
    expected = f": expected {failed.expected}, got {failed.actual}" if failed.expected is not None else ""
    return " ".join(f"{verdict.implementation} sends wrong responses: {failed.message}{expected}".split())


def explain_missing(records: RunRecords, flags: Sequence[str], side: str) -> str:
    """Return why a side has no figures, with a remedy. ``flags`` are the flags of failed validity checks."""
    if flags:
        return f"{side}: {flags[0]}: {ADVICE.get(flags[0], 'keep the log with --results DIR')}"
    for process in records.processes:
        if process.implementation == side and process.reason:
            return f"{side}: {process.reason.splitlines()[0]}"
    return f"{side}: the time was too short to measure it: allow more time (--time 10m)"


def explain_too_few(records: RunRecords, request: str, table: PairedCosts | None, minutes: float) -> str:
    """Return why a request has no useful interval, with a remedy."""
    rounds = 0 if table is None else round(float(table.rounds.sum()))
    flags = Counter(failed_flags([t for t in measured_trials(records, request) if t.load.kind == "open"]))
    excluded = "".join(f"; others are excluded: {flag}" for flag, _ in flags.most_common(1))
    time = max(10, round(2 * minutes))
    return f"only {rounds} rounds have valid trials of all sides{excluded}; allow more time (--time {time}m)"


def excess_losses(trials: Sequence[Trial]) -> list[str]:
    """Return the flags of head's invalid trials if head has far more invalid trials than the other sides.

    Head coped with the load in the remaining trials, so comparing only these trials would favour head.
    """
    lost = {side: [t for t in trials if t.implementation == side and not t.rankable] for side in SIDES}
    expected = EXPECTED_LOSS_SHARE * len(trials) / len(SIDES)
    tolerated = max(expected, 2 + LOSS_FACTOR * max(len(lost[BASE]), len(lost[COPY])))
    return [] if len(lost[HEAD]) <= tolerated else [failed_flags([trial])[0] for trial in lost[HEAD]]


def describe_end(records: RunRecords) -> str:
    """Return how head ended or was replaced under load, or an empty string if it did not."""
    if any(t.implementation == HEAD and t.restarted for t in records.trials):
        return f"head: restarted: {ADVICE['restarted']}"
    measured = {t.process for t in records.trials if t.implementation == HEAD}
    for process in records.processes:
        line = next((line for line in process.reason.splitlines() if "ended (" in line or " is gone" in line), "")
        if line and process.implementation == HEAD and process.process in measured:
            return f"head ended under load: {line.rstrip(':')}"
    return ""


def describe_leak(records: RunRecords) -> str:
    """Return how much head's memory grows under load, or an empty string if it does not or base's grows too."""
    trials = open_loop_trials(records)
    head, base = _memory_growth(trials, HEAD), _memory_growth(trials, BASE)
    if not head or not base or head[1] < max(LEAK_BYTES, LEAK_SHARE * head[0], LEAK_FACTOR * base[1]):
        return ""
    return (
        f"head's memory grows under load by {head[1] / 1e6:.0f} MB from {head[0] / 1e6:.0f} MB, base's by "
        f"{max(0.0, base[1]) / 1e6:.0f} MB: find the data that head retains after each request"
    )


def _memory_growth(trials: Sequence[Trial], side: str) -> tuple[float, float] | None:
    """Return medians in bytes: memory of a process under the first load, and growth until the last load."""
    peaks: defaultdict[int, list[float]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: trial.started_at):
        if trial.implementation == side and trial.server.rss_peak:
            peaks[trial.process].append(trial.server.rss_peak)
    growths = [(own[0], own[-1] - own[0]) for own in peaks.values() if len(own) > 1]
    return (median(first for first, _ in growths), median(growth for _, growth in growths)) if growths else None


def length_notes(records: RunRecords) -> Iterator[str]:
    """Yield a note for each request for which head's responses are longer or shorter than base's."""
    for request in records.info.loads:
        trials = [t for t in trials_at_rate(records, request) if t.requests]
        lengths = [[t.bytes / t.requests for t in trials if t.implementation == side] for side in SIDES]
        if not all(lengths):
            continue  # the verdict already reports sides without trials
        base, head, copy = map(median, lengths)
        if abs(math.log(head / base)) > math.log1p(LENGTH_TOLERANCE) + abs(math.log(copy / base)):
            yield f"{request}: responses have {head:.0f} bytes on head, {base:.0f} on base: check that all data is sent"
