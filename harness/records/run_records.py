"""Contents of a run's folder, and the progress of a run under way."""

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
    """Something of a run that cannot be read: the file, and what is wrong with it."""

    file: str  # relative to the run's folder
    message: str


class RunProgress(Record):
    """progress.json: where a run in progress stands. Seconds; unknown is None."""

    status: str = "running"
    stage: str = "starting"
    process: Int64 = 0  # of the implementation, counted from 1; 0 before the first
    round: Int64 = 0  # of the latest trial, likewise
    implementation: str = ""
    test_type: str = ""
    load: str = ""
    elapsed: Annotated[float, Field(alias="elapsed_seconds")] = 0.0
    remaining: Annotated[float | None, Field(alias="remaining_seconds")] = None
    windows: tuple[Window, ...] = ()  # of the load that is on


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """Everything that a run's folder holds, as far as it could be read."""

    info: RunInfo
    trials: Sequence[Trial] = ()
    processes: Sequence[ProcessRecord] = ()
    verdicts: Sequence[VerificationRecord] = ()
    problems: tuple[str, ...] = ()  # one message for each file, key or line that could not be read
