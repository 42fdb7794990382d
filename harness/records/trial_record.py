"""The record of a trial, which is a line in trials.jsonl."""

from typing import Annotated, Literal, Self

from pydantic import Field

from harness.records.loads import Load
from harness.records.measurements import LoadCounts, LoadObservations, Window
from harness.records.outcome import Outcome
from harness.records.record import Int64, Record
from harness.records.verification_record import CheckResult


class ValidityCheck(Record):
    """A validity check of a trial: ``fail`` excludes the trial from rankings, ``warn`` adds a flag in tables."""

    name: str  # "errors", "connections", "response-size", "overrun", "restarted", "generator-bound", "contended", ...
    outcome: Outcome
    value: float | None  # measured value; None if unknown
    threshold: float | None
    flag: str = ""  # text shown next to the value in tables; empty if the check passed


class WarmUp(Record):
    """The warm-up of a test type."""

    duration: Annotated[float, Field(alias="duration_seconds")]
    requests: Int64
    steady: bool | None  # True: the steady state was reached; None: the warm-up has a fixed length
    seconds_to_steady: float | None
    # Maximum latency during the warm-up; None with pipelining.
    worst_latency: Annotated[float | None, Field(alias="worst_latency_seconds")]
    windows: tuple[Window, ...] = ()


class TrialEvidence(Record):
    """Result of the checks on responses of the trial itself."""

    judged: Int64  # number of responses that the load generator saved and the checks examined
    received: Int64  # number of all responses
    objections: tuple[CheckResult, ...] = ()  # results of checks that did not pass


Purpose = Literal["measure", "witness", "share", "common", "search"]
# measure: counts for its cell. witness: by the other load generator, only for comparison. share: an open loop at a
# share of the process's closed-loop throughput. common: a rate that is the same for all. search: part of the capacity
# search.


class Trial(LoadCounts, LoadObservations):
    """A measurement of a cell (implementation x test type x load) in one process."""

    id: str
    implementation: str
    test_type: str
    load: Load
    process: Int64  # number of the implementation's process, from 0
    round: Int64 = 0  # number of the visit to the cell within this process, from 0; each round visits each cell once
    purpose: Purpose = "measure"
    share: float | None = None  # relative to the process's closed-loop throughput; only for purpose "share"
    generator: str = "loadgen"  # the other value is "wrk"
    asked_duration: Annotated[float, Field(alias="asked_duration_seconds")]
    # Only responses with status 2xx; in a scenario, complete arrivals.
    throughput: Annotated[float, Field(alias="requests_per_second")]
    cpu_per_request: Annotated[float | None, Field(alias="cpu_seconds_per_request")]  # in a scenario, per due arrival
    generator_cpu_seconds: float
    generator_threads: Int64
    warm_up: WarmUp | None = None  # recorded in the first trial after the warm-up
    steady: bool | None = None  # True if the latest warm-up of the test type reached a steady state
    evidence: TrialEvidence | None = None  # None if the load generator does not save responses
    validity: tuple[ValidityCheck, ...] = ()
    link_share: float | None = None  # relative to the network throughput measured before the run

    @property
    def rankable(self) -> bool:
        """True if no validity check failed."""
        return all(check.outcome is not Outcome.FAIL for check in self.validity)

    def without_series(self) -> tuple[Self, int]:
        """Return the trial without windows and histograms, and the number of removed values."""
        windows = (*self.windows, *(self.warm_up.windows if self.warm_up else ()))
        steps = sum(len(times.histogram) for times in (self.latency, self.service) if times)
        if not windows and not steps:
            return self, 0
        warm_up = self.warm_up and self.warm_up.model_copy(update={"windows": ()})
        shorter = self.without_histograms().model_copy(update={"windows": (), "warm_up": warm_up})
        return shorter, len(windows) * (len(Window.model_fields) + 1) + steps * 3

    def without_histograms(self) -> Self:
        """Return the trial without latency histograms. Percentiles remain."""
        shorter = {
            name: times.model_copy(update={"histogram": ()})
            for name in ("latency", "service")
            if (times := getattr(self, name)) and times.histogram
        }
        return self.model_copy(update=shorter)
