"""Predicts a run's duration by sending predicted results to the run's design. ``--dry-run`` prints the prediction."""

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.errors import Exit
from harness.experiment import first_use, steps
from harness.experiment.designs import find_design
from harness.experiment.first_use import FirstUseTask
from harness.experiment.loop import OVERHEAD_SECONDS, run_design
from harness.experiment.selection import limit_memory, make_plan, remaining_share
from harness.experiment.steps import Process, Step, StepResult
from harness.host import machine
from harness.host.clock import Clock
from harness.plan.plan import Plan, concurrent_groups
from harness.plan.run_settings import Settings
from harness.records import store
from harness.records.loads import Load
from harness.records.measurements import ErrorCounts, ServerUsage, Window
from harness.records.run_folders import find_run
from harness.records.trial_record import Trial
from harness.report.tables import format_count
from harness.runtime.choice import can_run_side_by_side
from harness.stats.unranked import AT_RATES
from harness.units import format_elapsed

# Predicted seconds of a start (server and database), and of a stop (with the process's final checks).
START_SECONDS, STOP_SECONDS = 3.0, 3.0
# Seconds to verify a test type. The key is True for an implementation's first process, which is verified thoroughly.
VERIFY_SECONDS = {True: 1.5, False: 0.4}
RATE = 5_000.0  # assumed throughput of every server, in requests per second


def planned_seconds(plan: Plan, step: Step) -> float:
    """Return the planned seconds of a start or stop, or infinity for steps whose delay does not extend the run."""
    match step:
        case steps.Start():
            kinds = plan.candidate(step.process.implementation).test_types
            return START_SECONDS + len(kinds) * VERIFY_SECONDS[step.process.number == 0]
        case steps.Stop():
            return STOP_SECONDS
    return math.inf


@dataclass
class Prediction(Clock):
    """A simulated run, which predicts the result of each step and serves as the run's clock."""

    plan: Plan
    seconds: float = 0.0  # predicted length of the run so far
    measuring: float = 0.0  # total length of all trials in seconds
    trials: int = 0
    measured_cells: set[tuple[Process, str]] = field(default_factory=set)  # (process, test type) pairs with a trial
    # (implementation, test type, load) triples: all cells with a trial, and the planned cells that some process had no
    # time to measure.
    tried: set[tuple[str, str, Load]] = field(default_factory=set)
    unreached: set[tuple[str, str, Load]] = field(default_factory=set)
    warmed: dict[tuple[Process, str], float] = field(default_factory=dict)  # (process, test type) -> warm-up in seconds

    @property
    def shortage(self) -> str | None:
        """A message if the time limit is too short for all cells or for the minimum number of processes, else None."""
        minimum = self.plan.profile.processes.minimum
        wanted = minimum * sum(len(candidate.test_types) for candidate in self.plan.candidates)
        missing = []
        if sum(process.number < minimum for process, _ in self.measured_cells) < wanted:
            missing.append(f"each test type in {format_count(minimum, 'process')}")
        if self.untried:
            missing.append(f"{format_count(len(self.untried), 'cell')} ({', '.join(self.untried)})")
        if not missing:
            return None
        possible = f"{format_count(self.trials, 'trial')} of {format_count(self.plan.cells, 'cell')}"
        return (
            f"the time limit is enough for {possible}, but not for {', nor for '.join(missing)}. "
            "Increase --time, or select fewer implementations or test types"
        )

    @property
    def untried(self) -> tuple[str, ...]:
        """The cells that the run has no time to measure, for example ``vertx json c64``."""
        untried = self.unreached - self.tried
        cells = []
        for each in self.plan.candidates:
            for kind, loads in each.test_types.items():
                key = (each.implementation, kind)
                cells += [" ".join((*key, load.label)) for load in loads if (*key, load) in untried]
                if self._has_rates(untried, key) and not self._has_rates(self.tried, key):
                    cells.append(" ".join((*key, AT_RATES)))
        return tuple(cells)

    @staticmethod
    def _has_rates(cells: set[tuple[str, str, Load]], key: tuple[str, str]) -> bool:
        """Return whether any of the cells is an open loop of ``key``, an (implementation, test type) pair."""
        return any((name, kind) == key and load.kind == "open" for name, kind, load in cells)

    def monotonic(self) -> float:
        """Return the predicted seconds since the start of the run."""
        return self.seconds

    time = monotonic

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.seconds += seconds

    def execute(self, step: Step) -> StepResult:
        """Return the predicted result of a step and advance the clock."""
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
                self.measured_cells.add((step.cell.process, step.cell.test_type))
                self.tried.add((step.cell.process.implementation, step.cell.test_type, step.cell.load))
                self.measuring += step.seconds
                return steps.TrialResult(trial=self._trial(step))
            case steps.Rest():
                # Assume that processes become idle after 30 % of the maximum wait.
                self.sleep(step.seconds * (0.3 if step.quiet else 1.0))
            case steps.Stop():
                self.sleep(planned_seconds(self.plan, step))
                self.unreached |= {(cell.process.implementation, cell.test_type, cell.load) for cell in step.unreached}
        return steps.Done()

    def _warming(self, step: steps.Warm) -> Sequence[Window]:
        """Simulate a warm-up load's windows, with CPU costs that end the warm-up after half of its maximum duration."""
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
        """Return a trial with only the fields that designs use."""
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
    """Predict a run by executing the plan's design with predicted results."""
    prediction = Prediction(plan)
    design = find_design(plan.profile.design)(plan, seed)
    run_design(design, prediction.execute, prediction, plan.profile.interleaved.time_seconds)
    return prediction


def dry_run(
    settings: Settings,
    find_first_use_tasks: Callable[[Settings, Plan], Sequence[FirstUseTask]] = first_use.find_first_use_tasks,
) -> int:
    """Print the predicted run as text or JSON and return the exit code."""
    plan = make_plan(settings)
    plan = replace(plan, side_by_side=can_run_side_by_side(settings, plan.implementations))
    plan = limit_memory(plan, settings.results, machine.free_memory())
    predicted, first_use_tasks = predict(plan, settings.seed), find_first_use_tasks(settings, plan)
    finished: frozenset[tuple[str, int]] = frozenset()
    if settings.resume:
        finished = store.finished_processes(store.read_run(find_run(settings.results, settings.resume)))
    share = remaining_share(plan, finished)
    builds = first_use.past_build_seconds(plan, settings.results)
    for problem in filter(None, (*plan.problems, predicted.shortage)):
        print(f"! {problem}", file=sys.stderr)
    if settings.json:
        _print_json(plan, predicted, share, first_use_tasks, builds)
        return Exit.OK
    for number, group in enumerate(concurrent_groups(plan, settings.seed), 1):
        print(f"group {number}: {', '.join(candidate.implementation for candidate in group)}")
    for candidate in plan.candidates:
        for kind, loads in candidate.test_types.items():
            print(f"{candidate.implementation}  {kind}  {', '.join(load.label for load in loads)}")
    count = plan.profile.processes
    minimum = f"{count.minimum} to " if count.maximum > count.minimum else ""
    print(
        f"{format_count(plan.cells, 'cell')}, {minimum}{format_count(count.maximum, 'process')} per implementation, "
        f"{format_count(predicted.trials, 'trial')}; about {format_elapsed(share * predicted.seconds)}"
        f"{' remaining' * bool(finished)}, {predicted.measuring / max(1.0, predicted.seconds):.0%} of it measuring, "
        "excluding builds"
    )
    building = sum(first_use.expected_build_seconds(plan.implementations, builds).values())
    print(first_use.describe_builds(builds, building))
    if first_use_tasks:
        print(first_use.describe_first_use_tasks(first_use_tasks))
    return Exit.OK


def _print_json(
    plan: Plan,
    predicted: Prediction,
    share: float,
    first_use_tasks: Sequence[FirstUseTask],
    builds: Mapping[str, float | None],
) -> None:
    """Print the predicted run as JSON. ``share`` is the fraction of the plan that remains to be measured."""
    count = plan.profile.processes
    document = {
        "processes": {"minimum": count.minimum, "maximum": count.maximum},
        "trials": predicted.trials,
        "seconds": share * predicted.seconds,
        "measuring_seconds": share * predicted.measuring,
        "first_use": [{"what": task.description, "seconds": task.seconds} for task in first_use_tasks],
        "build_seconds": builds,
        "unreached": predicted.untried,
        "cells": [
            {"implementation": candidate.implementation, "test_type": kind, "loads": [load.label for load in loads]}
            for candidate in plan.candidates
            for kind, loads in candidate.test_types.items()
        ],
    }
    print(json.dumps(document))
