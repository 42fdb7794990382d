"""Load generators with a common protocol: the parameters and the result of a load. ``registry`` lists them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from harness.plan.requests import PreparedRequest
from harness.plan.scenarios import UseCase
from harness.records.loads import Load
from harness.records.measurements import LoadCounts
from harness.verify.checks.evidence import RequestCounts, Sampling

RESPONSES_FILE = "answers.jsonl"  # file in the folder of a load, in which the generator records responses
DRAIN_SECONDS = 2.0  # time allowed for responses after the end of an open loop or a scenario
MIN_LAG_SECONDS = 100e-6  # smaller lags of the generator are ignored
TIMEOUT_SECONDS = 8  # a connection without a response is given up after this time, as in TechEmpower's tests


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """Parameters of a load on a server."""

    url: str
    host: str  # value of the Host header
    accept: str  # value of the Accept header
    load: Load
    seconds: float
    threads: int
    seed: int
    sampling: Sampling | None = None  # selection of the responses to record; a scenario records all responses
    # The generator draws from these requests, instead of sending the path of ``url``.
    requests: Sequence[PreparedRequest] = ()
    use_cases: Sequence[UseCase] = ()  # use cases of a scenario
    late_after: float | None = None  # latency goal in seconds, for ``LoadResult.late``
    lag_share: float = 0.2  # a request is sent late if its lag exceeds this share of the latency's p99

    @property
    def request_bytes(self) -> int:
        """Return the size of a request in bytes: the request line, and the headers Host, Accept and Connection."""
        path = "/" + self.url.partition("://")[2].partition("/")[2]
        lines = (f"GET {path} HTTP/1.1", *headers(self), "")
        return len("".join(f"{line}\r\n" for line in lines).encode())


class LoadResult(LoadCounts):
    """The counts of a load, and the resources that the generator used."""

    cpu_seconds: float  # CPU time of the generator
    wait_seconds: float | None = None  # time during which the generator's threads waited for a CPU; unknown for wrk
    parts: "tuple[LoadResult, ...]" = ()  # results of each client, if there are several
    in_time: int | None = None  # successful responses before the end of the load; unknown for wrk
    account: RequestCounts | None = None  # counts of all requests; unknown for wrk


class LoadGenerator(Protocol):
    """A converter from a load to a command line, and from the output to a result."""

    @property
    def name(self) -> Literal["loadgen", "wrk"]:
        """Return the name that profiles use."""

    @property
    def program(self) -> str:
        """Return the program to start, as a path or as a name that the runtime knows."""

    @property
    def waits_for_go(self) -> bool:
        """Return whether the generator prints ``ready`` after it has connected, and starts after the line ``go``."""

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Return the arguments of ``program``, and write its input files to the folder.

        The generator writes ``RESPONSES_FILE`` to the same folder.
        """

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Return the result of all clients from their concatenated output. Raises LoadError for invalid output."""


def headers(run: LoadRun) -> tuple[str, ...]:
    """Return the headers of every request, as wrk sends them."""
    return f"Host: {run.host}", f"Accept: {run.accept}", "Connection: keep-alive"
