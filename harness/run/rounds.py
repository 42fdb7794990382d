"""Servers stay alive side by side and are measured in turns: rounds of short windows in seeded random order.

A group is as many implementations as fit into memory. Each is started, verified and warmed once a process; then every
round measures the headline level of each test type once, and the first one before it the other levels. Some rounds
later each process is replaced by a fresh one, a few at a time. All of it ends within the time asked for.
"""

import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import DatabaseDiedError, MachineLostError, StoreError
from harness.plan import rounds as planning
from harness.plan.plan import Plan, PlannedReplicate
from harness.plan.profile import Rounds
from harness.plan.rounds import WINDOW_OVERHEAD_SECONDS, Cell, Shape, headline_cells, other_cells
from harness.records import store
from harness.records.models import Level, RunInfo, Sample
from harness.run import vanishing
from harness.run.allocation import Allocate, Allocation, TestCell, alike, where_it_decides
from harness.run.blocks import Done
from harness.run.fleet import Fleet
from harness.run.replicate import DATABASE_DEATHS
from harness.run.running import Run
from harness.stats.ranking import rank

CLOSING_SECONDS = 0.6  # of the last checks, a test type of a process; until measured
STOP_SECONDS = 1.5  # a process
RANKING_SECONDS = 30.0  # between two looks at the ranking, for the dashboard
ALLOCATION_SECONDS = 20.0  # between two looks at where windows decide
KNOWN_RUNS = 5  # the latest ones tell how much memory servers take


@dataclass
class Timekeeper:
    """What things take, learned on the way: windows beyond their own seconds, and the end of a process."""

    run: Run
    deadline: float
    overhead: float = WINDOW_OVERHEAD_SECONDS

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - self.run.testbed.clock.monotonic()

    def window(self, seconds: float) -> float:
        """What a window of so many seconds takes."""
        return seconds + self.overhead

    def learn(self, seconds: float, took: float) -> None:
        """A window of so many seconds took this; the newest counts for a tenth."""
        self.overhead += 0.1 * (max(0.0, took - seconds) - self.overhead)


@dataclass
class Schedule:
    """The windows of the rounds to come, in seeded random order."""

    seed: int
    candidates: Sequence[PlannedReplicate]
    rules: Rounds

    def seconds(self, cell: Cell) -> float:
        """The window's length."""
        alike = self._is_headline(cell) or self.rules.every_level
        return self.rules.headline_seconds if alike else self.rules.other_seconds

    def _is_headline(self, cell: Cell) -> bool:
        planned = next(p for p in self.candidates if p.implementation == cell.implementation)
        return planning.headline(planned.test_types[cell.test_type]) == cell.level

    def laps(self, number: int, wanted: Sequence[TestCell], others: Sequence[Cell]) -> list[list[Cell]]:
        """The headline cells that are wanted, as often as they are, and these of other levels, lap after lap.

        A lap has a cell once at most, and is one round of the samples. The windows of one table stand next to one
        another in it: what slows a machine down lasts seconds (docs/method.md), and takes its part of all of them.
        """
        most = max(Counter(wanted).values(), default=0)
        again = [self._with_company(self._headlines(wanted, times), wanted) for times in range(2, most + 1)]
        return [
            self._lap(f"{number}", self._headlines(wanted, 1), others),
            *(self._lap(f"{number}/{place}", cells, ()) for place, cells in enumerate(again, 2)),
        ]

    def _headlines(self, wanted: Sequence[TestCell], times: int) -> list[Cell]:
        """Those that are wanted so often."""
        counts = Counter(wanted)
        return [
            cell
            for planned in self.candidates
            for cell in headline_cells(planned)
            if counts[cell.implementation, cell.test_type] >= times
        ]

    def _with_company(self, cells: Sequence[Cell], wanted: Sequence[TestCell]) -> list[Cell]:
        """Of a table with a single one of these the next most wanted, too: alone in its round it would say nothing."""
        counts, by_type = Counter(wanted), Counter(cell.test_type for cell in cells)
        company = list(cells)
        for kind in (kind for kind, count in by_type.items() if count == 1):
            rest = [
                cell
                for planned in self.candidates
                for cell in headline_cells(planned)
                if cell.test_type == kind and cell not in cells and counts[cell.implementation, kind]
            ]
            company += sorted(rest, key=lambda cell: (-counts[cell.implementation, kind], cell.implementation))[:1]
        return company

    def _lap(self, salt: str, headlines: Sequence[Cell], others: Sequence[Cell]) -> list[Cell]:
        """Tables in seeded random order, and the cells of each in one of its own."""
        dice = random.Random(f"{self.seed}/{salt}")
        tables: defaultdict[tuple[str, Level], list[Cell]] = defaultdict(list)
        for cell in (*others, *headlines):
            tables[cell.test_type, cell.level].append(cell)
        order = dice.sample(sorted(tables, key=str), len(tables))
        if not self.rules.every_level:
            order = self._headlines_last(order, {(cell.test_type, cell.level) for cell in headlines})
        return [cell for table in order for cell in dice.sample(tables[table], len(tables[table]))]

    @staticmethod
    def _headlines_last(
        order: Sequence[tuple[str, Level]], headlines: Collection[tuple[str, Level]]
    ) -> list[tuple[str, Level]]:
        """In the same places, each test type's other levels before its headline one.

        They are measured once, while a process is young, and warm for the level that decides.
        """
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, (kind, _) in enumerate(order):
            places[kind].append(place)
        ordered = list(order)
        for own in places.values():
            for place, table in zip(
                own, sorted((order[place] for place in own), key=headlines.__contains__), strict=True
            ):
                ordered[place] = table
        return ordered


def measure(run: Run, plan: Plan, info: RunInfo, done: Done, allocate: Allocate = where_it_decides) -> RunInfo:
    """Measure every group within the profile's time; returns run.json's record with what was done in each round."""
    rules = run.testbed.profile.rounds
    assert rules is not None  # noqa: S101 - the workflow chooses by it
    candidates = [p for p in plan.blocks[0] if _finished(done, p.implementation) < rules.processes]
    if not candidates:
        return info
    return _Measurement(run, plan, info, done, rules, candidates, alike if rules.every_level else allocate).measure()


def _finished(done: Done, name: str) -> int:
    """Processes of an implementation that an interrupted run had finished: those from 0 on without a gap."""
    numbers = {process for implementation, process in done if implementation == name}
    return next(number for number in range(len(numbers) + 1) if number not in numbers)


class _Measurement:
    """One run's rounds."""

    def __init__(
        self,
        run: Run,
        plan: Plan,
        info: RunInfo,
        done: Done,
        rules: Rounds,
        candidates: Sequence[PlannedReplicate],
        allocate: Allocate,
    ) -> None:
        self._allocate = allocate
        self._run, self._seed, self._info, self._rules = run, plan.seed, info, rules
        self._candidates = list(candidates)
        self._fleet = Fleet(run)
        for planned in candidates:
            self._fleet.skip(planned.implementation, _finished(done, planned.implementation))
        self._measured: set[Cell] = set()  # of which the run has a sample, as far as it goes on with it
        kept = self._recall() if done else []
        self._number = max((sample.round or 0 for sample in kept), default=-1) + 1  # of the next round
        share = 1 - sum(_finished(done, p.implementation) for p in plan.blocks[0]) / (
            rules.processes * len(plan.blocks[0])
        )
        self._clock = run.testbed.clock
        self._ranked_at = self._allocated_at = self._clock.monotonic()
        self._time = Timekeeper(run, self._clock.monotonic() + rules.time_seconds * share)
        self._schedule = Schedule(self._seed, self._candidates, rules)
        self._processes = max(rules.processes - _finished(done, p.implementation) for p in candidates)  # still to run
        self._alone: set[str] = set()  # those that use a CPU while they should be idle, and those that did not fit

    def _recall(self) -> Sequence[Sample]:
        """The samples that the run has: which cells it need not measure on other levels, or audit, again."""
        samples = store.read(self._run.store.folder).samples
        self._measured = {Cell(implementation=s.implementation, test_type=s.test_type, level=s.level) for s in samples}
        self._fleet.audited = {(s.implementation, s.test_type) for s in samples if s.audited}
        return samples

    def measure(self) -> RunInfo:
        """Group after group; whoever disturbs a group comes again by itself."""
        run, rules = self._run, self._rules
        waiting = planning.groups(
            self._candidates,
            known_sizes(run.store.folder.parent),
            rules.memory_share * run.free_memory(),
            self._seed,
            side_by_side=run.testbed.runtime.side_by_side and run.testbed.database.divisible,
        )
        self._visits(waiting)
        while self._alone:
            later = [[p] for p in self._candidates if p.implementation in self._alone]
            self._alone.clear()
            self._visits(later, may_separate=False)
        expected = {(planned.implementation, kind): 0 for planned in self._candidates for kind in planned.test_types}
        self._allocation(expected, rules.time_seconds)
        run.store.write_info(self._info)
        return self._info

    def _visits(self, groups: Sequence[Sequence[PlannedReplicate]], *, may_separate: bool = True) -> None:
        """One group keeps its servers up to the end; several take turns, once for each process.

        The first turn of each is taken whatever the time, a further one only where it has time to measure.
        """
        if len(groups) == 1:
            self._turn(groups[0], self._time.left, self._processes, may_separate=may_separate)
            return
        turns = [group for _ in range(self._processes) for group in groups]
        left = float(sum(len(group) for group in turns))
        for number, group in enumerate(turns):
            seconds = self._time.left * len(group) / left
            left -= len(group)
            if number < len(groups) or seconds >= self._least_turn(group):
                self._turn(group, seconds, 1, may_separate=may_separate)

    def _least_turn(self, group: Sequence[PlannedReplicate]) -> float:
        """Seconds of starting these again as before, of measuring each headline level once, and of the end."""
        starting = sum(self._fleet.setup_seconds.get(planned.implementation, 0.0) for planned in group)
        test_types = sum(len(planned.test_types) for planned in group)
        windows = 2 * test_types * self._time.window(self._rules.headline_seconds)  # as ``_least_seconds``
        return starting + windows + len(group) * STOP_SECONDS + test_types * CLOSING_SECONDS

    def _turn(self, group: Sequence[PlannedReplicate], seconds: float, processes: int, *, may_separate: bool) -> None:
        """A group to its end, and in the time that is left again where PostgreSQL ended in it or a machine vanished."""
        until = self._clock.monotonic() + seconds
        for again in reversed(range(DATABASE_DEATHS + 1)):
            try:
                with self._fleet.alive():
                    self._group(group, until - self._clock.monotonic(), processes, may_separate=may_separate)
            except DatabaseDiedError as error:
                if not again:
                    raise
                lost = self._fleet.forgive()
                store.set_aside(self._run.store.folder, lost)
                self._recall()
                names = ", ".join(sorted(name for name, _ in lost))
                self._run.progress.problem(f"{error}; what it took is measured again: {names}")
                self._run.testbed.database.restore()
            except MachineLostError as error:
                vanishing.await_return(self._run, self._fleet.forgive(), error)
                self._recall()
                if not again:
                    raise
                self._run.testbed.database.restore()
            else:
                return

    def _group(self, group: Sequence[PlannedReplicate], seconds: float, processes: int, *, may_separate: bool) -> None:
        """Start and warm all members, then round after round until the time of the group is over."""
        began = self._clock.monotonic()
        until = began + seconds
        by_name = {planned.implementation: planned for planned in group}
        self._start_all(group, may_separate=may_separate)
        self._warm(by_name, self._rules.warm_share * seconds)
        until = max(self._leave_time_for_those_alone(until), self._clock.monotonic() + self._least_seconds(group))
        shape = self._shape(group, began, until, processes)
        replaced = planning.turnover(shape)
        fresh = set(self._fleet.members)
        number = 0
        while self._fits_a_window(until):
            if number and number in replaced:
                fresh |= self._replace([by_name[name] for name in replaced[number]], until)
            if not self._round(by_name, fresh, until, shape, number):
                break  # nothing of it could be measured: nothing will be
            fresh.clear()
            if may_separate and self._separate():
                until = self._leave_time_for_those_alone(until)
            number += 1

    def _least_seconds(self, group: Sequence[PlannedReplicate]) -> float:
        """A round on all levels and one more on the headline levels: measured even where starting took all the time."""
        alive = [planned for planned in group if planned.implementation in self._fleet.members]
        headlines, others = self._windows(alive)
        return 2 * headlines + others + self._closing()

    def _windows(self, alive: Sequence[PlannedReplicate]) -> tuple[float, float]:
        """Seconds that a round takes of these, and what the other levels take where not every round has them."""
        rules = self._rules
        cells, others = (sum(map(len, map(each, alive))) for each in (headline_cells, other_cells))
        if rules.every_level:
            return (cells + others) * self._time.window(rules.headline_seconds), 0.0
        return cells * self._time.window(rules.headline_seconds), others * self._time.window(rules.other_seconds)

    def _start_all(self, group: Sequence[PlannedReplicate], *, may_separate: bool) -> None:
        """One after another, while memory and connections last; the others come later by themselves."""
        total = self._run.free_memory()
        for planned in group:
            if may_separate and self._fleet.members and not self._has_room(total):
                self._alone.add(planned.implementation)
                continue
            self._fleet.start(planned)

    def _warm(self, planned: Mapping[str, PlannedReplicate], seconds: float) -> None:
        """Warm the live ones of these; who dies of it has a second process, if it is worth one."""
        rules, up = self._rules, [name for name in planned if name in self._fleet.members]
        self._fleet.warm(up, seconds=seconds, burst_seconds=rules.burst_seconds)
        fallen = [name for name in up if name not in self._fleet.members and self._fleet.may_restart(name)]
        again = [name for name in fallen if self._fleet.start(planned[name])]
        self._fleet.warm(again, seconds=seconds * len(again) / max(1, len(up)), burst_seconds=rules.burst_seconds)

    def _has_room(self, total: float) -> bool:
        """Whether there is room for one more like the largest so far, in memory and in PostgreSQL's connections."""
        free = self._run.free_memory() - (1 - self._rules.memory_share) * total
        sizes = [m.replicate.server.meter.read().rss or 0.0 for m in self._fleet.members.values()]
        connections = self._run.testbed.database.connections_free()
        used = max((m.connections for m in self._fleet.members.values()), default=0)
        return free > max(sizes, default=0.0) and (connections is None or connections >= used)

    def _shape(self, group: Sequence[PlannedReplicate], began: float, until: float, processes: int) -> Shape:
        rules = self._rules.model_copy(update={"processes": processes})
        alive = [planned for planned in group if planned.implementation in self._fleet.members]
        ending = self._closing() / max(1, len(alive))
        setups = self._fleet.setup_seconds
        headlines, others = self._windows(alive)
        return planning.shape(
            rules,
            total_seconds=until - began,
            seconds=until - self._clock.monotonic() - self._closing(),
            setup_seconds={p.implementation: setups.get(p.implementation, 0.0) + ending for p in alive},
            headline_seconds=headlines,
            other_seconds=others,
            seed=self._seed,
        )

    def _closing(self) -> float:
        """What the last checks of all live processes take."""
        return sum(STOP_SECONDS + CLOSING_SECONDS * len(member.targets) for member in self._fleet.members.values())

    def _fits_a_window(self, until: float) -> bool:
        left = until - self._clock.monotonic() - self._closing()
        return left >= self._time.window(self._rules.headline_seconds)

    def _replace(self, due: Sequence[PlannedReplicate], until: float) -> set[str]:
        """Fresh processes for these, if there is time to measure with them; their names."""
        fresh, rules = set(), self._rules
        for planned in due:
            name = planned.implementation
            needs = self._fleet.setup_seconds.get(name, 0.0) + len(planned.test_types) * self._time.window(
                self._rules.headline_seconds
            )
            if name not in self._fleet.members or until - self._clock.monotonic() - self._closing() < needs:
                continue
            self._fleet.stop(name)
            if self._fleet.start(planned):
                fresh.add(name)
        self._warm(
            {planned.implementation: planned for planned in due if planned.implementation in fresh},
            rules.warm_share * (until - self._clock.monotonic()),
        )
        return fresh & set(self._fleet.members)

    def _round(
        self, by_name: Mapping[str, PlannedReplicate], fresh: set[str], until: float, shape: Shape, number: int
    ) -> int:
        """One round, as far as the time goes; the number of its samples.

        A server that dies in it is started again, and its cells are lost.
        """
        others = [
            cell
            for name, planned in by_name.items()
            if name in self._fleet.members
            for cell in other_cells(planned)
            if cell.test_type in self._fleet.members[name].targets
            if cell not in self._measured or self._rules.every_level or (shape.sweeps_again and name in fresh)
        ]
        first, *further = self._schedule.laps(self._number, self._wanted(fresh, until), others)
        measured = self._lap(by_name, first, until)
        for lap in further:
            if self._fits_a_window(until):
                measured += self._lap(by_name, lap, until)
        self._run.progress.round_done(number + 1, shape.rounds)
        self._rank()
        return measured

    def _lap(self, by_name: Mapping[str, PlannedReplicate], cells: Sequence[Cell], until: float) -> int:
        """These windows under a number of their own, as far as the time goes; how many there were."""
        words = tuple(cell.label for cell in cells)
        self._info = self._info.model_copy(update={"schedule": (*self._info.schedule, words)})
        self._run.store.write_info(self._info)
        measured = 0
        for cell in cells:
            if not self._fits_a_window(until):
                break
            seconds = self._schedule.seconds(cell)
            began = self._clock.monotonic()
            if how := self._run.testbed.database.obituary():
                raise DatabaseDiedError(how)
            if self._fleet.measure(cell, self._number, seconds):
                self._time.learn(seconds, self._clock.monotonic() - began)
                self._measured.add(cell)
                measured += 1
            elif cell.implementation not in self._fleet.members and self._fleet.may_restart(cell.implementation):
                self._fleet.start(by_name[cell.implementation])
                left = until - self._clock.monotonic()
                self._warm({cell.implementation: by_name[cell.implementation]}, self._rules.warm_share * left)
        self._number += 1
        return measured

    def _wanted(self, fresh: set[str], until: float) -> Sequence[TestCell]:
        """All live cells in a round with fresh processes, or when that was asked lately; else where windows decide."""
        live = {(name, kind): 0 for name, member in self._fleet.members.items() for kind in member.targets}
        recently = self._clock.monotonic() - self._allocated_at < ALLOCATION_SECONDS
        if fresh or recently or self._allocate is alike:
            return list(live)
        found = self._allocation(live, until - self._clock.monotonic() - self._closing()).cells
        return [*found, *(cell for cell in self._fleet.owing() if cell not in found)]

    def _allocation(self, live: dict[TestCell, int], seconds: float) -> Allocation:
        """Where so many seconds would go, by what was measured so far."""
        self._allocated_at = self._clock.monotonic()
        records = store.read(self._run.store.folder)
        for sample in records.samples:
            cell = (sample.implementation, sample.test_type)
            if cell in live and planning.headline(self._info.levels[sample.test_type]) == sample.level:
                live[cell] += 1
        found = self._allocate(
            self._info,
            records.samples,
            live,
            window_seconds=self._time.window(self._rules.headline_seconds),
            remaining_seconds=seconds,
            seed=self._seed + self._number,
        )
        self._info = self._info.model_copy(update={"outlook": found.text})
        return found

    def _rank(self) -> None:
        """For the dashboard, now and then: it takes a CPU from whoever is being measured next."""
        if self._clock.monotonic() - self._ranked_at < RANKING_SECONDS:
            return
        records = store.read(self._run.store.folder)
        ranking = rank(self._info, records.samples, records.replicates, records.verdicts)
        self._run.store.write_text("ranking.json", ranking.recorded())
        self._ranked_at = self._clock.monotonic()

    def _leave_time_for_those_alone(self, until: float) -> float:
        """An equal share of what is left for each that will be measured by itself."""
        now, alive = self._clock.monotonic(), len(self._fleet.members)
        return now + (until - now) * alive / max(1, alive + len(self._alone))

    def _separate(self) -> bool:
        """Whoever goes on using a CPU while others are measured leaves the group, and is measured by itself."""
        before = len(self._alone)
        busy = [name for name, member in self._fleet.members.items() if member.disturbs(self._rules.idle_cpu_share)]
        for name in busy:
            member = self._fleet.members[name]
            if len(self._fleet.members) > 1:
                self._run.progress.note(f"{name} uses {member.idle_share:.2%} of a CPU while idle: run alone")
                self._fleet.stop(name)
                self._alone.add(name)
        return len(self._alone) > before


def known_sizes(results: Path) -> dict[str, float]:
    """Resident bytes of implementations as the latest runs of a results folder measured them."""
    sizes: dict[str, float] = {}
    for folder in store.runs(results)[-KNOWN_RUNS:]:
        with contextlib.suppress(StoreError):  # what cannot be read tells nothing
            for sample in store.read(folder).samples:
                if sample.server.rss_peak:
                    sizes[sample.implementation] = max(sizes.get(sample.implementation, 0.0), sample.server.rss_peak)
    return sizes
