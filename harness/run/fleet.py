"""Servers that are alive side by side: each verified, all warmed, measured in turns, and replaced when one dies."""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from harness.errors import ENDS_THE_RUN, DatabaseDiedError, LoadError, MachineLostError, ServerDiedError
from harness.measure import sweep
from harness.measure.steady import SteadyDetector
from harness.measure.testbed import Target
from harness.plan.plan import PlannedReplicate
from harness.plan.profile import WarmUpRule
from harness.plan.rounds import Cell, headline
from harness.records.models import Sample
from harness.run import vanishing, warming
from harness.run.member import Member
from harness.run.replicate import RECORDED, Replicate, recorded
from harness.run.running import Run
from harness.run.warming import Warmth

AUDITED_WINDOWS = 2  # of a process, among which the audit of a test type is drawn
AUDITED_AGAIN = 0.5  # of the test types of a further process: a run may have no time for one
AUDITED_LATER = 0.03  # of all other windows at the headline level, so that none is safe
DEATHS = 2  # processes of one implementation that may die before it is left out
FAILED_LOADS = 2  # of one test type on one process
SETTLING_SECONDS = 3.0  # after its own load, in which compilers and collectors may still finish what it left


class Fleet:
    """Context manager around the live processes of a group; leaving it ends all of them with their last checks."""

    def __init__(self, run: Run) -> None:
        self.members: dict[str, Member] = {}
        self.setup_seconds: dict[str, float] = {}  # of the latest process of each implementation
        self._run = run
        self._next: dict[str, int] = defaultdict(int)  # number of an implementation's next process
        self._deaths: dict[str, int] = defaultdict(int)
        self.lost: set[tuple[str, int]] = set()  # replicates that PostgreSQL's or a machine's end took
        self.audited: set[tuple[str, str]] = set()  # cells with an audit among the samples of the run

    def skip(self, name: str, processes: int) -> None:
        """Processes that an interrupted run has finished keep their numbers."""
        self._next[name] = max(self._next[name], processes)

    @contextmanager
    def alive(self) -> Iterator[None]:
        """All members end with the block; on an error they are stopped at once."""
        try:
            yield
        except BaseException as error:
            self._abandon(error)
            raise
        for name in list(self.members):
            self.stop(name)

    def start(self, planned: PlannedReplicate) -> bool:
        """A fresh process, verified on each test type but not yet warm; False when it did not come up."""
        name, clock = planned.implementation, self._run.testbed.clock
        began = clock.monotonic()
        planned = replace(planned, block=self._next[name], process=self._next[name])
        self._next[name] += 1
        self._run.progress.replicate(name, planned.block, 0)
        database = self._run.testbed.database
        own, free = database.divisible, database.connections_free() or 0
        replicate = Replicate(self._run, planned, own_database=own)
        try:
            replicate.__enter__()
        except ENDS_THE_RUN as error:
            self._note_lost((name, planned.process), error)
            raise
        except RECORDED:
            self._look_around((name, planned.process))
            self._deaths[name] = DEATHS  # it would not come up the next time either
            return False
        member = self.members[name] = Member(replicate=replicate)
        try:
            for kind in planned.test_types:
                self._verify(member, kind)
        except RECORDED as error:
            if not recorded(error):
                raise
            self._bury(member, error)
            return False
        member.connections = max(0, free - (database.connections_free() or 0))
        member.loaded_at = clock.monotonic()
        member.setup_seconds = self.setup_seconds[name] = member.loaded_at - began
        return True

    def _verify(self, member: Member, kind: str) -> None:
        """Check one test type, and plan to measure it at its headline level."""
        target = member.replicate.target(kind)
        if target is None:
            member.replicate.server.require_alive()
            if how := self._run.testbed.database.obituary():
                raise DatabaseDiedError(how)  # what it could not answer is not its fault
            return
        member.targets[kind] = replace(target, levels=(headline(target.levels),))

    def warm(self, names: Collection[str], *, seconds: float, burst_seconds: float) -> None:
        """Warm these members in turns, at most so long."""
        rule = self._run.testbed.profile.warm_up
        members = [self.members[name] for name in names if name in self.members]
        if rule.kind == "fixed" or rule.primer_seconds > 0:
            for member in members:
                for kind in list(member.targets):
                    self._warm_at_once(member, kind)
        else:
            self._warm_in_turns(members, rule, seconds, burst_seconds)
        for member in members:
            member.loaded_at = self._run.testbed.clock.monotonic()
            self.setup_seconds[member.name] = member.setup_seconds

    def _warm_in_turns(self, members: Sequence[Member], rule: WarmUpRule, seconds: float, burst_seconds: float) -> None:
        """Bursts in turns, one for each cell at least; a rule with no time at all makes no warm-up."""
        cells = [
            Warmth(member=member, test_type=kind, detector=SteadyDetector(rule, jit=target.jit))
            for member in members
            for kind, target in member.targets.items()
        ]
        cells = [cell for cell in cells if cell.detector.cap_seconds > 0]
        warming.in_turns(
            cells,
            lambda cell: self._burst(cell, burst_seconds),
            self._run.testbed.clock,
            seconds=seconds,
            seed=self._run.seed,
        )
        for cell in cells:
            if cell.test_type in cell.member.targets:
                cell.member.warm_ups[cell.test_type] = cell.result
                cell.member.steady[cell.test_type] = cell.detector.steady
                self._restore_after(cell.member.targets[cell.test_type])

    def _burst(self, cell: Warmth, seconds: float) -> bool:
        """One burst of a warm-up; False when its load failed or its server ended.

        Always a whole one, beyond the cap too: one of a second may end before the detector has seen a window of it.
        """
        target = cell.member.targets[cell.test_type]

        def load() -> None:
            cell.bursts.append(sweep.warm_burst(self._run.testbed, target, cell.detector, seconds))

        return self._loaded(cell.member, cell.test_type, load)

    def _warm_at_once(self, member: Member, kind: str) -> None:
        """One test type to its end, for rules that do not come in bursts."""
        target = member.targets[kind]

        def load() -> None:
            warm_up = sweep.warm(self._run.testbed, target)
            member.warm_ups[kind] = warm_up
            member.steady[kind] = warm_up.steady if warm_up else None

        if self._loaded(member, kind, load):
            self._restore_after(target)

    def _loaded(self, member: Member, kind: str, load: Callable[[], None]) -> bool:
        """A load that warms; a failed one takes the test type off its server, a dead server leaves the fleet."""
        clock = self._run.testbed.clock
        began = clock.monotonic()
        self._run.progress.warming(member.name, kind, member.targets[kind].levels[0])
        try:
            load()
        except LoadError as error:
            if self._outlived(member, kind, error):
                del member.targets[kind]
            return False
        except RECORDED as error:
            if not recorded(error):
                raise
            self._bury(member, error)
            return False
        finally:
            member.setup_seconds += clock.monotonic() - began
        return True

    def measure(self, cell: Cell, number: int, seconds: float) -> bool:
        """One window of round ``number``; False when it was lost: the server died, or the load failed."""
        member = self.members.get(cell.implementation)
        target = member.targets.get(cell.test_type) if member else None
        if member is None or target is None:
            return False
        others = [other for other in self.members.values() if other is not member]
        meters = [other.replicate.server.meter for other in others]
        target = replace(target, round=number, others=meters)
        self._run.progress.window(cell.implementation, cell.test_type, cell.level)
        clock = self._run.testbed.clock
        began, before = clock.monotonic(), [other.reading() for other in others]
        owed = (cell.implementation, cell.test_type) not in self.audited
        audit_first = self._audit_comes(member, cell, owed=owed)
        try:
            if audit_first:
                member.replicate.audit(target, cell.level, seconds, owed=owed)
            sample = sweep.take_sample(self._run.testbed, target, cell.level, seconds=seconds)
        except LoadError as error:
            return self._lost_load(member, cell, error)
        except RECORDED as error:
            if not recorded(error):
                raise
            self._bury(member, error)
            return False
        for other, earlier in zip(others, before, strict=True):
            if began - other.loaded_at >= SETTLING_SECONDS:
                other.count_idle(earlier, other.reading())
        member.loaded_at = clock.monotonic()
        warm_up = member.warm_ups.pop(cell.test_type, None)
        sample = sample.model_copy(update={"warm_up": warm_up, "steady": member.steady.get(cell.test_type)})
        if not self._keep(member, sample, target, cell, seconds if audit_first is False else None, owed=owed):
            return False
        if audit_first is not None:
            self.audited.add((cell.implementation, cell.test_type))
        self._restore_after(target)
        return True

    def _audit_comes(self, member: Member, cell: Cell, *, owed: bool) -> bool | None:
        """Whether this window has an audit before it (True) or behind it (False); None: it has none.

        Each test type of an implementation is audited at one of the first windows at its headline level, again in every
        other further process, and at one in thirty of all other windows there, all drawn by the seed, as far as the
        time for audits goes.
        """
        kind = cell.test_type
        if cell.level != member.targets[kind].levels[0]:
            return None
        process = member.replicate.planned.process
        dice = random.Random(f"{self._run.seed} audit {cell.implementation} {kind} {process}")
        again, window, first = dice.random() < AUDITED_AGAIN, dice.randrange(AUDITED_WINDOWS), dice.random() < 0.5
        here = member.windows[kind]
        member.windows[kind] += 1
        if owed and here >= window:
            return first
        if not owed and not self._run.audit_time.affords_another():
            return None
        if again and here == window:
            return first
        later = random.Random(f"{self._run.seed} audit {cell.implementation} {kind} {(process, here)}")
        return later.random() < 0.5 if later.random() < AUDITED_LATER else None

    def owing(self) -> list[tuple[str, str]]:
        """Live cells whose audit is still to come; none where there are no audits."""
        if self._run.testbed.auditor is None:
            return []
        cells = [(name, kind) for name, member in self.members.items() for kind in member.targets]
        return [cell for cell in cells if cell not in self.audited]

    def _keep(
        self, member: Member, sample: Sample, target: Target, cell: Cell, audited: float | None, *, owed: bool
    ) -> bool:
        """Record a window, with an audit of so many seconds behind it; False when the server died of that."""
        behind = target if audited is not None else None
        try:
            member.replicate.keep(sample, audit_behind=behind, seconds=audited, owed=owed)
        except LoadError as error:
            return self._lost_load(member, cell, error)
        except RECORDED as error:
            if not recorded(error):
                raise
            self._bury(member, error)
            return False
        return True

    def _lost_load(self, member: Member, cell: Cell, error: LoadError) -> bool:
        """A living server has its test type left out at the second time."""
        if self._outlived(member, cell.test_type, error):
            member.failed_loads[cell.test_type] += 1
            if member.failed_loads[cell.test_type] >= FAILED_LOADS:
                del member.targets[cell.test_type]
        return False

    def _outlived(self, member: Member, kind: str, error: LoadError) -> bool:
        """Whether the server outlived a load that failed, which is then noted with it; a dead one is buried."""
        try:
            member.replicate.server.require_alive()
        except ServerDiedError as death:
            self._bury(member, death)
            return False
        self._look_around((member.name, member.replicate.planned.process))
        member.replicate.fail(f"{kind}: {error}")
        return True

    def stop(self, name: str) -> None:
        """End a process with its last checks."""
        member = self.members[name]
        try:
            for target in member.targets.values():
                member.replicate.verify_after_load(target)
        except BaseException as error:
            del self.members[name]
            if isinstance(error, MachineLostError):
                self.lost.add((name, member.replicate.planned.process))
            if not member.replicate.__exit__(type(error), error, error.__traceback__):
                raise
            return
        del self.members[name]
        member.replicate.__exit__(None, None, None)
        if member.replicate.reasons:
            self._look_around((name, member.replicate.planned.process))

    def may_restart(self, name: str) -> bool:
        """Whether a process that died is worth another."""
        return self._deaths[name] < DEATHS

    def _restore_after(self, target: Target) -> None:
        """Updates leave dead rows behind that would slow whoever comes next on these tables."""
        if target.test_type.writes_database:
            target.database.restore()

    def _bury(self, member: Member, error: BaseException) -> None:
        """Its record says how it ended; the others go on, unless PostgreSQL ended with all their work."""
        member.targets.clear()
        del self.members[member.name]
        self._deaths[member.name] += 1
        member.replicate.__exit__(type(error), error, error.__traceback__)
        self._look_around((member.name, member.replicate.planned.process))

    def _look_around(self, lost: tuple[str, int]) -> None:
        """Raise where PostgreSQL has ended or a machine is gone; a replicate that went with it is to be repeated."""
        if how := self._run.testbed.database.obituary():
            self.lost.add(lost)
            raise DatabaseDiedError(how)
        try:
            vanishing.look(self._run)
        except MachineLostError as error:
            self._note_lost(lost, error)
            raise

    def _note_lost(self, lost: tuple[str, int], error: BaseException) -> None:
        """A replicate is to be repeated when what ended it was not its own."""
        if isinstance(error, DatabaseDiedError | MachineLostError):
            self.lost.add(lost)

    def forgive(self) -> set[tuple[str, int]]:
        """The replicates that PostgreSQL's or a machine's end took, whose numbers are free again: not their fault."""
        lost, self.lost = self.lost, set()
        for name, process in lost:
            self._next[name] = min(self._next[name], process)
            self._deaths[name] = 0
        return lost

    def _abandon(self, error: BaseException) -> None:
        """Stop all at once; a second error changes nothing about the first."""
        while self.members:
            _, member = self.members.popitem()
            self._note_lost((member.name, member.replicate.planned.process), error)
            try:
                member.replicate.__exit__(type(error), error, error.__traceback__)
            except BaseException:  # noqa: BLE001, S112 - the first is raised by whoever called
                continue
