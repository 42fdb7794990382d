"""Load generators behind one protocol: parameters and result of a load. ``registry`` lists the generators."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from harness.plan.requests import PreparedRequest
from harness.plan.scenarios import UseCase
from harness.records.loads import Load
from harness.records.measurements import LoadCounts
from harness.verify.checks.evidence import RequestCounts, Sampling

RESPONSES_FILE = "answers.jsonl"  # in the load's folder: responses that the generator has written
DRAIN_SECONDS = 2.0  # time for responses after the end of an open loop or a scenario
MIN_LAG_SECONDS = 100e-6  # a smaller lag of the generator is ignored
TIMEOUT_SECONDS = 8  # time without a response after which a connection is given up; as TechEmpower's


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """Parameters of a load on a server."""

    url: str
    host: str  # Host header
    accept: str  # Accept header
    load: Load
    seconds: float
    threads: int
    seed: int
    sampling: Sampling | None = None  # which responses are written; a scenario writes all responses
    requests: Sequence[PreparedRequest] = ()  # requests to draw from, instead of the path of ``url``
    use_cases: Sequence[UseCase] = ()  # use cases of a scenario
    late_after: float | None = None  # latency goal in seconds, for ``LoadResult.late``
    lag_share: float = 0.2  # a request counts as sent late beyond this share of the latency's p99

    @property
    def request_bytes(self) -> int:
        """Return the size of a request: the request line, and the headers Host, Accept and Connection."""
        path = "/" + self.url.partition("://")[2].partition("/")[2]
        lines = (f"GET {path} HTTP/1.1", *headers(self), "")
        return len("".join(f"{line}\r\n" for line in lines).encode())


class LoadResult(LoadCounts):
    """The counts of a load, and the resources that the generator used."""

    cpu_seconds: float  # of the generator
    wait_seconds: float | None = None  # time that the generator's threads waited for a CPU; unknown for wrk
    parts: "tuple[LoadResult, ...]" = ()  # results of several clients
    in_time: int | None = None  # successful responses before the end of the load; unknown for wrk
    account: RequestCounts | None = None  # unknown for wrk


class LoadGenerator(Protocol):
    """Converts a load to a command line, and the output to a result."""

    @property
    def name(self) -> Literal["loadgen", "wrk"]:
        """Return the name in profiles."""

    @property
    def program(self) -> str:
        """Return the program to start: a name that the runtime knows, or a path."""

    @property
    def waits_for_go(self) -> bool:
        """Return whether the generator prints ``ready`` once it is connected, and begins after the line ``go``."""

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Return the arguments of ``program``, and write input files to the folder.

        The generator writes ``RESPONSES_FILE`` to the same folder.
        """

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Return the result of all clients from their joined output. Raises LoadError if the output is not valid."""


def headers(run: LoadRun) -> tuple[str, ...]:
    """Return the headers of every request, as wrk sends them."""
    return f"Host: {run.host}", f"Accept: {run.accept}", "Connection: keep-alive"
