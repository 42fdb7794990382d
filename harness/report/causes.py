"""Groups violations that have the same cause, so that reports list each cause only once."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.records.outcome import Outcome
from harness.records.verification_record import CheckResult, VerificationRecord
from harness.stats.unranked import WHOLE_SERVER

_TARGET = re.compile(r"^GET \S+: ")
_COUNT = re.compile(r" \(and \d+ more like it\)$")
_NUMBER = re.compile(r"(?!\b[1-5]\d\d\b)\b\d+(?:[.,]\d+)*\b")  # numbers except HTTP status codes


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A violation, and the test types in which it occurs."""

    result: CheckResult  # from the first of these test types
    test_types: tuple[str, ...]


def format_result(result: CheckResult) -> str:
    """Format a failed result as text."""
    expected = "" if result.expected is None else f". Expected {result.expected}"
    got = f", got {result.actual}" if expected and result.actual is not None else ""
    return f"{result.check} ({result.rule}): {result.message}{expected}{got}"


def group_causes(found: Iterable[tuple[str, CheckResult]]) -> list[Cause]:
    """Group failed results by cause, in order of appearance.

    ``found`` contains pairs of test type and result.
    """
    groups: dict[tuple[object, ...], list[tuple[str, CheckResult]]] = {}
    for kind, result in found:
        if result.outcome is not Outcome.PASS:
            groups.setdefault(cause_key(result), []).append((kind, result))
    return [
        Cause(result=group[0][1], test_types=tuple(dict.fromkeys(kind for kind, _ in group)))
        for group in groups.values()
    ]


def group_verdict_causes(verdicts: Sequence[VerificationRecord]) -> list[Cause]:
    """Return the distinct causes in several verification records of an implementation."""
    return group_causes((verdict.test_type, result) for verdict in verdicts for result in verdict.results)


def format_test_types(cause: Cause, every: Sequence[str]) -> str:
    """Format the test types of a cause, or return ``all test types`` if the cause affects all of ``every``."""
    own = [kind for kind in cause.test_types if kind != WHOLE_SERVER]
    whole = len(own) > 2 and set(own) >= set(every) - {WHOLE_SERVER}
    return "all test types" if whole else ", ".join(cause.test_types)


def cause_key(result: CheckResult) -> tuple[object, ...]:
    """Return a key that is equal for results with the same cause. Paths and numbers are ignored."""

    def plain(text: str | None) -> str:
        return _NUMBER.sub("0", _COUNT.sub("", _TARGET.sub("", text or "")))

    return result.check, result.rule, result.outcome, result.waived, plain(result.message), plain(result.expected)
