"""The record of a process, which is a line in processes.jsonl."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.loads import Load
from harness.records.record import EpochSeconds, Int64, Record


class ProcessRecord(Record):
    """A fresh start of an implementation."""

    implementation: str
    process: Int64
    started_at: EpochSeconds
    startup_time: Annotated[float | None, Field(alias="startup_time_seconds")]  # until the first successful response
    status: Literal["ok", "failed", "interrupted"]
    reason: str = ""
    log: str | None = None  # path relative to the run's folder
    trials: Int64 = 0  # number of the process's lines in trials.jsonl
    # Planned loads without a trial, by test type: failed loads, and loads that the time limit prevented.
    failed_loads: dict[str, tuple[Load, ...]] = Field(default_factory=dict)
    unreached: dict[str, tuple[Load, ...]] = Field(default_factory=dict)
