"""Runs block after block until every order is decided, every interval narrow, or the maximum is reached."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from harness.measure.loadgen.wrk import Wrk
from harness.measure.sweep import Budget
from harness.rank import stopping
from harness.rank.model import Ranking
from harness.rank.ranking import rank
from harness.request import plan as planning
from harness.request.config import Settings, parse_cpus
from harness.request.plan import PlannedReplicate
from harness.results import store
from harness.results.records import RunInfo
from harness.run import duets, replicate
from harness.run.preparation import Prepared
from harness.run.progress import Progress
from harness.run.replicate import Site
from harness.servers import Database, Runtime
from harness.servers.database.external import external

Cell = tuple[str, str]  # implementation, test type
Pairing = Callable[[Ranking], Sequence[duets.Duet]]  # who plays with whom, by the ranking of the blocks
Done = frozenset[tuple[str, int]]  # implementation, block: replicates that an interrupted run had finished


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


def run(
    settings: Settings, prepared: Prepared, progress: Progress, done: Done, pairing: Pairing = duets.neighbours
) -> RunInfo:
    """Run the plan, then any duets; returns run.json's record with the schedule as it was carried out."""
    info = prepared.info
    ready = frozenset(prepared.ready)
    if not ready:
        return info
    pace = _pace(settings, prepared)
    expected = [(c.name, t) for c in prepared.selected.candidates for t in c.test_types if c.name in ready]
    due: frozenset[Cell] = frozenset(expected)
    with open_database(settings, prepared.runtime) as database:
        site = site_of(settings, prepared, progress, database)
        for block in prepared.plan.blocks:
            replicates = [cut for planned in block if (cut := restricted(planned, due)).test_types]
            if not replicates:
                break
            names = tuple(planned.implementation for planned in replicates)
            info = info.model_copy(update={"schedule": (*info.schedule, names)})
            prepared.store.write_info(info)
            for planned in replicates:
                progress.replicate(planned.implementation, planned.block, len(prepared.plan.blocks))
                if (planned.implementation, planned.block) not in done:
                    replicate.run(site, planned)
                pace.add(planned.implementation)
                progress.replicate_done(pace.ended, len(ready) * prepared.plan.minimum_blocks, pace.share)
            due = _after_block(prepared, info, expected, progress)
        if settings.order == "duet":
            _play_duets(site, info, pairing)
    return info


def _play_duets(site: Site, info: RunInfo, pairing: Pairing) -> None:
    """Decide by duets what the blocks left open."""
    records = store.read(site.store.folder)
    ranking = rank(info, records.samples, records.replicates, records.verdicts)
    duets.run(site, pairing(ranking), duets.last_verdicts(records.verdicts))


def _after_block(prepared: Prepared, info: RunInfo, expected: Sequence[Cell], progress: Progress) -> frozenset[Cell]:
    """Rank what there is, for the dashboard, and decide what needs another block."""
    records = store.read(prepared.store.folder)
    ranking = rank(info, records.samples, records.replicates, records.verdicts)
    prepared.store.write_text("ranking.json", ranking.model_dump_json())
    waiting = stopping.undecided(records.samples, expected, prepared.profile.replication)
    progress.undecided([(item.implementation, item.test_type, item.reason) for item in waiting])
    return frozenset((item.implementation, item.test_type) for item in waiting)


def restricted(planned: PlannedReplicate, due: frozenset[Cell]) -> PlannedReplicate:
    """The replicate with the test types that still need one."""
    kept = {name: levels for name, levels in planned.test_types.items() if (planned.implementation, name) in due}
    return replace(planned, test_types=kept)


def open_database(settings: Settings, runtime: Runtime) -> AbstractContextManager[Database]:
    """The run's own PostgreSQL, or the one that ``--database-host`` names."""
    return external(settings.database_host) if settings.database_host else runtime.database()


def site_of(settings: Settings, prepared: Prepared, progress: Progress, database: Database) -> Site:
    """Where replicates take place."""
    usable = prepared.machine.cpus_usable
    server = parse_cpus(settings.cpuset_cpus or settings.profile.server_cpus, usable, "--cpuset-cpus") or usable
    others = parse_cpus(settings.profile.other_cpus, usable, "other_cpus") or usable
    budget = Budget(seconds=prepared.plan.maximum_seconds * settings.profile.gates.repeat_budget_share)
    return Site(
        profile=settings.profile,
        runtime=prepared.runtime,
        generator=Wrk(),
        database=database,
        store=prepared.store,
        progress=progress,
        budget=budget,
        server_cpus=len(server),
        generator_cpus=len(others),
        implementations={i.name: i for i in prepared.selected.implementations},
    )


def _pace(settings: Settings, prepared: Prepared) -> Pace:
    weights = {
        c.name: planning.replicate_seconds(c, settings.profile, thorough=False, worst=False)
        for c in prepared.selected.candidates
    }
    total = sum(weights[name] for name in prepared.ready) * prepared.plan.minimum_blocks
    return Pace(weights=weights, total=total)
