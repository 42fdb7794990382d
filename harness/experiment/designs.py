"""Designs: in which order, how often and for how long cells are measured. A design knows no process, clock or file.

Each is a generator of steps that is sent what every step showed. ``loop.run_design`` has them done; ``predicted``
answers them with what they are expected to take.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace

from harness.experiment.steps import (
    Cell,
    Design,
    Done,
    Failed,
    Measure,
    OutOfTime,
    Process,
    Rest,
    Start,
    Step,
    StepResult,
    Stop,
    TrialResult,
    Warm,
)
from harness.experiment.warm_up import WarmUpTracker, warm_up_all
from harness.plan.plan import Candidate, Plan, concurrent_groups, headline_load
from harness.plugins import Extensions
from harness.records.loads import ClosedLoop, Load, OpenLoop, Scenario
from harness.records.outcome import Outcome
from harness.records.trial_record import Purpose, Trial
from harness.stats.capacity import next_load
from harness.stats.stopping import undecided

FAILED_LOADS = 2  # of one test type on one process, after which it is loaded no more
MOST_OF_CAPACITY = 0.95  # a rate for all that is above this share of a server's closed loop is left out
PRIMER_CONNECTIONS, TECHEMPOWER_SECONDS = 8, 5.0  # TechEmpower's primer; after it and the warm-up it waits as long
WARM_SHARE = 0.4  # of the time of a process that its warm-up may take at most
RATE_SHARE = 0.5  # of the design gate: of what the slowest side answers
LATER_LOOPS = 0.5  # share of a closed loop's time in later processes, where it sets no rate
FEW_REQUESTS, LONGEST_TRIAL = 50, 10.0  # of its trials at a rate: those of a slow service last longer


@dataclass
class ActiveGroup:
    """The processes that are up together, their cells, and what was measured of them."""

    plan: Plan
    number: int  # of the process, of each implementation
    begin: float  # shares of the run's time
    until: float
    seed: int
    members: dict[Process, Candidate] = field(default_factory=dict)
    test_types: dict[Process, set[str]] = field(default_factory=dict)
    routes: dict[tuple[Process, str], WarmUpTracker] = field(default_factory=dict)  # warm-ups, by process and test type
    late: set[Process] = field(default_factory=set)  # there is no more time for these
    busy: set[Process] = field(default_factory=set)  # they use a CPU while others are loaded
    trials: list[Trial] = field(default_factory=list)
    failures: dict[tuple[Process, str], int] = field(default_factory=lambda: defaultdict(int))
    _told: set[tuple[Process, str]] = field(default_factory=set)  # whose warm-up stands in a trial
    _tried: set[Cell] = field(default_factory=set)
    _skipped: dict[Cell, Purpose] = field(default_factory=dict)  # cells for which the time was up, in their order

    def cells(self, *, every_load: bool = False) -> list[Cell]:
        """Of all members that can be loaded: every load of their test types, or the headline one."""
        return [
            Cell(process=process, test_type=kind, load=load)
            for process, candidate in self.members.items()
            if process not in self.late
            for kind, loads in candidate.test_types.items()
            if kind in self.test_types[process]
            for load in (loads if every_load else (headline_load(loads),))
        ]

    def is_headline(self, cell: Cell) -> bool:
        """Whether the load is the one of its test type that gets most of the time."""
        return cell.load == headline_load(self.members[cell.process].test_types[cell.test_type])

    def measure(
        self,
        cell: Cell,
        seconds: float,
        number: int,
        *,
        purpose: Purpose = "measure",
        share: float | None = None,
        must: bool = False,
    ) -> Generator[Step, StepResult, Trial | None]:
        """One trial, unless its process or test type is out by now. ``must``: whatever the time."""
        process, kind = cell.process, cell.test_type
        if kind not in self.test_types.get(process, ()):
            return None
        if process in self.late and not must:
            self._skipped.setdefault(cell, purpose)  # a witness follows the cell itself
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
            steady=route.steady if route else None,
            until=2.0 if must else self.until,
        )
        if isinstance(shown, OutOfTime):
            self._skipped.setdefault(cell, purpose)
        else:
            self._tried.add(cell)
        match shown:
            case TrialResult():
                self._told.add((process, kind))
                self.trials.append(shown.trial)
                self.busy |= shown.busy
                return shown.trial
            case OutOfTime():
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
        """Remove a process that is no longer up."""
        del self.members[process], self.test_types[process]

    def stop(self, process: Process) -> Stop:
        """Return the step that stops a process, with the planned cells and given rates that its time did not reach."""
        planned = self.plan.candidate(process.implementation).test_types
        left = {cell: purpose for cell, purpose in self._skipped.items() if cell not in self._tried}
        unreached = (
            cell
            for cell, purpose in left.items()
            if purpose in ("share", "common") or (purpose == "measure" and cell.load in planned[cell.test_type])
        )
        return Stop(process=process, unreached=tuple(cell for cell in unreached if cell.process == process))

    def stop_busy(self) -> Design:
        """End those that disturb others, unless they are alone."""
        for process in sorted(self.busy & set(self.members)):
            if len(self.members) > 1:
                self.lose(process)
                yield self.stop(process)


Visits = Callable[[ActiveGroup], Design]  # what is measured while processes are up


def interleaved(plan: Plan, seed: int) -> Design:
    """Every round visits each cell once, in random order; every implementation has several processes."""
    return _processes(plan, seed, _rounds)


def search(plan: Plan, seed: int) -> Design:
    """A closed loop, loads at given rates, then ever closer to the capacity at a latency goal; cells interleaved."""
    return _processes(plan, seed, _rates)


def gate(plan: Plan, seed: int) -> Design:
    """A closed loop of each request, then all sides at one rate for each, in rounds: what a request costs there."""
    rates: dict[str, float] = {}
    return _processes(plan, seed, lambda up: _at_one_rate(up, rates), whole=True)


def techempower(plan: Plan, seed: int) -> Design:
    """TechEmpower's order: one server at a time, a test type after the other, its levels ascending, with its pauses."""
    for number in range(plan.profile.processes.maximum):
        for (candidate,) in concurrent_groups(replace(plan, side_by_side=False), seed + number):
            up = ActiveGroup(plan=plan, number=number, begin=0.0, until=1.0, seed=seed)
            yield from _start(up, [candidate])
            for process in list(up.members):
                for kind in candidate.test_types:
                    if process in up.members and kind in up.test_types[process]:
                        yield from _as_techempower(up, process, kind)
            yield from _stop(up)


DESIGNS: dict[str, Callable[[Plan, int], Design]] = {
    "interleaved": interleaved,
    "search": search,
    "techempower": techempower,
    "gate": gate,
    **Extensions[Callable[[Plan, int], Design]]("designs").load_all(),
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
    share = 1 / rules.maximum  # of the time
    for number in range(rules.maximum):
        together = [_due(group, waiting, out) for group in concurrent_groups(plan, seed + number, frozenset(alone))]
        done, count = 0, sum(map(len, together))
        if not count:
            return
        for group in filter(None, together):
            begin = (number + done / count) * share
            done += len(group)
            up = ActiveGroup(plan=plan, number=number, begin=begin, until=(number + done / count) * share, seed=seed)
            out |= yield from _start(up, group)
            if not whole or _common(up, group):
                yield from _warm(up, _common(up, group) if whole else None)
                yield from visits(up)
            yield from _stop(up)
            trials += up.trials
            if whole and not _common(up, group):
                return
            alone |= {process.implementation for process in up.busy}
        if number + 1 in rules.looks:
            waiting = undecided(trials, expected, rules)


def _due(group: Sequence[Candidate], waiting: Sequence[tuple[str, str]], out: set[str]) -> list[Candidate]:
    """The group with the test types that still wait."""
    chosen = []
    for candidate in group:
        kinds = {k: loads for k, loads in candidate.test_types.items() if (candidate.implementation, k) in waiting}
        if kinds and candidate.implementation not in out:
            chosen.append(replace(candidate, test_types=kinds))
    return chosen


def _warm(up: ActiveGroup, kinds: Set[str] | None) -> Design:
    """Warm everything that is up, test type by test type; ``kinds``: these test types alone."""
    chosen = (cell for cell in up.cells() if kinds is None or cell.test_type in kinds)
    cells = {cell: up.members[cell.process].jit for cell in chosen}
    until = up.begin + WARM_SHARE * (up.until - up.begin)
    routes, gone = yield from warm_up_all(cells, up.plan.profile, until=until, seed=f"{up.seed} warm {up.number}")
    for process in gone:
        up.lose(process)
    up.routes = {(route.cell.process, route.cell.test_type): route for route in routes}


def _start(up: ActiveGroup, group: Sequence[Candidate]) -> Generator[Step, StepResult, set[str]]:
    """Start and verify them one after the other; the names of those that did not come up."""
    failed: set[str] = set()
    for candidate in group:
        process = Process(candidate.implementation, up.number)
        shown = yield Start(process=process)
        if isinstance(shown, Done):
            up.members[process] = candidate
            up.test_types[process] = set(shown.test_types)
        elif shown == Failed():
            failed.add(candidate.implementation)
    return failed


def _common(up: ActiveGroup, group: Sequence[Candidate]) -> set[str]:
    """The test types that can be loaded on every process of the group."""
    found = [up.test_types.get(Process(each.implementation, up.number), set()) for each in group]
    return set[str].intersection(*found)


def _stop(up: ActiveGroup) -> Design:
    for process in list(up.members):
        yield up.stop(process)


# ---- what is visited ------------------------------------------------------------------------------------------------


def _rounds(up: ActiveGroup) -> Design:
    """Rounds: the windows of one table stand next to one another, since what slows a machine lasts seconds."""
    rules, plan, number = up.plan.profile.interleaved, up.plan, 0
    while rules.rounds is None or number < rules.rounds:
        first = up.number == number == 0
        cells = up.cells(every_load=rules.every_load or first)
        if not cells:
            return
        for cell in in_random_order(cells, up.is_headline, f"{up.seed} {up.number} {number}"):
            if cell.process not in up.members:
                continue
            main = up.is_headline(cell)
            yield from up.measure(cell, plan.seconds(cell.load, headline=main), number, must=first and main)
            if first and main and rules.witness and isinstance(cell.load, ClosedLoop):
                yield from up.measure(cell, plan.witness_seconds, number, purpose="witness")
        yield from up.stop_busy()
        number += 1


def in_random_order(cells: Sequence[Cell], is_headline: Callable[[Cell], bool], seed: str) -> Iterator[Cell]:
    """Tables at random, each one's cells at random; a test type's headline table comes last of its own.

    The other loads, which are visited once, warm for the one that decides.
    """
    dice = random.Random(seed)
    tables: defaultdict[tuple[str, Load], list[Cell]] = defaultdict(list)
    for cell in cells:
        tables[cell.test_type, cell.load].append(cell)
    last = {(cell.test_type, cell.load) for cell in cells if is_headline(cell)}
    order = dice.sample(sorted(tables, key=str), len(tables))
    by_type = {kind: iter(sorted((t for t in order if t[0] == kind), key=last.__contains__)) for kind, _ in order}
    for kind, _ in order:  # each place stays with its test type
        table = tables[next(by_type[kind])]
        yield from dice.sample(table, len(table))


def _rates(up: ActiveGroup) -> Design:
    """The closed loop, then shares of it and rates for all in random order, then the search, cell by cell in rounds."""
    profile, dice = up.plan.profile, random.Random(f"{up.seed} rates {up.number}")
    cells, rules = up.cells(), profile.open_loop
    base: dict[Cell, float] = {}
    for cell in dice.sample(cells, len(cells)):
        trial = yield from up.measure(cell, up.plan.seconds(cell.load, headline=True), 0, must=up.number == 0)
        if isinstance(cell.load, Scenario):
            base[cell] = cell.load.factor
        elif trial and trial.rankable and trial.throughput > 0:
            base[cell] = trial.throughput
    given: list[tuple[Purpose, float]] = [("share", share) for share in profile.rates.shares]
    given += [("common", rate) for rate in profile.rates.common]
    for number, (purpose, of) in enumerate(dice.sample(given, len(given)), 1):
        for cell in dice.sample(list(base), len(base)):
            share = of if purpose == "share" else None
            if isinstance(cell.load, Scenario) or (share is None and of > MOST_OF_CAPACITY * base[cell]):
                continue
            at = _at(cell, of * base[cell] if share else of)
            yield from up.measure(at, profile.rates.seconds, number, purpose=purpose, share=share)
    for number in range(len(given) + 1, len(given) + 1 + rules.search_loads):
        for cell in dice.sample(list(base), len(base)):
            arrivals = isinstance(cell.load, Scenario)
            seconds = profile.orders.seconds if arrivals else profile.rates.seconds
            found = next_load(
                [
                    trial
                    for trial in up.trials
                    if (trial.implementation, trial.process) == cell.process
                    and trial.test_type == cell.test_type
                    and (arrivals or trial.purpose != "measure")
                ],
                profile.orders.goal if arrivals else rules.goal,
                start=base[cell],
                seconds=0.9 * seconds,  # arrivals are drawn: by chance there are fewer
            )
            if found is not None:
                yield from up.measure(_at(cell, found), seconds, number, purpose="search")


def _at_one_rate(up: ActiveGroup, rates: dict[str, float]) -> Design:
    """A closed loop, then rounds; ``rates`` by test type: half of what the slowest side answered in the first loop.

    After a round in which more than one side fell short of the rate it is half of what these answered: a closed loop
    gives a server several requests at a time, which cost it less.
    """
    dice = random.Random(f"{up.seed} gate {up.number}")
    number, sides = 0, tuple(up.members.values())
    while cells := up.cells():
        closed = number == 0
        kinds = [kind for kind in sorted(_common(up, sides)) if closed or kind in rates]
        if not kinds:
            return
        for kind in dice.sample(kinds, len(kinds)):
            table = [cell for cell in cells if cell.test_type == kind]
            if closed:
                seconds = up.plan.seconds(table[0].load, headline=True) * (1.0 if up.number == 0 else LATER_LOOPS)
            else:
                table = [_at(cell, rates[kind]) for cell in table]
                seconds = max(up.plan.profile.rates.seconds, min(FEW_REQUESTS / rates[kind], LONGEST_TRIAL))
            found: list[Trial] = []
            for cell in dice.sample(table, len(table)):
                trial = yield from up.measure(cell, seconds, number, must=up.number == number == 0)
                found += [trial] if trial else []
            if closed:
                telling = [trial for trial in found if trial.rankable]
                tell = kind not in rates and len(telling) == len(table)
            else:
                telling = [trial for trial in found if _fell_short(trial)]
                tell = len(telling) > 1
            if tell and (slowest := min(trial.throughput for trial in telling)) > 0:
                rates[kind] = float(f"{RATE_SHARE * slowest:.2g}")
        number += 1


def _fell_short(trial: Trial) -> bool:
    return any(check.name == "achieved-rate" and check.outcome is Outcome.FAIL for check in trial.validity)


def _at(cell: Cell, rate: float) -> Cell:
    """The cell at another rate, or factor."""
    old = cell.load
    if isinstance(old, Scenario):
        return replace(cell, load=Scenario(factor=rate, connections=old.connections))
    return replace(cell, load=OpenLoop(rate=rate, connections=old.connections, queries=old.queries))


def _as_techempower(up: ActiveGroup, process: Process, kind: str) -> Design:
    """Primer, warm-up, then every level of one test type, with pauses; a witness at the headline level."""
    profile = up.plan.profile
    loads = up.members[process].test_types[kind]
    pause = min(TECHEMPOWER_SECONDS, profile.duration_seconds / 3)  # a third of their 15 s
    cells = [Cell(process=process, test_type=kind, load=load) for load in loads]
    first = cells[-1] if loads[-1].queries is not None else cells[0]
    primer = (pause, min(PRIMER_CONNECTIONS, first.load.connections))
    for seconds, connections in (primer, (profile.duration_seconds, max(profile.levels.concurrency))):
        load = first.load
        if isinstance(load, ClosedLoop):
            load = load.model_copy(update={"connections": connections})
        shown = yield Warm(cell=replace(first, load=load), seconds=seconds)
        if isinstance(shown, Failed):
            if shown.gone:
                up.lose(process)
            return
        if isinstance(shown, OutOfTime):
            up.late.add(process)
            break
        yield Rest(seconds=pause)
    for cell in cells:
        if cell is not cells[0] and process not in up.late:
            yield Rest(seconds=0.4 * pause)
        yield from up.measure(cell, profile.duration_seconds, 0)
        if process not in up.members:
            return
        if up.is_headline(cell) and up.number == 0 and profile.interleaved.witness:
            yield from up.measure(cell, up.plan.witness_seconds, 0, purpose="witness")
