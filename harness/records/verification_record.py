"""Records of verification: lines of verdicts.jsonl."""

from typing import Annotated

from pydantic import Field

from harness.records.outcome import Outcome
from harness.records.record import Int64, Record


class CheckResult(Record):
    """One check of one response or state: what was expected, what came, and the rule that it enforces."""

    check: str  # kebab-case name of the check, unique within the registry
    rule: str  # paragraph of docs/requirements.md, e.g. "query.3"
    outcome: Outcome
    message: str = ""  # one sentence; empty on a pass
    expected: str | None = None
    actual: str | None = None
    waived: bool = False  # a warning that would be a failure under this project's own rules


class VerificationRecord(Record):
    """All check results of one implementation x test type in one process; the last one written counts."""

    implementation: str
    test_type: str
    process: Int64
    thorough: bool  # True in the first process; later ones check briefly
    outcome: Outcome
    results: tuple[CheckResult, ...]
    duration: Annotated[float, Field(alias="duration_seconds")]
    # Size of one response on the wire, headers included: the range that verified responses showed, at the level's query
    # count; bytes / requests of a sample is held against it. Keys: str(queries) or "" where the test has none.
    response_bytes: dict[str, tuple[float, float]] = Field(default_factory=dict)
