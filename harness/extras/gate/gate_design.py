"""Defines the regression gate's design: all sides of a comparison receive the same load at the same time."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.experiment.active_group import ActiveGroup
from harness.experiment.designs import at_rate, run_processes
from harness.experiment.steps import Cell, Design, Rest
from harness.plan.plan import Plan
from harness.records.loads import ClosedLoop
from harness.records.trial_record import Trial
from harness.records.verification_record import Outcome
from harness.verify.wire import TIMEOUT_SECONDS

GATE_RATE_SHARE = 0.5  # the regression gate's rate, as a share of the slowest version's throughput
# If a service is slow, the regression gate lengthens the trials to reach MIN_GATE_REQUESTS, up to SLOW_TRIAL_SECONDS.
# A trial that would still have fewer than MIN_CLOSED_REQUESTS requests may last up to MAX_GATE_SECONDS.
MIN_GATE_REQUESTS, SLOW_TRIAL_SECONDS, MAX_GATE_SECONDS = 50, 6.0, 10.0
MIN_CLOSED_REQUESTS = 5  # a closed loop with fewer responses is measured again, for MAX_GATE_SECONDS
# If responses time out, divide the number of connections by CONNECTION_DIVISOR, and repeat the closed loop. If the
# measured throughput still implies response times above RESPONSE_TIME_SHARE of the timeout, use even fewer connections.
# The share is below 1, because the sides that are measured next may be slower.
CONNECTION_DIVISOR, RESPONSE_TIME_SHARE = 4, 0.25
MAX_ABANDONED_SECONDS = 30.0  # maximum wait for a server to finish requests that have timed out


def regression_gate(plan: Plan, seed: int) -> Design:
    """Measure a closed loop for each test type, then rounds in which all versions receive requests at the same rate."""
    loads = _CommonLoads()
    return run_processes(plan, seed, lambda group: _common_rates(group, loads), compare_group=True)


@dataclass
class _CommonLoads:
    """The load that all compared versions receive for each test type."""

    rates: dict[str, float] = field(default_factory=dict)  # requests/s
    connections: dict[str, int] = field(default_factory=dict)  # set only if the declared number overloads a version
    closed_seconds: dict[str, float] = field(default_factory=dict)  # set only if the usual duration is too short

    def apply(self, cell: Cell) -> Cell:
        """Return the cell, with fewer connections if the declared number overloads a version."""
        if (connections := self.connections.get(cell.test_type)) is None or not isinstance(cell.load, ClosedLoop):
            return cell
        return replace(cell, load=cell.load.model_copy(update={"connections": connections}))


def _common_rates(group: ActiveGroup, loads: _CommonLoads) -> Design:
    """Measure a closed loop, then rounds at a common rate.

    A test type's first closed loops on all versions set the rate. This rate may be too high, because a server handles
    simultaneous requests more cheaply than separate requests. If two or more versions miss the rate in a round, lower
    the rate.
    """
    rng = random.Random(f"{group.seed} gate {group.number}")
    number, sides, rates = 0, tuple(group.members.values()), loads.rates
    while cells := group.cells():
        closed = number == 0
        kinds = [kind for kind in sorted(group.common_test_types(sides)) if closed or kind in rates]
        if not kinds:
            return
        for kind in rng.sample(kinds, len(kinds)):
            table = [cell for cell in cells if cell.test_type == kind]
            table = rng.sample(table, len(table))
            if closed:
                # For a slow service, measure closed loops only in the first process, to leave more time for rounds. If
                # the declared connections overload a side, however, rounds send too few requests to show a difference.
                # In this case, measure closed loops in every process.
                if group.number == 0 or kind not in loads.closed_seconds or kind in loads.connections:
                    yield from _closed_loops(group, table, loads)
                continue
            few = max(SLOW_TRIAL_SECONDS, MIN_CLOSED_REQUESTS / rates[kind])
            slow_seconds = min(MIN_GATE_REQUESTS / rates[kind], few, MAX_GATE_SECONDS)
            seconds = max(group.plan.profile.rates.seconds, slow_seconds)
            trials: list[Trial] = []
            for cell in table:
                # A slow service's first closed loops use up the time, so the first round ignores the deadline.
                is_first = group.number == 0 and number == 1 and kind in loads.connections
                target = at_rate(loads.apply(cell), rates[kind])
                trial = yield from group.measure(target, seconds, number, ignore_deadline=is_first)
                trials += [trial] if trial else []
            _set_rate(rates, kind, [trial for trial in trials if _missed_rate(trial)], at_least=2)
        number += 1


def _closed_loops(group: ActiveGroup, table: Sequence[Cell], loads: _CommonLoads) -> Design:
    """Measure the closed loop of a test type on all versions, and set the rate if it is unknown.

    If a response is late or a connection is refused, measure all versions again with fewer connections. If there are
    too few responses to set a rate, measure all versions again for longer.
    """
    kind = table[0].test_type
    length = 1.0 if group.number == 0 else 0.5  # later processes use shorter trials, because the rate is already set
    usual_seconds = group.plan.seconds(table[0].load, headline=True) * length
    trials: list[Trial] = []
    remaining = list(table)
    while remaining:
        cell = loads.apply(remaining.pop(0))
        seconds = loads.closed_seconds.get(kind, usual_seconds)
        trial = yield from group.measure(cell, seconds, 0, ignore_deadline=group.number == 0)
        overloaded = group.forgive(cell) if trial is None else trial.errors.timeout > 0
        if overloaded and cell.load.connections > 1:
            in_time = RESPONSE_TIME_SHARE * TIMEOUT_SECONDS * trial.throughput if trial else math.inf
            loads.connections[kind] = int(max(1, min(cell.load.connections // CONNECTION_DIVISOR, in_time)))
            if trial:
                yield Rest(seconds=_abandoned_seconds(trial))
            trials, remaining = [], list(table)
            continue
        if trial is None:
            continue
        trials.append(trial)
        if not trial.errors.timeout and trial.requests < MIN_CLOSED_REQUESTS and kind not in loads.closed_seconds:
            loads.closed_seconds[kind] = MAX_GATE_SECONDS
            trials, remaining = [], list(table)
    if kind not in loads.rates:
        _set_rate(loads.rates, kind, [trial for trial in trials if trial.rankable], at_least=len(table))


def _abandoned_seconds(trial: Trial) -> float:
    """Estimate how many seconds an overloaded server needs to finish requests that have timed out."""
    if not trial.throughput:
        return MAX_ABANDONED_SECONDS
    return min(max(0.0, trial.load.connections / trial.throughput - TIMEOUT_SECONDS), MAX_ABANDONED_SECONDS)


def _set_rate(rates: dict[str, float], kind: str, trials: Sequence[Trial], *, at_least: int) -> None:
    """Set a test type's rate from the slowest trial. Do nothing if there are fewer than ``at_least`` trials."""
    if len(trials) >= at_least and (slowest := min(trial.throughput for trial in trials)) > 0:
        rates[kind] = float(f"{GATE_RATE_SHARE * slowest:.2g}")


def _missed_rate(trial: Trial) -> bool:
    return any(check.name == "achieved-rate" and check.outcome is Outcome.FAIL for check in trial.validity)
