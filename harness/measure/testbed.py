"""What measurements share: the testbed of a run, and the target of a load on it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.host.clock import Clock
from harness.measure.loadgen import LoadGenerator
from harness.plan.profile import Profile
from harness.plan.testtypes import TestType
from harness.records.models import AuditedLoad, CheckResult, Level, Verdict, Window
from harness.runtime import Database, Meter, Runtime, Server, SharedDatabase
from harness.verify.checks.evidence import Exchange
from harness.verify.verifier import Verifier


@dataclass(frozen=True, kw_only=True)
class Testbed:
    """With what and by which rules a run measures."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    profile: Profile
    clock: Clock
    runtime: Runtime
    generator: LoadGenerator
    verifier: Verifier
    database: SharedDatabase
    server_cpus: int  # CPUs that a server may use
    generator_cpus: int
    auditor: "Auditor | None" = None  # None: nothing is audited
    links: Mapping[str, float] = field(default_factory=dict)  # bytes a second from the server to each client, elsewhere
    tell: Callable[[Window], None] = lambda _: None  # each second of a load while it is on; must be quick


class Audited(Protocol):
    """What an audited sample showed; ``harness.measure.audit`` has the real one."""

    @property
    def results(self) -> tuple[CheckResult, ...]:
        """Of the checks that held for it."""

    @property
    def successes(self) -> int:
        """Answers with 2xx, which the database must have seen like any other."""

    @property
    def failed(self) -> int:
        """Answers with another status."""

    @property
    def load(self) -> AuditedLoad:
        """Its figures, with the service time."""


# With a seed, requests expected in a second, and seconds of the load.
Auditor = Callable[["Testbed", "Target", Level, int, float, float], Audited]


class Ledger(Protocol):
    """Is told of every load on a server, and of what was answered meanwhile: what the database does must cover it."""

    def load_begins(self, kind: TestType) -> None:
        """Just before a generator starts."""

    def load_ends(self, kind: TestType) -> None:
        """Just after it has ended."""

    def load_answered(self, kind: TestType, level: Level, good: int, failed: int) -> None:
        """Responses of the load that has ended, by whether their status was 2xx."""

    def watched(self, kind: TestType, level: Level, exchanges: Sequence[Exchange]) -> None:
        """What the watch beside that load was answered."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A verified test type of one running server."""

    server: Server
    test_type: TestType
    levels: Sequence[Level]
    verdict: Verdict
    database: Database  # the one that this server uses
    jit: bool
    block: int  # in time
    process: int
    round: int | None = None  # of a run in which servers stay up and are measured in turns
    partner: str | None = None  # the implementation that is under load at the same time
    others: Sequence[Meter] = field(default_factory=tuple)  # servers that are up and should be idle
    stop: Callable[[], bool] = lambda: False  # asked once a second; True ends a load early
    ledger: Ledger | None = None  # None: nobody holds the database's work against the answers

    @property
    def url(self) -> str:
        """The URL that the implementation declares for the test type."""
        return self.server.implementation.urls[self.test_type.name]

    def response_bytes(self, level: Level) -> tuple[float, float] | None:
        """Fewest and most bytes of one verified response at this level."""
        return self.verdict.response_bytes.get("" if level.queries is None else str(level.queries))
