"""Defines the designs, which decide what a run measures, in which order and for how long.

A design is a generator that yields steps and receives the result of each step. Designs do not access processes, clocks
or files: ``loop.run_design`` executes the steps, or ``predicted`` predicts their results.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.experiment.active_group import ActiveGroup
from harness.experiment.steps import Cell, Design, Failed, OutOfTime, PassedTime, Process, ReadTime, Rest, Warm
from harness.plan.plan import Candidate, Plan, concurrent_groups
from harness.plugins import Extensions
from harness.records.loads import ClosedLoop, Load, OpenLoop, Scenario, keeps_connections
from harness.records.trial_record import Purpose, Trial
from harness.stats.capacity import next_load
from harness.stats.stopping import undecided

# Skip a common rate for a cell if the rate exceeds this fraction of the cell's closed-loop throughput.
MAX_COMMON_RATE_SHARE = 0.95
# Arrivals are random. The lowest rate of the capacity search therefore yields enough requests even if a trial has only
# this fraction of the expected requests.
ARRIVALS_MARGIN = 0.9
# TechEmpower starts with the primer, a short load over a few connections. It pauses after the primer, and again after
# the warm-up.
PRIMER_CONNECTIONS, TECHEMPOWER_PAUSE_SECONDS = 8, 5.0
TECHEMPOWER_SHORT_PAUSE = 0.4  # pause between two loads, as a fraction of the pause after the primer
# These limits apply if the members of a group are compared. After a group with fewer than FEWEST_ROUNDS rounds, the run
# halves the number of remaining processes, but keeps at least FEWEST_PROCESSES (or one, if more than HALF of the run's
# time has passed).
FEWEST_ROUNDS, FEWEST_PROCESSES, HALF = 2, 2, 0.5

GroupMeasurement = Callable[[ActiveGroup], Design]  # yields the steps that measure a running group


def interleaved(plan: Plan, seed: int) -> Design:
    """Measure each cell once per round, in random order, in several processes per implementation."""
    return run_processes(plan, seed, _rounds)


def search(plan: Plan, seed: int) -> Design:
    """Measure a closed loop, then the given rates, then search for the highest rate that meets the latency goal."""
    return run_processes(plan, seed, _rates)


def techempower(plan: Plan, seed: int) -> Design:
    """Measure in TechEmpower's order: one server at a time, with each test type's loads in ascending order."""
    for number in range(plan.profile.processes.maximum):
        for (candidate,) in concurrent_groups(replace(plan, side_by_side=False), seed + number):
            group = ActiveGroup(plan=plan, number=number, begin=0.0, until=1.0, seed=seed)
            yield from group.start([candidate])
            for process in list(group.members):
                for kind in candidate.test_types:
                    if process in group.members and kind in group.test_types[process]:
                        yield from _techempower_levels(group, process, kind)
            yield from group.stop_all()


DESIGNS: dict[str, Callable[[Plan, int], Design]] = {
    "interleaved": interleaved,
    "search": search,
    "techempower": techempower,
}


def find_design(name: str) -> Callable[[Plan, int], Design]:
    """Return the design with the given name, which may come from a plugin."""
    return DESIGNS.get(name) or Extensions[Callable[[Plan, int], Design]]("designs").load_all()[name]


# ---- designs "interleaved" and "search": the sequence of processes ---------------------------------------------------


def run_processes(plan: Plan, seed: int, visits: GroupMeasurement, *, compare_group: bool = False) -> Design:
    """Measure the first process of every implementation, then the second, and so on.

    End when all comparisons are decided, or at the maximum number of processes. Groups are as large as memory permits.
    ``visits`` yields the steps that measure a group. If ``compare_group`` is set, the members of a group are compared
    with each other. The run then ends when the members no longer have a measurable test type in common.
    """
    rules = plan.profile.processes
    expected = [(c.implementation, kind) for c in plan.candidates for kind in c.test_types]
    undecided_pairs: Sequence[tuple[str, str]] = expected
    trials: list[Trial] = []
    exclusive: set[str] = set()  # implementations that used CPU time while idle; each now runs in a separate group
    failed: set[str] = set()  # implementations that did not start
    number, processes_left, start = 0, rules.maximum, 0.0
    while processes_left:
        pending = [
            _select(group, undecided_pairs, failed)
            for group in concurrent_groups(plan, seed + number, frozenset(exclusive))
        ]
        share = (1 - start) / processes_left  # fraction of the run's time for processes with this number
        candidates_done, count = 0, sum(map(len, pending))
        if not count:
            return
        for candidates in filter(None, pending):
            begin = start + candidates_done / count * share
            candidates_done += len(candidates)
            until = start + candidates_done / count * share
            group = ActiveGroup(plan=plan, number=number, begin=begin, until=until, seed=seed)
            failed |= yield from group.start(candidates)
            if not compare_group or group.common_test_types(candidates):
                yield from group.warm(group.common_test_types(candidates) if compare_group else None)
                yield from visits(group)
            yield from group.stop_all()
            trials += group.trials
            if compare_group and not group.common_test_types(candidates):
                return
            exclusive |= {process.implementation for process in group.busy}
        number, processes_left, start = number + 1, processes_left - 1, start + share
        if compare_group:
            passed = yield ReadTime()
            start = max(start, passed.share) if isinstance(passed, PassedTime) else start
            if group.rounds < FEWEST_ROUNDS:
                fewest = FEWEST_PROCESSES if start <= HALF else 1
                processes_left = min(processes_left, max(fewest, processes_left // 2))
            if start >= 1:
                return
        if number in rules.looks:
            undecided_pairs = undecided(trials, expected, rules)


def _select(group: Sequence[Candidate], waiting: Sequence[tuple[str, str]], failed: set[str]) -> list[Candidate]:
    """Return the candidates that never failed to start and have undecided test types, with only these test types."""
    selected = []
    for candidate in group:
        kinds = {k: loads for k, loads in candidate.test_types.items() if (candidate.implementation, k) in waiting}
        if kinds and candidate.implementation not in failed:
            selected.append(replace(candidate, test_types=kinds))
    return selected


# ---- design "interleaved": rounds ------------------------------------------------------------------------------------


def _rounds(group: ActiveGroup) -> Design:
    """Visit every cell once per round.

    Cells with the same test type and load run back to back, so disturbances affect all of them equally.
    """
    rules, plan, number = group.plan.profile.interleaved, group.plan, 0
    while rules.rounds is None or number < rules.rounds:
        first = group.number == number == 0
        cells = group.cells(every_load=rules.every_load or first)
        if not cells:
            return
        for cell in in_random_order(cells, group.is_headline, f"{group.seed} {group.number} {number}"):
            if cell.process not in group.members:
                continue
            is_headline = group.is_headline(cell)
            seconds = plan.seconds(cell.load, headline=is_headline)
            yield from group.measure(cell, seconds, number, ignore_deadline=first and is_headline)
            if first and is_headline and rules.witness and keeps_connections(cell.load):
                yield from group.measure(cell, plan.witness_seconds, number, purpose="witness")
        yield from group.stop_busy()
        number += 1


def in_random_order(cells: Sequence[Cell], is_headline: Callable[[Cell], bool], seed: str) -> Iterator[Cell]:
    """Yield the cells in random order, but keep cells with the same test type and load (a table) together.

    Both the tables and the cells within each table are shuffled. Each test type's headline load is last, because the
    other loads then provide additional warm-up.
    """
    rng = random.Random(seed)
    tables: defaultdict[tuple[str, Load], list[Cell]] = defaultdict(list)
    for cell in cells:
        tables[cell.test_type, cell.load].append(cell)
    headlines = {(cell.test_type, cell.load) for cell in cells if is_headline(cell)}
    order = rng.sample(sorted(tables, key=str), len(tables))
    by_type = {kind: iter(sorted((t for t in order if t[0] == kind), key=headlines.__contains__)) for kind, _ in order}
    for kind, _ in order:  # ``order`` determines the test type, and ``by_type`` the load
        table = tables[next(by_type[kind])]
        yield from rng.sample(table, len(table))


# ---- design "search": rates ------------------------------------------------------------------------------------------


def _rates(group: ActiveGroup) -> Design:
    """Measure a closed loop, then the given rates in random order, then the rates of the capacity search."""
    profile, rng = group.plan.profile, random.Random(f"{group.seed} rates {group.number}")
    capacities: dict[Cell, float] = {}  # closed-loop throughput in requests/s, or a scenario's load factor
    cells = group.cells()
    for cell in rng.sample(cells, len(cells)):
        seconds = group.plan.seconds(cell.load, headline=True)
        trial = yield from group.measure(cell, seconds, 0, ignore_deadline=group.number == 0)
        if isinstance(cell.load, Scenario):
            capacities[cell] = cell.load.factor
        elif trial and trial.rankable and trial.throughput > 0:
            capacities[cell] = trial.throughput
    given: list[tuple[Purpose, float]] = [("share", share) for share in profile.rates.shares]
    given += [("common", rate) for rate in profile.rates.common]
    yield from _given_rates(group, capacities, given, rng)
    for number in range(len(given) + 1, len(given) + 1 + profile.open_loop.search_loads):
        for cell in rng.sample(list(capacities), len(capacities)):
            yield from _search_capacity(group, cell, capacities[cell], number)


def _given_rates(
    group: ActiveGroup, capacities: dict[Cell, float], rates: Sequence[tuple[Purpose, float]], rng: random.Random
) -> Design:
    """Measure cells in random order, at fractions of their closed-loop throughput and at rates common to all cells."""
    seconds = group.plan.profile.rates.seconds
    for number, (purpose, value) in enumerate(rng.sample(rates, len(rates)), 1):
        for cell in rng.sample(list(capacities), len(capacities)):
            share = value if purpose == "share" else None
            too_high = share is None and value > MAX_COMMON_RATE_SHARE * capacities[cell]
            if isinstance(cell.load, Scenario) or too_high:
                continue
            target = at_rate(cell, value * capacities[cell] if share else value)
            yield from group.measure(target, seconds, number, purpose=purpose, share=share)


def _search_capacity(group: ActiveGroup, cell: Cell, start: float, number: int) -> Design:
    """Measure a cell at the next rate of the capacity search, unless the capacity is already known."""
    profile, is_scenario = group.plan.profile, isinstance(cell.load, Scenario)
    seconds = profile.orders.seconds if is_scenario else profile.rates.seconds
    trials = [
        trial
        for trial in group.trials
        if (trial.implementation, trial.process) == cell.process
        and trial.test_type == cell.test_type
        and (is_scenario or trial.purpose != "measure")
    ]
    goal = profile.orders.goal if is_scenario else profile.open_loop.goal
    rate = next_load(trials, goal, start=start, seconds=ARRIVALS_MARGIN * seconds)
    if rate is not None:
        yield from group.measure(at_rate(cell, rate), seconds, number, purpose="search")


def at_rate(cell: Cell, rate: float) -> Cell:
    """Return a copy of a cell with the given rate or scenario factor."""
    load = cell.load
    if isinstance(load, Scenario):
        return replace(cell, load=Scenario(factor=rate, connections=load.connections))
    return replace(cell, load=OpenLoop(rate=rate, connections=load.connections, queries=load.queries))


# ---- design "techempower" --------------------------------------------------------------------------------------------


def _techempower_levels(group: ActiveGroup, process: Process, kind: str) -> Design:
    """Run the primer and the warm-up, then measure all loads with pauses. Add a witness trial of the headline load."""
    profile = group.plan.profile
    loads = group.members[process].test_types[kind]
    # TechEmpower measures for 15 s and pauses for a third of that time.
    pause = min(TECHEMPOWER_PAUSE_SECONDS, profile.duration_seconds / 3)
    cells = [Cell(process=process, test_type=kind, load=load) for load in loads]
    warm_up_cell = cells[-1] if loads[-1].queries is not None else cells[0]
    primer = (pause, min(PRIMER_CONNECTIONS, warm_up_cell.load.connections))
    for seconds, connections in (primer, (profile.duration_seconds, max(profile.levels.concurrency))):
        load = warm_up_cell.load
        if isinstance(load, ClosedLoop):
            load = load.model_copy(update={"connections": connections})
        result = yield Warm(cell=replace(warm_up_cell, load=load), seconds=seconds)
        if isinstance(result, Failed):
            if result.server_exited:
                group.remove(process)
            return
        if isinstance(result, OutOfTime):
            group.late_processes.add(process)
            break
        yield Rest(seconds=pause)
    for cell in cells:
        if cell is not cells[0] and process not in group.late_processes:
            yield Rest(seconds=TECHEMPOWER_SHORT_PAUSE * pause)
        yield from group.measure(cell, profile.duration_seconds, 0)
        if process not in group.members:
            return
        if (
            group.is_headline(cell)
            and group.number == 0
            and profile.interleaved.witness
            and keeps_connections(cell.load)
        ):
            yield from group.measure(cell, group.plan.witness_seconds, 0, purpose="witness")
