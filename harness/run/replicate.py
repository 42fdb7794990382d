"""One replicate: fresh database state, a fresh server, and every test type verified, measured and verified again."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import psycopg

from harness.errors import LoadError, StoreError, TfbError
from harness.measure import sweep
from harness.measure.loadgen import LoadGenerator
from harness.measure.sweep import Bench, Budget
from harness.request.discovery import Implementation
from harness.request.plan import PlannedReplicate
from harness.request.profile import Profile
from harness.request.testtypes.registry import TEST_TYPES
from harness.results.records import CheckResult, Level, Outcome, ReplicateRecord, Sample, Verdict
from harness.results.store import RunStore
from harness.run.progress import Progress
from harness.servers import Database, Runtime, Server
from harness.verify import verification
from harness.verify.checks.load import DatabaseCounters, read_table_use

ROW_TYPES = ("db", "query", "update")
PUBLISH_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where the replicates of a run take place."""

    profile: Profile
    runtime: Runtime
    generator: LoadGenerator
    database: Database
    store: RunStore
    progress: Progress
    budget: Budget
    server_cpus: int
    generator_cpus: int
    implementations: Mapping[str, Implementation]


@dataclass
class Answered:
    """Rows that the generator was answered in a replicate, to be held against what the database did."""

    before: DatabaseCounters
    reads: int = 0
    writes: int = 0
    fortunes: int = 0  # pages
    failed: int = 0  # responses to update with another status than 2xx
    verdicts: list[Verdict] = field(default_factory=list)  # of the test types that the counters speak of

    def add(self, sample: Sample, levels: Sequence[Level]) -> None:
        """Count a sample, and the warm-up before it at the count that it used."""
        good = sample.requests - sample.errors.status
        if sample.test_type == "fortune":
            self.fortunes += good + (sample.warm_up.requests if sample.warm_up else 0)
        if sample.test_type not in ROW_TYPES:
            return
        rows = good * (sample.level.queries or 1)
        if sample.warm_up:
            rows += sample.warm_up.requests * (levels[-1].queries or 1)
        self.reads += rows
        if sample.test_type == "update":
            self.writes += rows
            self.failed += sample.errors.status


def run(site: Site, planned: PlannedReplicate) -> ReplicateRecord:
    """Run one replicate to its end; what fails in it is in the record, not an exception.

    Only an interruption and a StoreError (nothing can be kept any more) leave it as exceptions.
    """
    implementation = site.implementations[planned.implementation]
    log = site.store.log(implementation.name, f"r{planned.block}")
    began = time.time()
    reasons: list[str] = []
    first_answer: float | None = None
    status = "interrupted"
    try:
        site.database.restore()
        answered = Answered(before=read_table_use(site.database.address))
        path = implementation.ready_path
        with site.runtime.start(implementation, site.database.address, log, ready_path=path) as server:
            first_answer = server.first_answer
            connection = _connection(site, planned, server)
            for name in planned.test_types:
                try:
                    reasons += _test_type(site, planned, server, name, connection, answered)
                except LoadError as error:
                    reasons.append(f"{name}: {error}")
                    site.progress.problem(f"{implementation.name} {name}: {error}")
                server.require_alive()
        reasons += _load_reached_the_table(site, planned, answered)
        status = "failed" if reasons else "ok"
    except StoreError:
        raise
    except (TfbError, psycopg.Error) as error:
        status = "failed"
        reasons.append(str(error) if isinstance(error, TfbError) else f"PostgreSQL: {str(error).strip()}")
        site.progress.problem(reasons[-1])
    finally:
        record = ReplicateRecord.model_validate(
            {
                "implementation": implementation.name,
                "block": planned.block,
                "replicate": planned.block,
                "started_at": began,
                "first_answer": first_answer,
                "status": status,
                "reason": "\n".join(reasons).replace(f"{site.store.folder}/", ""),  # a report may be mailed
                "log": f"logs/{implementation.name}/{log.name}",
            }
        )
        site.store.add_replicate(record)
    return record


def _connection(site: Site, planned: PlannedReplicate, server: Server) -> tuple[CheckResult, ...]:
    """HTTP as the RFCs say, for the server as a whole; what is wrong there is wrong for every test type."""
    site.progress.cell("http", "verifying")
    verdict = verification.check_connection(
        implementation=server.implementation.name,
        urls=server.implementation.urls,
        endpoint=server.endpoint,
        replicate=planned.block,
        thorough=planned.block == 0,
    )
    site.store.add_verdict(verdict)
    return tuple(result for result in verdict.results if result.outcome is Outcome.FAIL)


def _load_reached_the_table(site: Site, planned: PlannedReplicate, answered: Answered) -> list[str]:
    """Hold the rows that were answered under load against PostgreSQL's own counters, after the server has stopped."""
    until = time.monotonic() + PUBLISH_SECONDS
    while True:
        results = verification.check_load(
            answered.before,
            read_table_use(site.database.address),
            answered_reads=answered.reads,
            answered_writes=answered.writes,
            answered_fortunes=answered.fortunes,
            failed_responses=answered.failed,
        )
        failed = tuple(result for result in results if result.outcome is Outcome.FAIL)
        if not failed or time.monotonic() > until:
            break
        time.sleep(0.2)  # sessions publish their counters when they end, which on a busy machine takes a moment
    verdict = Verdict(
        implementation=planned.implementation,
        test_type="load",
        replicate=planned.block,
        thorough=planned.block == 0,
        outcome=verification.worst(results),
        results=results,
        duration=0.0,
    )
    site.store.add_verdict(verdict)
    if not failed:
        return []
    for known in answered.verdicts:
        site.store.add_verdict(with_results(known, failed))
    reason = f"load: {explain(verdict)}"
    site.progress.problem(f"{planned.implementation} {reason}")
    return [reason]


def _test_type(
    site: Site,
    planned: PlannedReplicate,
    server: Server,
    name: str,
    connection: tuple[CheckResult, ...],
    answered: Answered,
) -> list[str]:
    """Verify, measure, verify again; the reasons for which it counts as failed."""
    test_type = TEST_TYPES[name]
    implementation = server.implementation
    levels = planned.test_types[name]
    site.progress.cell(name, "verifying")
    verdict = verification.check(
        implementation=implementation.name,
        urls=implementation.urls,
        endpoint=server.endpoint,
        test_type=test_type,
        database=site.database.address,
        thorough=planned.block == 0,
        replicate=planned.block,
        levels=levels,
    )
    verdict = with_results(verdict, connection)
    site.store.add_verdict(verdict)
    if verdict.outcome is Outcome.FAIL:
        reason = f"{name}: {explain(verdict)}"
        site.progress.problem(f"{implementation.name} {reason}")
        return [reason]
    bench = Bench(
        profile=site.profile,
        runtime=site.runtime,
        generator=site.generator,
        server=server,
        database=site.database,
        replicate=planned,
        server_cpus=site.server_cpus,
        generator_cpus=site.generator_cpus,
    )

    reasons = []
    for sample in sweep.sweep(
        bench,
        test_type,
        implementation.urls[name],
        verdict,
        site.budget,
        lambda stage, level: site.progress.cell(name, stage, level),
    ):
        site.store.add_sample(sample)
        answered.add(sample, levels)
        site.progress.sample(sample)
        if not sample.rankable:
            words = ", ".join(gate.word for gate in sample.gates if gate.outcome is Outcome.FAIL)
            reasons.append(f"{name} {sample.level.label}: {words}")
    site.progress.cell(name, "verifying after the load")
    after = verification.after_load(
        implementation=implementation.name,
        urls=implementation.urls,
        endpoint=server.endpoint,
        test_type=test_type,
        database=site.database.address,
        thorough=planned.block == 0,
        replicate=planned.block,
        levels=levels,
    )
    final = with_results(verdict, after)
    if after:
        site.store.add_verdict(final)
    if name in ROW_TYPES or name == "fortune":
        answered.verdicts.append(final)
    if final.outcome is Outcome.FAIL:
        reason = f"{name}: after the load: {explain(final)}"
        site.progress.problem(f"{implementation.name} {reason}")
        reasons.append(reason)
    return reasons


def with_results(verdict: Verdict, more: tuple[CheckResult, ...]) -> Verdict:
    """The verdict with further results; its outcome is the worst of all."""
    results = (*verdict.results, *more)
    outcomes = {result.outcome for result in results}
    worst = next((o for o in (Outcome.FAIL, Outcome.WARN) if o in outcomes), Outcome.PASS)
    return verdict.model_copy(update={"results": results, "outcome": worst})


def explain(verdict: Verdict) -> str:
    """The failed checks of a verdict in one line each."""
    failed = [r for r in verdict.results if r.outcome is Outcome.FAIL]
    return "; ".join(
        f"{r.check} ({r.rule}): {r.message}"
        + (f" expected {r.expected}, got {r.actual}" if r.expected is not None else "")
        for r in failed
    )
