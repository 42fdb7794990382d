"""An in-memory verifier for the fake world in ``fakes_world``."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import TestType
from harness.records.loads import Load
from harness.records.trial_record import TrialEvidence
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.runtime import DatabaseAddress, Server
from harness.tests.doubles.fakes_world import RESPONSE_BYTES, FakeWorld
from harness.verify.checks.evidence import RequestCounts, Sampling
from harness.verify.trial import TrialContext, TrialVerification
from harness.verify.verifier import Verifier


class FakeTrial(TrialVerification):
    """A trial verification that reports the fake world's findings."""

    def __init__(self, world: FakeWorld, asked: str, requests: Sequence[PreparedRequest]) -> None:
        self.world, self.asked, self.requests = world, asked, requests
        self.sampling = Sampling(share=0.01, max_responses=100, max_bytes=1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def judge(
        self, *, good: int, failed: int, counts: RequestCounts | None, responses_file: Path | None
    ) -> TrialEvidence:
        objections = self.world.objections if counts else ()
        if self.world.talks:
            sent = counts.sent if counts else "nothing"
            said = f"{self.asked}: {good} good, {failed} failed, {sent} sent, {responses_file}"
            objections += (CheckResult(check="asked", rule="fake.3", outcome=Outcome.PASS, message=said),)
        return TrialEvidence(judged=0, received=good + failed, objections=objections)


@dataclass
class FakeVerifier(Verifier):
    """A verifier that fails the given (implementation, test type) pairs and passes everything else."""

    world: FakeWorld
    fails_before: frozenset[tuple[str, str]] = frozenset()
    fails_after: frozenset[tuple[str, str]] = frozenset()
    lost: tuple[CheckResult, ...] = ()  # results of the final check of each process
    seconds: float = 0.1
    begun: set[DatabaseAddress] = field(default_factory=set)

    def start_process(self, database: DatabaseAddress) -> None:
        self.begun.add(database)

    def end_process(self, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        return self.lost if database in self.begun else ()

    def verify_http(self, server: Server, *, process: int, thorough: bool) -> VerificationRecord:
        return self._verdict(server, "http", process, thorough, failed=False)

    def verify_test_type(
        self,
        server: Server,
        test_type: TestType,
        database: DatabaseAddress | None,
        *,
        process: int,
        thorough: bool,
        loads: Sequence[Load],
    ) -> VerificationRecord:
        lost = self.world.clock.monotonic() >= self.world.database_dies_at  # the database crashed during verification
        failed = lost or (server.implementation.name, test_type.name) in self.fails_before
        verdict = self._verdict(server, test_type.name, process, thorough, failed=failed)
        if self.world.talks and database:
            result = verdict.results[0].model_copy(update={"message": f"{database.name}, {len(loads)} loads"})
            verdict = verdict.model_copy(update={"results": (result,)})
        sizes = {"" if load.queries is None else str(load.queries): (RESPONSE_BYTES, RESPONSE_BYTES) for load in loads}
        return verdict.model_copy(update={"response_bytes": sizes})

    def verify_after_load(
        self, server: Server, test_type: TestType, database: DatabaseAddress
    ) -> tuple[CheckResult, ...]:
        failed = (server.implementation.name, test_type.name) in self.fails_after
        return (CheckResult(check="fake-after", rule="fake.2", outcome=Outcome.FAIL if failed else Outcome.PASS),)

    def verify_trial(self, context: TrialContext) -> FakeTrial:
        is_selected = (
            f"{context.server.implementation.name} {context.test_type.name} {context.load.label} "
            f"{context.database.name} {context.seconds:g} s {context.rate} {context.seed}"
        )
        return FakeTrial(self.world, is_selected, context.test_type.requests)

    def _verdict(self, server: Server, kind: str, process: int, thorough: bool, *, failed: bool) -> VerificationRecord:
        self.world.clock.sleep(self.seconds)
        outcome = Outcome.FAIL if failed else Outcome.PASS
        return VerificationRecord(
            implementation=server.implementation.name,
            test_type=kind,
            process=process,
            thorough=thorough,
            outcome=outcome,
            results=(CheckResult(check="fake", rule="fake.1", outcome=outcome, message="fake" if failed else ""),),
            duration=self.seconds,
        )
