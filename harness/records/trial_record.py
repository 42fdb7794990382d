"""The record of a trial, which is a line of trials.jsonl."""

from typing import Annotated, Literal, Self

from pydantic import Field

from harness.records.loads import Load
from harness.records.measurements import LoadCounts, LoadObservations, Window
from harness.records.record import Int64, Record
from harness.records.verification_record import CheckResult, Outcome

# A just-in-time compiler counts as busy above this share of the server's CPU time (docs/method.md).
COMPILING_SHARE = 0.10


class ValidityCheck(Record):
    """Result of a trial's validity check: ``fail`` excludes the trial from rankings, ``warn`` adds a flag in tables."""

    name: str  # check name, for example "errors", "connections", "response-size" or "generator-bound"
    outcome: Outcome  # fail excludes the trial from rankings, and warn adds a flag
    value: float | None  # measured value; None if unknown
    threshold: float | None  # upper or lower limit of the value, depending on the check; None if unknown
    flag: str = ""  # text shown next to the trial's result in tables; empty if the check passed


class WarmUp(Record):
    """A process's warm-up for a test type."""

    duration: Annotated[float, Field(alias="duration_seconds")]  # warm-up duration
    requests: Int64  # number of responses during the warm-up
    steady: bool | None  # whether a steady state was reached; None if the warm-up has a fixed length
    seconds_to_steady: float | None  # time until the steady state; None if the steady state was not reached
    # Maximum latency during the warm-up; None for pipelined requests.
    worst_latency: Annotated[float | None, Field(alias="worst_latency_seconds")]
    windows: tuple[Window, ...] = ()  # measurements in windows of about one second


class TrialEvidence(Record):
    """Results of checks on the responses that the server sent during the trial."""

    judged: Int64  # number of responses that the load generator saved and tfb checked
    received: Int64  # total number of responses, saved or not
    objections: tuple[CheckResult, ...] = ()  # results of checks that did not pass


Purpose = Literal["measure", "witness", "share", "common", "search"]


class Trial(LoadCounts, LoadObservations):
    """A measurement of a cell (implementation x test type x load) in a process."""

    id: str  # trial name, unique in the run
    implementation: str  # implementation name
    test_type: str  # test type name
    load: Load  # load that the generator applied
    process: Int64  # process number, from 0 for each implementation
    round: Int64 = 0  # round number, from 0 for each process
    # Role of the trial: "measure" (contributes to the cell's result), "witness" (repeats a measurement with the
    # independent load generator), "share" (the rate is a share of the process's closed-loop throughput), "common" (all
    # implementations get the same rate), or "search" (part of the capacity search).
    purpose: Purpose = "measure"
    share: float | None = None  # rate as a share of the process's closed-loop throughput, for the purpose "share"
    generator: str = "loadgen"  # load generator: "loadgen", or a witness such as "wrk"
    asked_duration: Annotated[float, Field(alias="asked_duration_seconds")]  # planned duration of the trial
    # Successful responses per second or, in a scenario, complete arrivals per second.
    throughput: Annotated[float, Field(alias="requests_per_second")]
    # Server's CPU time per response or, in a scenario, per due arrival; None if unknown.
    cpu_per_request: Annotated[float | None, Field(alias="cpu_seconds_per_request")]
    generator_cpu_seconds: float  # load generator's CPU time
    generator_threads: Int64  # number of load generator threads
    warm_up: WarmUp | None = None  # warm-up of the test type, recorded in the first trial after the warm-up
    # Whether the latest warm-up of the test type reached a steady state; None if it had a fixed length.
    steady: bool | None = None
    # Results of checks on the responses; None if the load generator does not save responses.
    evidence: TrialEvidence | None = None
    validity: tuple[ValidityCheck, ...] = ()  # validity check results
    # Share of the network link's capacity (measured before the run) that the load used; None on a single machine.
    link_share: float | None = None

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
