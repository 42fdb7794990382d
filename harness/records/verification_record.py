"""Results of verification, which are the lines of verdicts.jsonl."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from harness.records.record import Int64, Record


class Outcome(StrEnum):
    """Outcome of a check. A failure excludes the trial or the implementation from the ranking."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    WARN = "warn"
    FAIL = "fail"


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the most severe outcome, or PASS if there are no outcomes."""
    occurring = set(outcomes)
    return next((outcome for outcome in (Outcome.FAIL, Outcome.WARN) if outcome in occurring), Outcome.PASS)


WHOLE_SERVER = "http"  # used in place of a test type in verdicts on the whole server


class CheckResult(Record):
    """The result of a check, for example on a response or on the database."""

    check: str  # unique name in kebab case
    rule: str  # paragraph in docs/requirements.md, for example "query.3"
    outcome: Outcome  # fail excludes the implementation from the ranking of the test type
    message: str = ""  # description of the violation; empty if the check passed
    expected: str | None = None  # expected value, if the check compares values
    actual: str | None = None  # actual value, if the check compares values
    waived: bool = False  # whether this warning would be a failure under tfb's rules


class VerificationRecord(Record):
    """Verification of an implementation and test type in a process. If there are several records, the last counts."""

    implementation: str  # implementation name
    test_type: str  # test type name, or `http` for the whole server
    process: Int64  # process number, counted from 0 for each implementation
    thorough: bool  # true for the first process; later processes are verified only briefly
    outcome: Outcome  # most severe outcome of the checks
    results: tuple[CheckResult, ...]  # results of all checks
    duration: Annotated[float, Field(alias="duration_seconds")]  # duration of the verification
    # Number of queries per request (or "" for test types without queries) -> (minimum, maximum) of the mean response
    # size in bytes, including headers. A validity check compares the mean response size of each trial with this range.
    response_bytes: dict[str, tuple[float, float]] = Field(default_factory=dict)
