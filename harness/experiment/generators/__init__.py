"""The interface of load generators, with the parameters and the result of a load. ``registry`` lists the generators."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from harness.plan.requests import PreparedRequest
from harness.plan.scenarios import UseCase
from harness.plan.testtypes import LoadProtocol
from harness.records.loads import Load
from harness.records.measurements import LoadCounts
from harness.verify.checks.evidence import RequestCounts, Sampling

GeneratorName = Literal["loadgen", "wrk", "h2load", "websocket-witness"]

RESPONSES_FILE = "responses.jsonl"  # the generator writes sampled responses to this file in the load's folder
DRAIN_SECONDS = 2.0  # maximum wait for responses after the end of an open loop or a scenario
MIN_LAG_SECONDS = 100e-6  # a generator lag below this limit is ignored


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """Parameters for running a load against a server."""

    url: str
    host: str  # value of the Host header
    accept: str  # value of the Accept header
    load: Load
    seconds: float
    threads: int
    seed: int
    unix: str = ""  # Unix socket to connect to instead of the URL's address
    protocol: LoadProtocol = "http1"
    tls_fixed: bool = False  # whether to offer a single set of TLS parameters and never resume a session
    # None: record no responses. Otherwise, scenarios record all responses, and other loads record a sample.
    sampling: Sampling | None = None
    # Requests from which the generator chooses at random. If empty, it requests ``url``.
    requests: Sequence[PreparedRequest] = ()
    use_cases: Sequence[UseCase] = ()  # use cases of a scenario
    late_after: float | None = None  # latency goal in seconds; ``LoadResult.late`` counts requests that missed it
    lag_share: float = 0.2  # ``LoadResult.sent_late`` counts requests with a lag above this fraction of p99 latency

    @property
    def request_bytes(self) -> int:
        """The size of a request in bytes, including headers."""
        path = "/" + self.url.partition("://")[2].partition("/")[2]
        lines = (f"GET {path} HTTP/1.1", *headers(self), "")
        return len("".join(f"{line}\r\n" for line in lines).encode())


class LoadResult(LoadCounts):
    """A load's counts, and the resources that the generator used."""

    cpu_seconds: float  # CPU time of the generator
    wait_seconds: float | None = None  # time that generator threads waited for a CPU; known only for loadgen
    parts: "tuple[LoadResult, ...]" = ()  # results of the individual clients, if several clients generated the load
    in_time: int | None = None  # successful responses before the end of the load; known only for loadgen
    account: RequestCounts | None = None  # counts of all requests; known only for loadgen


class LoadGenerator(Protocol):
    """An adapter for a load generator program. It builds command lines for loads, and parses the program's output."""

    @property
    def name(self) -> GeneratorName:
        """The generator's name in profiles and records."""

    @property
    def program(self) -> str:
        """The program to start: a path, or a name that the runtime resolves."""

    @property
    def waits_for_go(self) -> bool:
        """True if the generator connects, prints ``ready``, and waits for the line ``go`` before it sends requests."""

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Write the input files to the folder and return the arguments. The program writes ``RESPONSES_FILE`` there."""

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Return the result of all clients from their concatenated output. Raises LoadError for invalid output."""


def headers(run: LoadRun) -> tuple[str, ...]:
    """Return the headers of every request. loadgen and wrk send the same headers."""
    return f"Host: {run.host}", f"Accept: {run.accept}", "Connection: keep-alive"
