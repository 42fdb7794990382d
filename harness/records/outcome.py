"""The outcome of a check."""

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """Outcome of a check."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    WARN = "warn"
    FAIL = "fail"


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the most severe outcome, or PASS if there are no outcomes."""
    occurring = set(outcomes)
    return next((outcome for outcome in (Outcome.FAIL, Outcome.WARN) if outcome in occurring), Outcome.PASS)
