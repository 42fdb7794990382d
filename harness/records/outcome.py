"""Outcomes of checks."""

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """Outcome of a check."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    WARN = "warn"
    FAIL = "fail"


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Fail over warn over pass; a pass when there are none."""
    found = set(outcomes)
    return next((outcome for outcome in (Outcome.FAIL, Outcome.WARN) if outcome in found), Outcome.PASS)
