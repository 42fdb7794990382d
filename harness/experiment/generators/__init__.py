"""Load generators behind one Protocol: what each is asked for and what it answers; ``registry`` lists them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from harness.plan.requests import PreparedRequest
from harness.plan.scenarios import UseCase
from harness.records.loads import Load
from harness.records.measurements import LoadCounts
from harness.verify.checks.evidence import RequestCounts, Sampling

RESPONSES_FILE = "answers.jsonl"  # in a load's folder: the answers that were written out
DRAIN_SECONDS = 2.0  # to wait for answers after an open loop or a scenario
MIN_LAG_SECONDS = 100e-6  # below this a generator's lag does not count, whatever its share
TIMEOUT_SECONDS = 8  # TechEmpower's: without an answer for so long a connection is given up


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """One run of a generator against one server; times in seconds."""

    url: str
    host: str  # Host header
    accept: str
    load: Load
    seconds: float
    threads: int
    seed: int
    sampling: Sampling | None = None  # None: no answers are written out; of a scenario they all are
    use_cases: Sequence[UseCase] = ()  # of a scenario
    requests: Sequence[PreparedRequest] = ()  # each one sent is drawn from these, whatever the URL's path
    late_after: float | None = None  # the latency goal, for ``LoadResult.late``
    lag_share: float = 0.2  # of the latency's p99: a request that is sent later than that is ``sent_late``

    @property
    def request_bytes(self) -> int:
        """Size of one request on the wire: request line, Host, Accept and Connection, as every generator sends them."""
        path = "/" + self.url.partition("://")[2].partition("/")[2]
        lines = (f"GET {path} HTTP/1.1", *headers(self), "")
        return len("".join(f"{line}\r\n" for line in lines).encode())


class LoadResult(LoadCounts):
    """What the generator counted, and what it says of itself."""

    cpu_seconds: float  # its own
    wait_seconds: float | None = None  # that its threads were ready and had no CPU; wrk does not tell
    parts: "tuple[LoadResult, ...]" = ()  # of each client, where several loaded together
    in_time: int | None = None  # good answers before its end; None: by wrk
    account: RequestCounts | None = None  # None: by wrk


class LoadGenerator(Protocol):
    """Turns a run into a command line, and what it prints into a result."""

    @property
    def name(self) -> Literal["loadgen", "wrk"]:
        """As a profile calls it."""

    @property
    def program(self) -> str:
        """What the runtime starts: a name that it knows, or a path."""

    @property
    def waits_for_go(self) -> bool:
        """Whether it says ``ready`` once its connections are up and begins at the word ``go``."""

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Arguments of ``program``; writes the generator's own files into the folder, where ``RESPONSES_FILE`` will be."""

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Of all clients' output, one after another; raises LoadError with what was printed instead."""


def headers(run: LoadRun) -> tuple[str, ...]:
    """Of every request, as wrk sends them."""
    return f"Host: {run.host}", f"Accept: {run.accept}", "Connection: keep-alive"
