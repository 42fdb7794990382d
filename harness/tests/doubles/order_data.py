"""Loads of the order service with invented figures, and a run of them to look at. Nothing here is a measurement."""

import random

from harness.plan.orders import CREATE, USE_CASES
from harness.plan.profile import Processes
from harness.records.models import (
    Arrivals,
    Errors,
    Latency,
    LatencyGoal,
    OperationTimes,
    Purpose,
    RunRecords,
    Scenario,
    Trial,
    UseCaseTimes,
)
from harness.tests import records
from harness.tests.doubles import runs
from harness.tests.doubles.invented import REAL, finished, implementation

GOAL = LatencyGoal(percentile=99.0, seconds=0.1)
FACTORS = (1.0, 32.0)
CAPACITY = 120.0  # factor that the first implementation holds the goal at


def latency(median: float) -> Latency:
    """Of a thousand answers or so, with a tail three times as long as the median."""
    return Latency(
        basis="open-loop, intended send time",
        mean=median,
        stdev=0.0,
        min=median,
        max=3 * median,
        percentiles={"50": median, "90": 2 * median, "99": 3 * median},
        histogram=((median, 600), (2 * median, 350), (3 * median, 48)),
    )


def trial(name: str, process: int, factor: float, median: float, *, purpose: Purpose = "measure") -> Trial:
    """A thousand arrivals of each use case, two of which failed; whole arrivals take twice as long as an operation."""
    operations = tuple(
        OperationTimes(
            use_case=case.name, operation=operation, due=1000, answered=998, errors=Errors(), latency=latency(median)
        )
        for case in USE_CASES
        for operation in dict.fromkeys(step.operation for step in case.steps)
    )
    use_cases = tuple(
        UseCaseTimes(use_case=case.name, due=1000, done=998, latency=latency(2 * median)) for case in USE_CASES
    )
    load = Scenario(connections=64, factor=factor)
    found = runs.trial(name, 4990 / 8.0, process, test_type="order", load=load, cpu=median / 2)
    own = {
        "purpose": purpose,
        "duration": 8.0,
        "asked_duration": 8.0,
        "requests": 998 * len(operations),
        "latency": next(one.latency for one in operations if one.operation == CREATE),
        "due": 1000 * len(operations),
        "answered": 998 * len(operations),
        "unfinished": 0,
        "arrivals": Arrivals(due=5000, done=4990, failed=10, unfinished=0, operations=operations, use_cases=use_cases),
        "database_cpu_seconds": 5000 * median / 4,
    }
    return found.model_copy(update=own)


def searched(name: str, process: int, capacity: float) -> list[Trial]:
    """A search for the capacity: the goal is met just below it, and missed just above."""
    loads = ((capacity, 0.01), (1.04 * capacity, 2 * GOAL.seconds))
    return [trial(name, process, factor, median, purpose="search") for factor, median in loads]


def run(run_id: str, *, started_at: float, processes: int = 4) -> RunRecords:
    """A run of four implementations at two factors, one of which missed the goal at no factor in its first process."""
    drawn = random.Random(3)
    items = [implementation(row) for row in REAL]
    rules = Processes(minimum=processes, maximum=processes)
    loads = tuple(Scenario(connections=64, factor=factor) for factor in FACTORS)
    info = runs.run_info([item.name for item in items], rules, loads={"order": loads})
    profile = {"processes": rules.model_dump(), "orders": {"factors": FACTORS, "goal": GOAL.model_dump()}}
    trials: list[Trial] = []
    for process in range(processes):
        for place, item in enumerate(items):
            for factor in FACTORS:
                median = (1 + place) * factor**0.2 * drawn.gauss(0.002, 0.00004)
                trials.append(trial(item.name, process, factor, median))
            capacity = CAPACITY / (1 + place) + process
            found = searched(item.name, process, capacity)
            trials += found if place < 3 or process else found[:1]
    started = [records.process(item.name, process) for process in range(processes) for item in items]
    made = RunRecords(info=info.model_copy(update={"settings": {"profile": profile}}), trials=trials, processes=started)
    return finished(made, run_id, items, started_at=started_at)
