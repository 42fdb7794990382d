"""Results of verification: the lines of verdicts.jsonl."""

from typing import Annotated

from pydantic import Field

from harness.records.outcome import Outcome
from harness.records.record import Int64, Record


class CheckResult(Record):
    """The result of one check on a response or on the state of a server."""

    check: str  # unique name in kebab case
    rule: str  # paragraph of docs/requirements.md, for example "query.3"
    outcome: Outcome
    message: str = ""  # one sentence; empty if the check passed
    expected: str | None = None
    actual: str | None = None
    waived: bool = False  # a warning that would be a failure under the rules of tfb


class VerificationRecord(Record):
    """The check results of an implementation and a test type in one process.

    A later record with the same implementation, test type and process replaces an earlier one.
    """

    implementation: str
    test_type: str
    process: Int64
    thorough: bool  # True in the first process; later processes are checked briefly
    outcome: Outcome
    results: tuple[CheckResult, ...]
    duration: Annotated[float, Field(alias="duration_seconds")]
    # Smallest and largest size of verified responses on the wire, headers included. The validity check of the response
    # size compares bytes / requests of a trial with this range. Keys: number of queries, or "" without queries.
    response_bytes: dict[str, tuple[float, float]] = Field(default_factory=dict)
