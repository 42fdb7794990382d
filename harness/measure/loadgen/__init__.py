"""Load generators: what one is asked for and what it answers, behind one Protocol; ``registry`` lists them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import LoadError
from harness.records.models import Errors, Latency
from harness.records.orders import ArrivalTimes, OperationTimes


@dataclass(frozen=True, kw_only=True)
class Load:
    """One run of a load generator against one URL."""

    url: str
    host: str  # Host header
    accept: str
    seconds: float
    connections: int
    threads: int
    pipeline: int = 1

    @property
    def request_bytes(self) -> int:
        """Size of one request on the wire: request line, Host, Accept and Connection, as every generator sends them."""
        path = "/" + self.url.partition("://")[2].partition("/")[2]
        lines = (f"GET {path} HTTP/1.1", f"Host: {self.host}", f"Accept: {self.accept}", "Connection: keep-alive", "")
        return len("".join(f"{line}\r\n" for line in lines).encode())


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """What the generator counted; ``requests`` are completed responses of any status."""

    duration: float
    requests: int
    bytes: int
    errors: Errors
    latency: Latency | None  # None for pipelined runs
    cpu_seconds: float  # the generator's own
    wait_seconds: float | None = None  # that its threads were ready and had no CPU, where it tells
    parts: "tuple[LoadResult, ...]" = ()  # of each client, where several loaded together
    at_rate: "AtRate | None" = None  # of an open loop
    played: "Played | None" = None  # of a scenario


class NoTimeError(LoadError):
    """The generator's clock was set back under its load: what it counted is whole, its duration is negative."""

    def __init__(self, message: str, result: LoadResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, kw_only=True)
class AtRate:
    """What an open loop counted beside the common figures."""

    due: int  # requests whose intended send time came
    answered: int  # good answers, those after the load's end included
    unfinished: int  # sent or still queued, and never answered
    service: Latency | None
    lag_p99: float | None  # seconds that the generator was late by
    lag_max: float | None
    late: Callable[[float], int]  # good answers later than so many seconds; counted on cells at most 1/64 wide
    sent_late: Callable[[float], int] | None = None  # requests sent later than so many seconds after they were due


@dataclass(frozen=True, kw_only=True)
class Played:
    """What a scenario counted beside the common figures; arrivals: ``due`` is ``done``, ``failed``, ``unfinished``."""

    due: int
    done: int  # with good answers all the way
    failed: int  # ended by a bad answer or an error
    unfinished: int  # under way when the generator had waited long enough
    requests_due: int  # in the load's time
    requests_answered: int  # well, in the load's time
    requests_unfinished: int
    refused: int  # tries to connect
    operations: tuple[OperationTimes, ...]
    use_cases: tuple[ArrivalTimes, ...]
    latency: Latency | None  # of all requests, from the due time
    lag_p99: float | None  # seconds that the generator was late by
    lag_max: float | None
    sent_late: Callable[[float], int] | None = None  # requests sent later than so many seconds after they were due


class ScenarioGenerator(Protocol):
    """Makes the generator of a scenario: its plan, the seed of what is drawn, and a folder for its files."""

    def __call__(self, plan: Mapping[str, object], seed: int, folder: Path) -> "LoadGenerator":
        """The generator; the answers of its arrivals are in ``answers.jsonl`` in the folder afterwards."""


class RateGenerator(Protocol):
    """Makes the generator of a load at a rate (requests/s) whose arrivals are drawn from a seed."""

    def __call__(self, rate: float, seed: int) -> "LoadGenerator":
        """The generator."""


class LoadGenerator(Protocol):
    """Turns a load into arguments, and output into a result."""

    @property
    def program(self) -> str:
        """What the runtime starts: a name that it knows, or the path of a program."""

    @property
    def waits_for_go(self) -> bool:
        """Whether it says ``ready`` and begins at the word ``go``, instead of at its start."""

    @property
    def folder(self) -> Path | None:
        """Where it writes files beside its output."""

    @property
    def timeout_seconds(self) -> float:
        """How long after its time a load may take to end."""

    def arguments(self, load: Load) -> Sequence[str]:
        """Arguments of the program, without its name."""

    def result(self, load: Load, output: str) -> LoadResult:
        """Parse the program's output; raises LoadError with what it printed."""
