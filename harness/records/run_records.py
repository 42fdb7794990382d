"""The content of a run's folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from harness.records.measurements import Window
from harness.records.process_record import ProcessRecord
from harness.records.record import Int64, Record
from harness.records.run_info import RunInfo
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord


class ReadProblem(Record):
    """A file of a run that cannot be read completely."""

    file: str  # relative to the run's folder
    message: str


class RunProgress(Record):
    """The progress of a run: progress.json."""

    status: str = "running"
    stage: str = "starting"
    process: Int64 = 0  # number of the implementation's process, from 1; 0 before the first process
    round: Int64 = 0  # round of the latest trial, from 1; 0 before the first trial
    implementation: str = ""
    test_type: str = ""
    load: str = ""
    elapsed: Annotated[float, Field(alias="elapsed_seconds")] = 0.0
    remaining: Annotated[float | None, Field(alias="remaining_seconds")] = None
    windows: tuple[Window, ...] = ()  # windows of the current load


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """The readable records of a run."""

    info: RunInfo
    trials: Sequence[Trial] = ()
    processes: Sequence[ProcessRecord] = ()
    verdicts: Sequence[VerificationRecord] = ()
    problems: tuple[str, ...] = ()  # a message for each unreadable file, key or line
