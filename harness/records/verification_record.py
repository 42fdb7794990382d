"""Results of verification, which are the lines of verdicts.jsonl."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from harness.records.record import Int64, Record


class Outcome(StrEnum):
    """Outcome of a check."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    WARN = "warn"
    FAIL = "fail"


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the most severe outcome, or PASS if there are no outcomes."""
    occurring = set(outcomes)
    return next((outcome for outcome in (Outcome.FAIL, Outcome.WARN) if outcome in occurring), Outcome.PASS)


WHOLE_SERVER = "http"  # replaces the test type in verdicts on the whole server


class CheckResult(Record):
    """The result of a check, for example of a response or of the database."""

    check: str  # unique name in kebab case
    rule: str  # paragraph in docs/requirements.md, for example "query.3"
    outcome: Outcome
    message: str = ""  # empty if the check passed
    expected: str | None = None
    actual: str | None = None
    waived: bool = False  # whether this warning would be a failure under tfb's rules


class VerificationRecord(Record):
    """The check results of an implementation and a test type in a process. Later records replace earlier records."""

    implementation: str
    test_type: str
    process: Int64
    thorough: bool  # True in the first process; later processes are verified briefly
    outcome: Outcome
    results: tuple[CheckResult, ...]
    duration: Annotated[float, Field(alias="duration_seconds")]
    # Number of queries (or "") -> minimum and maximum mean size of responses, in bytes including headers. A validity
    # check compares the mean size of a trial's responses with this range.
    response_bytes: dict[str, tuple[float, float]] = Field(default_factory=dict)
