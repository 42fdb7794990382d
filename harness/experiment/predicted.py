"""A design sent what its steps are expected to show: how long a run takes, before anything is started. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.experiment import steps
from harness.experiment.designs import DESIGNS
from harness.experiment.loop import OVERHEAD_SECONDS, run_design
from harness.experiment.steps import Process, Step, StepResult
from harness.host.clock import Clock
from harness.plan.plan import Plan
from harness.records.loads import Load
from harness.records.measurements import ErrorCounts, Window
from harness.records.trial_record import Trial
from harness.report.tables import format_count
from harness.stats.unranked import AT_RATES

START_SECONDS, STOP_SECONDS = 3.0, 3.0  # a start with its database, an end with its last checks
VERIFY_SECONDS = {True: 1.5, False: 0.4}  # of a test type, in an implementation's first process and in later ones
RATE = 5_000.0  # requests per second that a server is taken to answer


def planned_seconds(plan: Plan, step: Step) -> float:
    """Return how long the plan allows a start or a stop to take. Other steps have a length of their own: infinity."""
    match step:
        case steps.Start():
            kinds = plan.candidate(step.process.implementation).test_types
            return START_SECONDS + len(kinds) * VERIFY_SECONDS[step.process.number == 0]
        case steps.Stop():
            return STOP_SECONDS
    return math.inf


@dataclass
class Prediction(Clock):
    """What a run comes to. Answers each of its steps with what it is expected to show, and is the clock that passes."""

    plan: Plan
    seconds: float = 0.0
    measuring: float = 0.0  # of these under measurement
    trials: int = 0
    measured: set[tuple[Process, str]] = field(default_factory=set)
    tried: set[tuple[str, str, Load]] = field(default_factory=set)
    unreached: set[tuple[str, str, Load]] = field(default_factory=set)
    warmed: dict[tuple[Process, str], float] = field(default_factory=dict)

    @property
    def shortage(self) -> str | None:
        """Return what the time has no room for: cells, or test types in as many processes as the plan asks for."""
        least = self.plan.profile.processes.minimum
        wanted = least * sum(len(candidate.test_types) for candidate in self.plan.candidates)
        missing = []
        if sum(process.number < least for process, _ in self.measured) < wanted:
            missing.append(f"each test type in {format_count(least, 'process')}")
        if self.untried:
            missing.append(f"{format_count(len(self.untried), 'cell')} ({', '.join(self.untried)})")
        if not missing:
            return None
        room = f"{format_count(self.trials, 'trial')} of {format_count(self.plan.cells, 'cell')}"
        return (
            f"the time has room for {room}, not for {', nor for '.join(missing)}: "
            "give more --time, or fewer names and types"
        )

    @property
    def untried(self) -> tuple[str, ...]:
        """Return the cells that the time does not reach in any process, as a run would name them."""
        left = self.unreached - self.tried
        found = []
        for each in self.plan.candidates:
            for kind, loads in each.test_types.items():
                key = (each.implementation, kind)
                found += [" ".join((*key, load.label)) for load in loads if (*key, load) in left]
                late, tried = (
                    any((*key, "open") == (*known[:2], known[2].kind) for known in of) for of in (left, self.tried)
                )
                found += [" ".join((*key, AT_RATES))] * (late and not tried)
        return tuple(found)

    def monotonic(self) -> float:
        """Seconds since the beginning."""
        return self.seconds

    time = monotonic

    def sleep(self, seconds: float) -> None:
        """They pass."""
        self.seconds += seconds

    def execute(self, step: Step) -> StepResult:
        """What the step is expected to show."""
        match step:
            case steps.Start():
                kinds = self.plan.candidate(step.process.implementation).test_types
                self.sleep(planned_seconds(self.plan, step))
                return steps.Done(test_types=frozenset(kinds))
            case steps.Warm():
                self.sleep(step.seconds + OVERHEAD_SECONDS)
                return steps.WarmUpResult(windows=self._warming(step), seconds=step.seconds)
            case steps.Measure():
                self.sleep(step.seconds + OVERHEAD_SECONDS)
                self.trials += 1
                self.measured.add((step.cell.process, step.cell.test_type))
                self.tried.add((step.cell.process.implementation, step.cell.test_type, step.cell.load))
                self.measuring += step.seconds
                return steps.TrialResult(trial=self._trial(step))
            case steps.Rest():  # one for processes ends before the longest that it may take
                self.sleep(step.seconds * (0.3 if step.quiet else 1.0))
            case steps.Stop():
                self.sleep(STOP_SECONDS)
                self.unreached |= {(cell.process.implementation, cell.test_type, cell.load) for cell in step.unreached}
        return steps.Done()

    def _warming(self, step: steps.Warm) -> Sequence[Window]:
        """Steady half of the way to the cap: until then each second costs less than the one before."""
        rule, process = self.plan.profile.warm_up, step.cell.process
        cap = rule.jit_cap_seconds if self.plan.candidate(process.implementation).jit else rule.cap_seconds
        steady = max(2.0 * rule.span, 0.5 * cap) - 2 * rule.span
        at = self.warmed.get((process, step.cell.test_type), 0.0)
        self.warmed[process, step.cell.test_type] = at + step.seconds
        unread = {"wait_share": None, "rss": None, "connections": None}
        costs = [1.0 if at + second >= steady else 2.0 ** -(at + second) for second in range(int(step.seconds))]
        return [
            Window(start=second, duration=1.0, responses=RATE, server_cpu=cost, **unread)
            for second, cost in enumerate(costs)
        ]

    def _trial(self, step: steps.Measure) -> Trial:
        """What designs look at of one."""
        requests, load = round(RATE * step.seconds), step.cell.load
        shown: dict[str, Any] = {
            "implementation": step.cell.process.implementation, "test_type": step.cell.test_type, "load": load,
            "process": step.cell.process.number, "requests": requests, "errors": ErrorCounts(),
            "throughput": RATE, "cpu_per_request": 1 / RATE,
        }  # fmt: skip
        if load.kind != "closed":
            shown |= {"due": requests, "answered": requests}
        return Trial.model_construct(**vars(step), **shown)


def predict(plan: Plan, seed: int) -> Prediction:
    """How long the plan's design takes, and how much of it is under measurement."""
    found = Prediction(plan)
    run_design(DESIGNS[plan.profile.design](plan, seed), found.execute, found, plan.profile.interleaved.time_seconds)
    return found
