"""Runs block after block until every order is decided, every interval narrow, or the maximum is reached."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import MachineLostError
from harness.plan import plan as planning
from harness.plan.plan import Plan, PlannedReplicate
from harness.plan.profile import Profile
from harness.records import store
from harness.records.models import RunInfo
from harness.run import replicating, vanishing
from harness.run.replicate import restricted
from harness.run.running import Run
from harness.stats.whole import rank_whole

Cell = tuple[str, str]  # implementation, test type
Done = frozenset[tuple[str, int]]  # implementation, process: replicates that an interrupted run had finished


@dataclass
class Pace:
    """How much of the expected work lies behind, by each implementation's planned seconds."""

    weights: dict[str, float]
    total: float
    behind: float = 0.0
    ended: int = 0

    def add(self, implementation: str) -> None:
        """A replicate has ended."""
        self.ended += 1
        self.behind += self.weights[implementation]

    @property
    def share(self) -> float:
        """0..1; stays at 1 while blocks beyond the expected ones run."""
        return min(1.0, self.behind / self.total) if self.total else 1.0


def measure(run: Run, plan: Plan, info: RunInfo, done: Done) -> RunInfo:
    """Run the plan's blocks; returns run.json's record with the schedule as it was carried out."""
    profile = run.testbed.profile
    pace = _pace(plan.blocks[0], profile, plan.minimum_blocks)
    expected = [(planned.implementation, kind) for planned in plan.blocks[0] for kind in planned.test_types]
    due: frozenset[Cell] = frozenset(expected)
    for block in plan.blocks:
        replicates = [cut for planned in block if (cut := _due(planned, due)).test_types]
        if not replicates:
            break
        names = tuple(planned.implementation for planned in replicates)
        info = info.model_copy(update={"schedule": (*info.schedule, names)})
        run.store.write_info(info)
        for planned in replicates:
            run.progress.replicate(planned.implementation, planned.block, len(plan.blocks))
            if (planned.implementation, planned.process) not in done:
                _measured(run, planned)
            pace.add(planned.implementation)
            run.progress.replicate_done(pace.ended, len(plan.blocks[0]) * plan.minimum_blocks, pace.share)
        due = _after_block(run, info, expected)
    return info


def _measured(run: Run, planned: PlannedReplicate) -> None:
    """One replicate; once more from its beginning when a machine was lost in it and is back within a time."""
    try:
        replicating.run(run, planned)
    except MachineLostError as error:
        vanishing.await_return(run, {(planned.implementation, planned.process)}, error)
        replicating.run(run, planned)


def _after_block(run: Run, info: RunInfo, expected: Sequence[Cell]) -> frozenset[Cell]:
    """Rank what there is, for the dashboard, and decide what needs another block."""
    records = store.read(run.store.folder)
    ranking, _ = rank_whole(run.store.folder, info, records.samples, records.replicates, records.verdicts)
    run.store.write_text("ranking.json", ranking.recorded())
    waiting = run.stopping(records, expected, run.testbed.profile.replication)
    run.progress.undecided([(item.implementation, item.test_type, item.reason) for item in waiting])
    return frozenset((item.implementation, item.test_type) for item in waiting)


def _due(planned: PlannedReplicate, due: frozenset[Cell]) -> PlannedReplicate:
    """The replicate with the test types that still need one."""
    return restricted(planned, [kind for name, kind in due if name == planned.implementation])


def _pace(candidates: Sequence[PlannedReplicate], profile: Profile, blocks: int) -> Pace:
    weights = {
        planned.implementation: planning.replicate_seconds(planned, profile, thorough=False, worst=False)
        for planned in candidates
    }
    return Pace(weights=weights, total=sum(weights.values()) * blocks)
