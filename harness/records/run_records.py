"""Records of a run's processes and progress, and the combined content of a run's folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from harness.records.loads import Load
from harness.records.measurements import Window
from harness.records.record import EpochSeconds, Int64, Record
from harness.records.run_info import RunInfo
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord


class ProcessRecord(Record):
    """A fresh start of an implementation: the startup time, trials and failures."""

    implementation: str  # implementation name
    process: Int64  # process number, from 0 for each implementation
    started_at: EpochSeconds  # start time, in seconds since 1970
    # Time from the start to the first successful response; None if the start failed.
    startup_time: Annotated[float | None, Field(alias="startup_time_seconds")]
    status: Literal["ok", "failed", "interrupted"]  # whether the process was measured completely
    reason: str = ""  # why the process failed; empty otherwise
    exit_reason: str = ""  # how the server exited, if it exited unexpectedly; otherwise empty
    log: str | None = None  # path of the server's log, relative to the run's folder
    trials: Int64 = 0  # number of lines in trials.jsonl that belong to the process
    failed_loads: dict[str, tuple[Load, ...]] = Field(default_factory=dict)  # test type -> planned loads that failed
    # Test type -> planned loads that the run had no time to measure.
    unreached: dict[str, tuple[Load, ...]] = Field(default_factory=dict)


class ReadProblem(Record):
    """A problem with a file of a run, for example an unreadable line."""

    file: str  # path relative to the run's folder
    message: str


class RunProgress(Record):
    """The progress of a run, as stored in progress.json."""

    status: str = "running"
    stage: str = "starting"
    process: Int64 = 0  # process number, from 1 for each implementation; 0 before the first process
    round: Int64 = 0  # round of the latest trial, from 1; 0 before the first trial
    implementation: str = ""
    test_type: str = ""
    load: str = ""
    elapsed: Annotated[float, Field(alias="elapsed_seconds")] = 0.0
    # Time from the start of the run to the first process, including builds.
    preparation: Annotated[float, Field(alias="preparation_seconds")] = 0.0
    remaining: Annotated[float | None, Field(alias="remaining_seconds")] = None
    windows: tuple[Window, ...] = ()  # current load's windows


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """The readable records of a run."""

    info: RunInfo
    trials: Sequence[Trial] = ()
    processes: Sequence[ProcessRecord] = ()
    verdicts: Sequence[VerificationRecord] = ()
    problems: tuple[str, ...] = ()  # a message for each unreadable file, key or line
