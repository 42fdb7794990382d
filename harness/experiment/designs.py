"""Designs: the order, the number and the length of measurements.

A design is a generator that yields steps and receives the result of each step. Designs do not access processes, clocks
or files: ``loop.run_design`` executes the steps, and ``predicted`` supplies predicted results.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.experiment.active_group import ActiveGroup
from harness.experiment.steps import Cell, Design, Failed, OutOfTime, Process, Rest, Warm
from harness.plan.plan import Candidate, Plan, concurrent_groups
from harness.plugins import Extensions
from harness.records.loads import ClosedLoop, Load, OpenLoop, Scenario
from harness.records.outcome import Outcome
from harness.records.trial_record import Purpose, Trial
from harness.stats.capacity import next_load
from harness.stats.stopping import undecided

MAX_COMMON_RATE_SHARE = 0.95  # common rates above this share of a server's closed-loop throughput are omitted
# Share of a trial's length that the capacity search relies on, because random arrivals vary in number.
ARRIVALS_MARGIN = 0.9
# TechEmpower first sends a short load (primer) over few connections. It pauses after the primer and the warm-up.
PRIMER_CONNECTIONS, TECHEMPOWER_PAUSE_SECONDS = 8, 5.0
TECHEMPOWER_SHORT_PAUSE = 0.4  # pause between two levels as a share of the other pauses
# Rates of the regression gate.
GATE_RATE_SHARE = 0.5  # the rate as a share of the slowest side's throughput
LATER_LOOP_SHARE = 0.5  # relative length of the closed loops in later processes, which do not set the rate
# Trials of slow services are extended up to this length to get enough requests.
MIN_GATE_REQUESTS, MAX_GATE_SECONDS = 50, 10.0

GroupMeasurement = Callable[[ActiveGroup], Design]  # yields the measurements of a running group


def interleaved(plan: Plan, seed: int) -> Design:
    """Measure each cell once in every round, in random order, in several processes of each implementation."""
    return _run_processes(plan, seed, _rounds)


def search(plan: Plan, seed: int) -> Design:
    """Measure a closed loop, then the given rates, then rates that approach the capacity at a latency goal."""
    return _run_processes(plan, seed, _rates)


def regression_gate(plan: Plan, seed: int) -> Design:
    """Measure a closed loop of each request, then rounds in which all sides receive the same rate."""
    rates: dict[str, float] = {}
    return _run_processes(plan, seed, lambda group: _common_rates(group, rates), compare_group=True)


def techempower(plan: Plan, seed: int) -> Design:
    """Measure in TechEmpower's order: one server at a time, with ascending levels and pauses for each test type."""
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
    "gate": regression_gate,
    **Extensions[Callable[[Plan, int], Design]]("designs").load_all(),
}


# ---- sequence of processes -------------------------------------------------------------------------------------------


def _run_processes(plan: Plan, seed: int, visits: GroupMeasurement, *, compare_group: bool = False) -> Design:
    """Measure a process of every implementation, then the next process, until all comparisons are decided.

    As many implementations run side by side as fit into memory.

    Args:
        plan: The plan.
        seed: Seed of the random order.
        visits: Measurements while a group is running.
        compare_group: Compare members only within a group. The loss of a member then ends the run.
    """
    rules = plan.profile.processes
    expected = [(c.implementation, kind) for c in plan.candidates for kind in c.test_types]
    waiting: Sequence[tuple[str, str]] = expected
    trials: list[Trial] = []
    alone: set[str] = set()  # busy implementations, which run alone from then on
    failed: set[str] = set()  # implementations that did not start
    share = 1 / rules.maximum  # share of the run's time for each process number
    for number in range(rules.maximum):
        pending = [
            _select(group, waiting, failed) for group in concurrent_groups(plan, seed + number, frozenset(alone))
        ]
        done, count = 0, sum(map(len, pending))
        if not count:
            return
        for candidates in filter(None, pending):
            begin = (number + done / count) * share
            done += len(candidates)
            until = (number + done / count) * share
            group = ActiveGroup(plan=plan, number=number, begin=begin, until=until, seed=seed)
            failed |= yield from group.start(candidates)
            if not compare_group or group.common_test_types(candidates):
                yield from group.warm(group.common_test_types(candidates) if compare_group else None)
                yield from visits(group)
            yield from group.stop_all()
            trials += group.trials
            if compare_group and not group.common_test_types(candidates):
                return
            alone |= {process.implementation for process in group.busy}
        if number + 1 in rules.looks:
            waiting = undecided(trials, expected, rules)


def _select(group: Sequence[Candidate], waiting: Sequence[tuple[str, str]], failed: set[str]) -> list[Candidate]:
    """Return the candidates that have not failed, with the test types whose comparison is undecided."""
    selected = []
    for candidate in group:
        kinds = {k: loads for k, loads in candidate.test_types.items() if (candidate.implementation, k) in waiting}
        if kinds and candidate.implementation not in failed:
            selected.append(replace(candidate, test_types=kinds))
    return selected


# ---- interleaved rounds ----------------------------------------------------------------------------------------------


def _rounds(group: ActiveGroup) -> Design:
    """Visit every cell once per round. Cells of a table follow each other, because disturbances last for seconds."""
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
            yield from group.measure(cell, seconds, number, must=first and is_headline)
            if first and is_headline and rules.witness and isinstance(cell.load, ClosedLoop):
                yield from group.measure(cell, plan.witness_seconds, number, purpose="witness")
        yield from group.stop_busy()
        number += 1


def in_random_order(cells: Sequence[Cell], is_headline: Callable[[Cell], bool], seed: str) -> Iterator[Cell]:
    """Yield the tables in random order, and the cells of each table in random order.

    The headline table of a test type is last, so that the other loads serve as additional warm-up.
    """
    dice = random.Random(seed)
    tables: defaultdict[tuple[str, Load], list[Cell]] = defaultdict(list)
    for cell in cells:
        tables[cell.test_type, cell.load].append(cell)
    last = {(cell.test_type, cell.load) for cell in cells if is_headline(cell)}
    order = dice.sample(sorted(tables, key=str), len(tables))
    by_type = {kind: iter(sorted((t for t in order if t[0] == kind), key=last.__contains__)) for kind, _ in order}
    for kind, _ in order:  # the random order determines the test type of each position
        table = tables[next(by_type[kind])]
        yield from dice.sample(table, len(table))


# ---- rates -----------------------------------------------------------------------------------------------------------


def _rates(group: ActiveGroup) -> Design:
    """Measure a closed loop, then the given rates in random order, then search for the capacity in rounds."""
    profile, dice = group.plan.profile, random.Random(f"{group.seed} rates {group.number}")
    capacities: dict[Cell, float] = {}  # closed-loop throughput, or the factor of a scenario
    cells = group.cells()
    for cell in dice.sample(cells, len(cells)):
        seconds = group.plan.seconds(cell.load, headline=True)
        trial = yield from group.measure(cell, seconds, 0, must=group.number == 0)
        if isinstance(cell.load, Scenario):
            capacities[cell] = cell.load.factor
        elif trial and trial.rankable and trial.throughput > 0:
            capacities[cell] = trial.throughput
    given: list[tuple[Purpose, float]] = [("share", share) for share in profile.rates.shares]
    given += [("common", rate) for rate in profile.rates.common]
    yield from _given_rates(group, capacities, given, dice)
    for number in range(len(given) + 1, len(given) + 1 + profile.open_loop.search_loads):
        for cell in dice.sample(list(capacities), len(capacities)):
            yield from _search_capacity(group, cell, capacities[cell], number)


def _given_rates(
    group: ActiveGroup, capacities: dict[Cell, float], given: Sequence[tuple[Purpose, float]], dice: random.Random
) -> Design:
    """Measure each cell at shares of its closed-loop throughput and at common rates, in random order."""
    seconds = group.plan.profile.rates.seconds
    for number, (purpose, value) in enumerate(dice.sample(given, len(given)), 1):
        for cell in dice.sample(list(capacities), len(capacities)):
            share = value if purpose == "share" else None
            too_high = share is None and value > MAX_COMMON_RATE_SHARE * capacities[cell]
            if isinstance(cell.load, Scenario) or too_high:
                continue
            at_rate = _at_rate(cell, value * capacities[cell] if share else value)
            yield from group.measure(at_rate, seconds, number, purpose=purpose, share=share)


def _search_capacity(group: ActiveGroup, cell: Cell, start: float, number: int) -> Design:
    """Measure the next load of a capacity search that starts at ``start``, unless the capacity has been found."""
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
        yield from group.measure(_at_rate(cell, rate), seconds, number, purpose="search")


def _common_rates(group: ActiveGroup, rates: dict[str, float]) -> Design:
    """Measure a closed loop, then rounds at a common rate.

    The first closed loop sets the rate of a test type. If several sides miss the rate in a round, the rate is lowered.
    A closed loop can set a rate that is too high, because simultaneous requests cost a server less.

    Args:
        group: The sides.
        rates: Rate by test type, which this design updates.
    """
    dice = random.Random(f"{group.seed} gate {group.number}")
    number, sides = 0, tuple(group.members.values())
    while cells := group.cells():
        closed = number == 0
        kinds = [kind for kind in sorted(group.common_test_types(sides)) if closed or kind in rates]
        if not kinds:
            return
        for kind in dice.sample(kinds, len(kinds)):
            table = [cell for cell in cells if cell.test_type == kind]
            if closed:
                length = 1.0 if group.number == 0 else LATER_LOOP_SHARE
                seconds = group.plan.seconds(table[0].load, headline=True) * length
            else:
                table = [_at_rate(cell, rates[kind]) for cell in table]
                slow_seconds = min(MIN_GATE_REQUESTS / rates[kind], MAX_GATE_SECONDS)
                seconds = max(group.plan.profile.rates.seconds, slow_seconds)
            trials: list[Trial] = []
            for cell in dice.sample(table, len(table)):
                trial = yield from group.measure(cell, seconds, number, must=group.number == number == 0)
                trials += [trial] if trial else []
            if closed:
                if kind not in rates:
                    _set_rate(rates, kind, [trial for trial in trials if trial.rankable], at_least=len(table))
            else:
                _set_rate(rates, kind, [trial for trial in trials if _missed_rate(trial)], at_least=2)
        number += 1


def _set_rate(rates: dict[str, float], kind: str, trials: Sequence[Trial], *, at_least: int) -> None:
    """Set the rate of a test type by the slowest side, if at least ``at_least`` trials are available."""
    if len(trials) >= at_least and (slowest := min(trial.throughput for trial in trials)) > 0:
        rates[kind] = float(f"{GATE_RATE_SHARE * slowest:.2g}")


def _missed_rate(trial: Trial) -> bool:
    return any(check.name == "achieved-rate" and check.outcome is Outcome.FAIL for check in trial.validity)


def _at_rate(cell: Cell, rate: float) -> Cell:
    """Return a cell with a different rate, or with a different factor of a scenario."""
    load = cell.load
    if isinstance(load, Scenario):
        return replace(cell, load=Scenario(factor=rate, connections=load.connections))
    return replace(cell, load=OpenLoop(rate=rate, connections=load.connections, queries=load.queries))


# ---- TechEmpower's order ---------------------------------------------------------------------------------------------


def _techempower_levels(group: ActiveGroup, process: Process, kind: str) -> Design:
    """Measure a test type: primer, warm-up, every level, and a witness at the headline level, with pauses."""
    profile = group.plan.profile
    loads = group.members[process].test_types[kind]
    # TechEmpower pauses for 5 s between trials of 15 s.
    pause = min(TECHEMPOWER_PAUSE_SECONDS, profile.duration_seconds / 3)
    cells = [Cell(process=process, test_type=kind, load=load) for load in loads]
    warmed = cells[-1] if loads[-1].queries is not None else cells[0]
    primer = (pause, min(PRIMER_CONNECTIONS, warmed.load.connections))
    for seconds, connections in (primer, (profile.duration_seconds, max(profile.levels.concurrency))):
        load = warmed.load
        if isinstance(load, ClosedLoop):
            load = load.model_copy(update={"connections": connections})
        result = yield Warm(cell=replace(warmed, load=load), seconds=seconds)
        if isinstance(result, Failed):
            if result.gone:
                group.remove(process)
            return
        if isinstance(result, OutOfTime):
            group.late.add(process)
            break
        yield Rest(seconds=pause)
    for cell in cells:
        if cell is not cells[0] and process not in group.late:
            yield Rest(seconds=TECHEMPOWER_SHORT_PAUSE * pause)
        yield from group.measure(cell, profile.duration_seconds, 0)
        if process not in group.members:
            return
        if group.is_headline(cell) and group.number == 0 and profile.interleaved.witness:
            yield from group.measure(cell, group.plan.witness_seconds, 0, purpose="witness")
