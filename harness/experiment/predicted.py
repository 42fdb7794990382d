"""Predicts the length of a run by sending predicted results to the design, without executing its steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.experiment import steps
from harness.experiment.designs import DESIGNS
from harness.experiment.loop import OVERHEAD_SECONDS, run_design
from harness.experiment.steps import Process, Step, StepResult
from harness.host.clock import Clock
from harness.plan.plan import Plan
from harness.records.loads import Load
from harness.records.measurements import ErrorCounts, ServerUsage, Window
from harness.records.trial_record import Trial
from harness.report.tables import format_count
from harness.stats.unranked import AT_RATES

START_SECONDS, STOP_SECONDS = 3.0, 3.0  # seconds of a start with a database, and of a stop with the final checks
# Seconds for verifying a test type, in the first process (True) and in later processes.
VERIFY_SECONDS = {True: 1.5, False: 0.4}
RATE = 5_000.0  # requests per second that every server is assumed to serve
QUIET_REST_SHARE = 0.3  # processes are assumed to be idle after this share of the maximum waiting time


def planned_seconds(plan: Plan, step: Step) -> float:
    """Return the planned seconds of a start or stop, or infinity for other steps, which cannot exceed the plan."""
    match step:
        case steps.Start():
            kinds = plan.candidate(step.process.implementation).test_types
            return START_SECONDS + len(kinds) * VERIFY_SECONDS[step.process.number == 0]
        case steps.Stop():
            return STOP_SECONDS
    return math.inf


@dataclass
class Prediction(Clock):
    """A predicted run. It executes steps by predicting their results, and serves as the clock of the run."""

    plan: Plan
    seconds: float = 0.0  # predicted length of the run
    measuring: float = 0.0  # total length of all trials
    trials: int = 0
    measured: set[tuple[Process, str]] = field(default_factory=set)  # (process, test type) pairs with a trial
    # (implementation, test type, load) of every attempted measurement.
    tried: set[tuple[str, str, Load]] = field(default_factory=set)
    unreached: set[tuple[str, str, Load]] = field(default_factory=set)
    warmed: dict[tuple[Process, str], float] = field(default_factory=dict)  # seconds of warm-up by (process, test type)

    @property
    def shortage(self) -> str | None:
        """Return a message if the run's time is too short for some cells or for the minimum number of processes."""
        minimum = self.plan.profile.processes.minimum
        wanted = minimum * sum(len(candidate.test_types) for candidate in self.plan.candidates)
        missing = []
        if sum(process.number < minimum for process, _ in self.measured) < wanted:
            missing.append(f"each test type in {format_count(minimum, 'process')}")
        if self.untried:
            missing.append(f"{format_count(len(self.untried), 'cell')} ({', '.join(self.untried)})")
        if not missing:
            return None
        possible = f"{format_count(self.trials, 'trial')} of {format_count(self.plan.cells, 'cell')}"
        return (
            f"the run's time suffices for {possible}, but not for {', nor for '.join(missing)}. "
            "Give more --time, or select fewer implementations or test types"
        )

    @property
    def untried(self) -> tuple[str, ...]:
        """Return the cells for which the run's time is too short in every process."""
        left = self.unreached - self.tried
        cells = []
        for each in self.plan.candidates:
            for kind, loads in each.test_types.items():
                key = (each.implementation, kind)
                cells += [" ".join((*key, load.label)) for load in loads if (*key, load) in left]
                if self._has_rates(left, key) and not self._has_rates(self.tried, key):
                    cells.append(" ".join((*key, AT_RATES)))
        return tuple(cells)

    @staticmethod
    def _has_rates(cells: set[tuple[str, str, Load]], key: tuple[str, str]) -> bool:
        """Return whether the cells include an open loop of an implementation and test type."""
        return any((name, kind) == key and load.kind == "open" for name, kind, load in cells)

    def monotonic(self) -> float:
        """Return the seconds since the beginning."""
        return self.seconds

    time = monotonic

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.seconds += seconds

    def execute(self, step: Step) -> StepResult:
        """Return the predicted result of a step, and advance the clock."""
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
            case steps.Rest():
                self.sleep(step.seconds * (QUIET_REST_SHARE if step.quiet else 1.0))
            case steps.Stop():
                self.sleep(STOP_SECONDS)
                self.unreached |= {(cell.process.implementation, cell.test_type, cell.load) for cell in step.unreached}
        return steps.Done()

    def _warming(self, step: steps.Warm) -> Sequence[Window]:
        """Return windows with a declining cost until half of the cap, and with a constant cost afterwards."""
        limits, process = self.plan.profile.warm_up, step.cell.process
        cap = limits.jit_cap_seconds if self.plan.candidate(process.implementation).jit else limits.cap_seconds
        steady = max(2.0 * limits.span, 0.5 * cap) - 2 * limits.span
        begin = self.warmed.get((process, step.cell.test_type), 0.0)
        self.warmed[process, step.cell.test_type] = begin + step.seconds
        unknown = {"wait_share": None, "rss": None, "connections": None}
        costs = [1.0 if begin + second >= steady else 2.0 ** -(begin + second) for second in range(int(step.seconds))]
        return [
            Window(start=second, duration=1.0, responses=RATE, server_cpu=cost, **unknown)
            for second, cost in enumerate(costs)
        ]

    def _trial(self, step: steps.Measure) -> Trial:
        """Return a trial that contains the fields that designs use."""
        requests, load = round(RATE * step.seconds), step.cell.load
        due = None if load.kind == "closed" else requests
        return Trial.model_construct(
            id="predicted",
            started_at=self.seconds - step.seconds,
            server=ServerUsage(cpu_seconds=0.0, rss_peak=None, wait_share=None, throttled_seconds=None),
            asked_duration=step.seconds,
            duration=step.seconds,
            bytes=0,
            latency=None,
            generator_cpu_seconds=0.0,
            generator_threads=1,
            implementation=step.cell.process.implementation,
            test_type=step.cell.test_type,
            load=load,
            process=step.cell.process.number,
            round=step.round,
            purpose=step.purpose,
            share=step.share,
            warm_up=step.warm_up,
            steady=step.steady,
            requests=requests,
            errors=ErrorCounts(),
            throughput=RATE,
            cpu_per_request=1 / RATE,
            due=due,
            answered=due,
        )


def predict(plan: Plan, seed: int) -> Prediction:
    """Predict a run by means of the plan's design."""
    prediction = Prediction(plan)
    design = DESIGNS[plan.profile.design](plan, seed)
    run_design(design, prediction.execute, prediction, plan.profile.interleaved.time_seconds)
    return prediction
