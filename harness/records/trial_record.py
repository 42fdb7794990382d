"""The record of a trial: a line of trials.jsonl."""

from typing import Annotated, Literal, Self

from pydantic import Field

from harness.records.loads import Load
from harness.records.measurements import LoadCounts, LoadObservations, Window
from harness.records.outcome import Outcome
from harness.records.record import Int64, Record
from harness.records.verification_record import CheckResult


class ValidityCheck(Record):
    """A validity check of a trial: ``fail`` excludes the trial from the ranking, ``warn`` shows a flag in tables."""

    name: str  # "errors", "connections", "response-size", "overrun", "restarted", "generator-bound", "contended", ...
    outcome: Outcome
    value: float | None  # what was seen
    threshold: float | None  # what config/ allows
    flag: str = ""  # shown beside the figure in tables; empty on a pass


class WarmUp(Record):
    """What the warm-up of one test type showed."""

    duration: Annotated[float, Field(alias="duration_seconds")]
    requests: Int64
    steady: bool | None  # None: a fixed-time warm-up that does not decide
    seconds_to_steady: float | None
    worst_latency: Annotated[float | None, Field(alias="worst_latency_seconds")]  # while cold; None when pipelined
    windows: tuple[Window, ...] = ()


class TrialEvidence(Record):
    """Result of the checks on responses of the trial itself."""

    judged: Int64  # responses that the load generator saved and the checks judged
    received: Int64  # all responses
    objections: tuple[CheckResult, ...] = ()  # checks that did not pass


Purpose = Literal["measure", "witness", "share", "common", "search"]
# measure: stands for its cell. witness: by the other generator, compared and not ranked. share, common: an open loop at
# a share of the process's own closed-loop throughput, or at a rate that all are given. search: for the capacity.


class Trial(LoadCounts, LoadObservations):
    """What one load on one cell (implementation x test type x load) of one process showed: a line of trials.jsonl."""

    id: str
    implementation: str
    test_type: str
    load: Load
    process: Int64  # which fresh process of the implementation, from 0
    round: Int64 = 0  # which visit of the cell in this process; all cells are visited once a round
    purpose: Purpose = "measure"
    share: float | None = None  # of the closed-loop throughput of the same process; None but for purpose "share"
    generator: str = "loadgen"  # or "wrk"
    asked_duration: Annotated[float, Field(alias="asked_duration_seconds")]
    throughput: Annotated[float, Field(alias="requests_per_second")]  # only 2xx; of a scenario whole arrivals
    cpu_per_request: Annotated[float | None, Field(alias="cpu_seconds_per_request")]  # of a scenario per arrival due
    generator_cpu_seconds: float
    generator_threads: Int64
    warm_up: WarmUp | None = None  # of this test type in this process; carried by the first trial after it
    steady: bool | None = None  # did the warm-up before it reach a steady state
    evidence: TrialEvidence | None = None  # None: by a generator that writes no answers out
    validity: tuple[ValidityCheck, ...] = ()
    link_share: float | None = None  # of the throughput that the links between clients and server showed before the run

    @property
    def rankable(self) -> bool:
        """Whether no validity check failed."""
        return all(check.outcome is not Outcome.FAIL for check in self.validity)

    def without_series(self) -> tuple[Self, int]:
        """Return the trial without windows and its own histograms, and the number of values that these have."""
        windows = (*self.windows, *(self.warm_up.windows if self.warm_up else ()))
        steps = sum(len(times.histogram) for times in (self.latency, self.service) if times)
        if not windows and not steps:
            return self, 0
        warm_up = self.warm_up and self.warm_up.model_copy(update={"windows": ()})
        shorter = self.without_histograms().model_copy(update={"windows": (), "warm_up": warm_up})
        return shorter, len(windows) * (len(Window.model_fields) + 1) + steps * 3

    def without_histograms(self) -> Self:
        """Return the trial without what its percentiles tell in fewer bytes."""
        shorter = {
            name: times.model_copy(update={"histogram": ()})
            for name in ("latency", "service")
            if (times := getattr(self, name)) and times.histogram
        }
        return self.model_copy(update=shorter)
