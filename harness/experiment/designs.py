"""Designs: in which order, how often and for how long cells are measured. A design knows no process, clock or file.

Each is a generator of steps that is sent what every step showed. ``carry_out`` (loop) does the steps; ``predicted``
answers them with what they are expected to take.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from harness.experiment.steps import (
    Cell,
    Design,
    Done,
    Failed,
    Late,
    Measure,
    Measured,
    Process,
    Rest,
    Shown,
    Start,
    Step,
    Stop,
    Verify,
    Warm,
)
from harness.experiment.warm_up import Route, warm_all
from harness.plan.plan import Candidate, Plan, groups, headline
from harness.records.models import Closed, Load, Open, Purpose, Scenario, Trial
from harness.stats.capacity import next_load

FAILED_LOADS = 2  # of one test type on one process, after which it is loaded no more
MOST_OF_CAPACITY = 0.95  # a rate for all that is above this share of a server's closed loop is left out
PRIMER_CONNECTIONS, TECHEMPOWER_SECONDS = 8, 5.0  # TechEmpower's primer; after it and the warm-up it waits as long
WARM_SHARE = 0.4  # of the time of a process that its warm-up may take at most
RATE_SHARE = 0.5  # of the design gate: of what the slowest side answers
LATER_LOOPS = 0.5  # share of a closed loop's time in later processes, where it sets no rate
FEW_REQUESTS, LONGEST_TRIAL = 50, 10.0  # of its trials at a rate: those of a slow service last longer

Steps = Generator[Step, Shown, None]


@dataclass
class Up:
    """The processes that are up together, their cells, and what was measured of them."""

    plan: Plan
    number: int  # of the process, of each implementation
    begin: float  # shares of the run's time
    until: float
    seed: int
    members: dict[Process, Candidate] = field(default_factory=dict)
    test_types: dict[Process, set[str]] = field(default_factory=dict)
    routes: dict[tuple[Process, str], Route] = field(default_factory=dict)  # warm-ups, by process and test type
    late: set[Process] = field(default_factory=set)  # there is no more time for these
    busy: set[Process] = field(default_factory=set)  # they use a CPU while others are loaded
    trials: list[Trial] = field(default_factory=list)
    failures: dict[tuple[Process, str], int] = field(default_factory=lambda: defaultdict(int))
    _told: set[tuple[Process, str]] = field(default_factory=set)  # whose warm-up stands in a trial

    def cells(self, of: Callable[[Sequence[Load]], Sequence[Load]]) -> list[Cell]:
        """Of all members that can be loaded, the loads that ``of`` chooses of a test type's."""
        return [
            Cell(process=process, test_type=kind, load=load)
            for process, candidate in self.members.items()
            if process not in self.late
            for kind, loads in candidate.test_types.items()
            if kind in self.test_types[process]
            for load in of(loads)
        ]

    def measured(self, cell: Cell, purpose: Purpose = "measure") -> list[Trial]:
        """The trials of a cell's process and test type of this purpose."""
        return [
            trial
            for trial in self.trials
            if (trial.implementation, trial.process) == (cell.process.implementation, cell.process.number)
            and (trial.test_type, trial.purpose) == (cell.test_type, purpose)
        ]

    def measure(
        self,
        cell: Cell,
        seconds: float,
        number: int,
        *,
        purpose: Purpose = "measure",
        share: float | None = None,
        must: bool = False,
    ) -> Generator[Step, Shown, Trial | None]:
        """One trial, unless its process or test type is out by now. ``must``: whatever the time."""
        process, kind = cell.process, cell.test_type
        if process not in self.members or kind not in self.test_types[process]:
            return None
        if process in self.late and not must:
            return None
        route = self.routes.get((process, kind))
        first = (process, kind) not in self._told
        shown = yield Measure(
            cell=cell,
            seconds=seconds,
            round=number,
            purpose=purpose,
            share=share,
            warm_up=route.result if route and first else None,
            steady=route.detector.steady if route else None,
            until=2.0 if must else self.until,
        )
        match shown:
            case Measured():
                self._told.add((process, kind))
                self.trials.append(shown.trial)
                self.busy |= shown.busy
                return shown.trial
            case Late():
                self.late.add(process)
            case Failed(gone=True):
                self.lose(process)
            case Failed():
                self.failures[process, kind] += 1
                if self.failures[process, kind] >= FAILED_LOADS:
                    self.test_types[process].discard(kind)
            case _:
                raise TypeError(f"{shown} answers no measurement")
        return None

    def lose(self, process: Process) -> None:
        """It is up no more."""
        del self.members[process], self.test_types[process]

    def stop_busy(self) -> Steps:
        """End those that disturb others, unless they are alone."""
        for process in sorted(self.busy & set(self.members)):
            if len(self.members) > 1:
                self.lose(process)
                yield Stop(process=process)


Visits = Callable[[Up], Steps]  # what is measured while processes are up


def interleaved(plan: Plan, seed: int) -> Design:
    """Every round visits each cell once, in random order; every implementation has several processes."""
    yield from _processes(plan, seed, _rounds)


def search(plan: Plan, seed: int) -> Design:
    """A closed loop, loads at given rates, then ever closer to the capacity at a latency goal; cells interleaved."""
    yield from _processes(plan, seed, _rates)


def techempower(plan: Plan, seed: int) -> Design:
    """TechEmpower's order: one server at a time, a test type after the other, its levels ascending, with its pauses."""
    for number in range(plan.profile.processes.maximum):
        for (candidate,) in groups(replace(plan, side_by_side=False), seed + number):
            up = Up(plan=plan, number=number, begin=0.0, until=1.0, seed=seed)
            yield from _start(up, [candidate])
            for process in list(up.members):
                for kind in [kind for kind in candidate.test_types if kind in up.test_types[process]]:
                    yield from _as_techempower(up, process, kind)
            yield from _stop(up)


def gate(plan: Plan, seed: int) -> Design:
    """A closed loop of each request, then all sides at one rate for each, in rounds: what a request costs there."""
    rates: dict[str, float] = {}
    yield from _processes(plan, seed, lambda up: _at_one_rate(up, rates), whole=True)


DESIGNS: dict[str, Callable[[Plan, int], Design]] = {
    "interleaved": interleaved,
    "search": search,
    "techempower": techempower,
    "gate": gate,
}


# ---- processes in turn ----------------------------------------------------------------------------------------------


def _processes(plan: Plan, seed: int, visits: Visits, *, whole: bool = False) -> Design:
    """Process after process of every implementation, those that fit side by side; until nothing is undecided.

    ``whole``: those that are up together are compared with one another alone, so that the loss of one ends it all.
    """
    rules = plan.profile.processes
    expected = [(c.implementation, kind) for c in plan.candidates for kind in c.test_types]
    waiting: Sequence[tuple[str, str]] = expected
    trials: list[Trial] = []
    alone: set[str] = set()  # they disturbed others: measured by themselves from then on
    out: set[str] = set()  # they did not come up
    for number in range(rules.maximum):
        together = [_due(group, waiting, out) for group in groups(plan, seed + number, frozenset(alone))]
        turns = [group for group in together if group]
        if not turns:
            return
        share = 1 / rules.maximum
        done, count = 0, sum(map(len, turns))
        for group in turns:
            begin = (number + done / count) * share
            done += len(group)
            up = Up(plan=plan, number=number, begin=begin, until=(number + done / count) * share, seed=seed)
            yield from _turn(up, group, visits, out, whole=whole)
            trials += up.trials
            if whole and not _common(up, group):
                return
            alone |= {process.implementation for process in up.busy}
        if number + 1 in rules.looks:
            waiting = plan.undecided(trials, expected)


def _due(group: Sequence[Candidate], waiting: Sequence[tuple[str, str]], out: set[str]) -> list[Candidate]:
    """The group with the test types that still wait."""
    chosen = []
    for candidate in group:
        kinds = {k: loads for k, loads in candidate.test_types.items() if (candidate.implementation, k) in waiting}
        if kinds and candidate.implementation not in out:
            chosen.append(Candidate(implementation=candidate.implementation, test_types=kinds, jit=candidate.jit))
    return chosen


def _turn(up: Up, group: Sequence[Candidate], visits: Visits, out: set[str], *, whole: bool) -> Steps:
    """Processes that are up together: start and warm all, visit their cells, stop all."""
    out |= yield from _start(up, group)
    if whole and not _common(up, group):
        yield from _stop(up)
        return
    cells = {cell: up.members[cell.process].jit for cell in up.cells(lambda loads: (headline(loads),))}
    routes, gone = yield from warm_all(
        cells,
        up.plan.profile,
        until=up.begin + WARM_SHARE * (up.until - up.begin),
        seed=f"{up.seed} warm {up.number}",
    )
    for process in gone:
        up.lose(process)
    up.routes = {(route.cell.process, route.cell.test_type): route for route in routes}
    yield from visits(up)
    yield from _stop(up)


def _start(up: Up, group: Sequence[Candidate]) -> Generator[Step, Shown, set[str]]:
    """Start and verify them one after the other; the names of those that did not come up."""
    failed: set[str] = set()
    for candidate in group:
        process = Process(candidate.implementation, up.number)
        if not isinstance((yield Start(process=process)), Done):
            failed.add(candidate.implementation)
            continue
        shown = yield Verify(process=process)
        if isinstance(shown, Done):
            up.members[process] = candidate
            up.test_types[process] = set(shown.test_types)
    return failed


def _common(up: Up, group: Sequence[Candidate]) -> set[str]:
    """The test types that can be loaded on every process of the group."""
    found = [up.test_types.get(Process(each.implementation, up.number), set()) for each in group]
    return set[str].intersection(*found)


def _stop(up: Up) -> Steps:
    for process in list(up.members):
        yield Stop(process=process)


# ---- what is visited ------------------------------------------------------------------------------------------------


def _rounds(up: Up) -> Steps:
    """Rounds: the windows of one table stand next to one another, since what slows a machine lasts seconds."""
    rules, plan, first = up.plan.profile.interleaved, up.plan, up.number == 0
    number = 0
    while rules.rounds is None or number < rules.rounds:
        if number == 0 or rules.every_load:
            chosen = up.cells(lambda loads: loads) if first or rules.every_load else up.cells(_headlines)
        else:
            chosen = up.cells(_headlines)
        if not chosen:
            return
        for cell in in_random_order(chosen, headline_of(up), f"{up.seed} {up.number} {number}"):
            if cell.process not in up.members:
                continue
            main = cell.load == headline_of(up)(cell)
            must = first and number == 0 and main
            yield from up.measure(cell, plan.seconds(cell.load, headline=main), number, must=must)
            if must and rules.witness and isinstance(cell.load, Closed):
                yield from up.measure(cell, plan.witness_seconds, number, purpose="witness")
        yield from up.stop_busy()
        number += 1


def _headlines(loads: Sequence[Load]) -> Sequence[Load]:
    return (headline(loads),)


def headline_of(up: Up) -> Callable[[Cell], Load]:
    """The headline load of a cell's test type."""
    return lambda cell: headline(up.members[cell.process].test_types[cell.test_type])


def in_random_order(cells: Sequence[Cell], main: Callable[[Cell], Load], seed: str) -> Iterator[Cell]:
    """Tables at random, each one's cells at random; a test type's headline table comes last of its own.

    The other loads, which are visited once, warm for the one that decides.
    """
    dice = random.Random(seed)
    tables: defaultdict[tuple[str, Load], list[Cell]] = defaultdict(list)
    for cell in cells:
        tables[cell.test_type, cell.load].append(cell)
    last = {(cell.test_type, main(cell)) for cell in cells}
    order = dice.sample(sorted(tables, key=str), len(tables))
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, (kind, _) in enumerate(order):
        places[kind].append(place)
    for own in places.values():
        of = sorted((order[place] for place in own), key=last.__contains__)
        for place, table in zip(own, of, strict=True):
            order[place] = table
    for table in order:
        yield from dice.sample(tables[table], len(tables[table]))


def _rates(up: Up) -> Steps:
    """The closed loop, then shares of it and rates for all in random order, then the search, cell by cell in rounds."""
    profile, dice = up.plan.profile, random.Random(f"{up.seed} rates {up.number}")
    cells = up.cells(_headlines)
    base: dict[Cell, float] = {}
    for cell in dice.sample(cells, len(cells)):
        trial = yield from up.measure(cell, up.plan.seconds(cell.load, headline=True), 0, must=up.number == 0)
        if isinstance(cell.load, Scenario):
            base[cell] = cell.load.factor
        elif trial and trial.rankable and trial.throughput > 0:
            base[cell] = trial.throughput
    number = 1
    given: list[tuple[Purpose, float]] = [("share", share) for share in profile.rates.shares]
    given += [("common", rate) for rate in profile.rates.common]
    for purpose, of in dice.sample(given, len(given)):
        for cell in dice.sample(list(base), len(base)):
            rate = of * base[cell] if purpose == "share" else of
            if isinstance(cell.load, Scenario) or (purpose == "common" and of > MOST_OF_CAPACITY * base[cell]):
                continue
            share = of if purpose == "share" else None
            at = _at(cell, rate)
            yield from up.measure(at, profile.rates.seconds, number, purpose=purpose, share=share)
        number += 1
    rules = profile.open_loop
    for _ in range(rules.search_loads):
        for cell in dice.sample(list(base), len(base)):
            arrivals = isinstance(cell.load, Scenario)
            seen = [t for t in up.measured(cell) if arrivals] + [
                t for purpose in ("share", "common", "search") for t in up.measured(cell, purpose)
            ]
            seconds = profile.orders.seconds if arrivals else profile.rates.seconds
            found = next_load(
                seen,
                profile.orders.goal if arrivals else rules.goal,
                start=base[cell],
                seconds=0.9 * seconds,  # arrivals are drawn: by chance there are fewer
            )
            if found is not None:
                yield from up.measure(_at(cell, found), seconds, number, purpose="search")
        number += 1


def _at_one_rate(up: Up, rates: dict[str, float]) -> Steps:
    """A closed loop, then rounds; ``rates`` by test type: half of what the slowest side answered in the first loop."""
    dice = random.Random(f"{up.seed} gate {up.number}")
    number, sides = 0, tuple(up.members.values())
    while (kinds := sorted(_common(up, sides))) and (cells := up.cells(_headlines)):
        closed = number == 0
        for kind in dice.sample(kinds, len(kinds)):
            table = [cell for cell in cells if cell.test_type == kind]
            answered = []
            for cell in dice.sample(table, len(table)):
                if closed:
                    seconds = up.plan.seconds(cell.load, headline=True) * (1.0 if up.number == 0 else LATER_LOOPS)
                    trial = yield from up.measure(cell, seconds, number, must=up.number == number == 0)
                    answered += [trial.throughput] if trial and trial.rankable else []
                elif kind in rates:
                    seconds = max(up.plan.profile.rates.seconds, min(FEW_REQUESTS / rates[kind], LONGEST_TRIAL))
                    yield from up.measure(_at(cell, rates[kind]), seconds, number)
            if kind not in rates and len(answered) == len(table) and min(answered) > 0:
                rates[kind] = float(f"{RATE_SHARE * min(answered):.2g}")
        number += 1


def _at(cell: Cell, rate: float) -> Cell:
    """The cell at another rate, or factor."""
    old = cell.load
    load: Load = (
        Scenario(factor=rate, connections=old.connections)
        if isinstance(old, Scenario)
        else Open(rate=rate, connections=old.connections, queries=old.queries)
    )
    return Cell(process=cell.process, test_type=cell.test_type, load=load)


def _as_techempower(up: Up, process: Process, kind: str) -> Steps:
    """Primer, warm-up, then every level of one test type, with pauses; a witness at the headline level."""
    profile = up.plan.profile
    loads = up.members[process].test_types[kind]
    pause = min(TECHEMPOWER_SECONDS, profile.duration_seconds / 3)  # a third of their 15 s
    cells = [Cell(process=process, test_type=kind, load=load) for load in loads]
    first = cells[-1] if loads[-1].queries is not None else cells[0]
    primer = (pause, min(PRIMER_CONNECTIONS, first.load.connections))
    for seconds, connections in (primer, (profile.duration_seconds, max(profile.levels.concurrency))):
        shown = yield Warm(cell=first, seconds=seconds, connections=connections)
        if isinstance(shown, Failed):
            if shown.gone:
                up.lose(process)
            return
        yield Rest(seconds=pause)
    for cell in cells:
        if cell is not cells[0]:
            yield Rest(seconds=0.4 * pause)
        yield from up.measure(cell, profile.duration_seconds, 0)
        if cell.load == headline(loads) and up.number == 0 and profile.interleaved.witness:
            yield from up.measure(cell, up.plan.witness_seconds, 0, purpose="witness")
        if process not in up.members:
            return
