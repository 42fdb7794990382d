"""Results of verification, which are the lines of verdicts.jsonl."""

from typing import Annotated

from pydantic import Field

from harness.records.outcome import Outcome
from harness.records.record import Int64, Record


class CheckResult(Record):
    """The result of one check on a response or on the state of a server."""

    check: str  # unique name in kebab case
    rule: str  # paragraph in docs/requirements.md, for example "query.3"
    outcome: Outcome
    message: str = ""  # a sentence; empty if the check passed
    expected: str | None = None
    actual: str | None = None
    waived: bool = False  # a warning that would be a failure under tfb's rules


class VerificationRecord(Record):
    """The check results of an implementation and a test type in one process.

    A later record with the same implementation, test type and process replaces an earlier one.
    """

    implementation: str
    test_type: str
    process: Int64
    thorough: bool  # True in the first process; later processes are verified briefly
    outcome: Outcome
    results: tuple[CheckResult, ...]
    duration: Annotated[float, Field(alias="duration_seconds")]
    # Minimum and maximum size of verified responses on the wire, including headers. The validity check of the response
    # size compares a trial's bytes / requests with this range. Key: number of queries, or "" without queries.
    response_bytes: dict[str, tuple[float, float]] = Field(default_factory=dict)
