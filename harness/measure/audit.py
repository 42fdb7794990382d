"""One audited sample: a load like the others, by the project's own generator, whose every request is accounted for.

The server sees the same connections, bytes and loop as in the samples beside it, the watch's slow one among them, at a
place and for a time that the run's seed draws; what it answers is judged by ``harness.verify.audit``.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import BuildError, EnvironmentLacksError
from harness.host import ownership
from harness.measure.loadgen import Load, LoadGenerator, LoadResult, own
from harness.measure.observe import observe
from harness.measure.sweep import binned, load_of
from harness.measure.testbed import Target, Testbed
from harness.records.models import AuditedLoad, CheckResult, Level
from harness.runtime import Runtime
from harness.verify.audit import AuditEvidence, share
from harness.verify.checks.evidence import Audit
from harness.verify.meanwhile import Meanwhile

LEAST_SECONDS = 1.0  # of an audited load
LONG_SECONDS = 3.0  # of a sample: one that is longer is audited for a shorter time, which differs from audit to audit
LIMIT = 40_000  # answers written out at most
FEWEST = 200  # answers from which on their CPU says something


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What an audited sample showed."""

    results: tuple[CheckResult, ...]
    successes: int  # answers with 2xx, which the database must have seen like any other
    failed: int
    load: AuditedLoad


@dataclass
class AuditingGenerator:
    """The project's generator, told to write out a share of the answers; keeps its account of the load."""

    program: str
    sample_share: float
    answers: Path
    seed: int
    waits_for_go: bool = False
    timeout_seconds: float = float(own.TIMEOUT_SECONDS)
    total: own.Total | None = field(default=None, init=False)

    @property
    def folder(self) -> Path:
        """Of the answers."""
        return self.answers.parent

    def arguments(self, load: Load) -> Sequence[str]:
        """Of a closed loop that connects as wrk does, when the load starts."""
        extra = ["--connect-at-go", "--sample-file", str(self.answers), "--sample-rate", f"{self.sample_share:.6g}"]
        extra += ["--sample-limit", str(LIMIT)]
        return own.Own(seed=self.seed, extra=tuple(extra)).arguments(load)

    def result(self, load: Load, output: str) -> LoadResult:
        """The common figures; the whole account is in ``total``."""
        self.total = own.read(output, load.url).total
        return own.Own(seed=self.seed).result(load, output)


def obstacle(runtime: Runtime) -> str | None:
    """Why there can be no audits: they need the project's generator."""
    try:
        runtime.own_generator()
    except (EnvironmentLacksError, BuildError) as error:
        return str(error)
    return None


def drawn_seconds(sample_seconds: float, seed: int) -> float:
    """How long an audit beside samples of so many seconds lasts.

    As long as they do where they are short. Otherwise a share of them whose square root is uniform, a third in the
    mean: cheap, and no time of a load is one in which nobody can be looking.
    """
    share = random.Random(seed).random() ** 2
    return min(sample_seconds, max(LONG_SECONDS, sample_seconds * share))


def audit(testbed: Testbed, target: Target, level: Level, seed: int, expected: float, seconds: float) -> Audited:
    """Load the target once more for so long, account for every request, judge the answers.

    ``expected`` is about how many requests it answers in a second.
    Raises LoadError and ServerDiedError as any sample does.
    """
    if target.test_type.writes_database and expected > 0:  # all its answers are held against the table
        seconds = max(LEAST_SECONDS, min(seconds, LIMIT / expected / 2))
    rules = target.server.implementation.rules
    evidence = AuditEvidence(target.test_type, target.url, level, target.database.address, rules=rules)
    with ownership.scratch("tfb-audit-") as folder:
        answers = folder / "answers.jsonl"
        answers.touch()
        generator = AuditingGenerator(
            program=testbed.runtime.own_generator(),
            sample_share=share(target.test_type, level, expected * seconds),
            answers=answers,
            seed=seed,
        )
        auditing: LoadGenerator = generator
        sizes = target.response_bytes(level)
        watch = testbed.verifier.watch(target.server, target.test_type, level, target.database.address)
        meanwhile = Meanwhile(target.test_type, target.database.address, seconds, seed)
        with meanwhile, watch:  # which asks no more once the rows are put back
            seen = observe(
                replace(testbed, generator=auditing),
                target,
                load_of(testbed, target, level, seconds),
                response_bytes=statistics.fmean(sizes) if sizes else None,
            )
        if target.ledger:
            target.ledger.watched(target.test_type, level, watch.exchanges)
        total = generator.total
        assert total is not None  # noqa: S101 - observe has read the result
        whole = total.sampled == total.received and not total.sampled_over_limit
        results = evidence.judge(account(total), answers, whole=whole, beside=watch.exchanges, meanwhile=meanwhile)
    enough = total.received >= FEWEST
    return Audited(
        results=results,
        successes=total.successes,
        failed=total.received - total.successes,
        load=AuditedLoad(
            duration=total.seconds,
            requests=total.in_time.received,
            cpu_per_request=seen.server.cpu_seconds / total.received if enough else None,
            latency=binned(seen.result.latency) if total.successes == total.sent else None,
        ),
    )


def account(total: own.Total) -> Audit:
    """What the load's requests came to. Without an answer after the whole drain they are missing, not under way."""
    faults = total.errors
    drained = total.drain_seconds >= own.DRAIN_SECONDS
    return Audit(
        sent=total.sent,
        received=total.received,
        unasked=total.unasked_responses,
        unasked_bytes=total.unasked_bytes,
        unfinished=0 if drained else total.unfinished,
        hung=total.connections_hung,
        closed=total.connections_closed_by_peer,
        unsound=faults.framing + faults.length + faults.body + faults.dropped,
        statuses=total.statuses,
    )
