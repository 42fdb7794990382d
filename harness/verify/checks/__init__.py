"""What a check is: a pure function from evidence to findings, with a name, a rule and the tests that it holds for.

Evidence is gathered once (``verification``, ``probe``), then every check looks at it; none talks to a server. The
explicit list of all checks is ``registry``; the rules are the paragraphs of docs/requirements.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import CheckResult, Outcome
from harness.verify.checks.evidence import Evidence
from harness.verify.rules import binds

SERVER = "http"  # the checks of the server as a whole, not of one test type
LOAD = "load"  # the checks of a whole replicate, once its server has stopped

Applies = Callable[[str], bool]  # whether a check holds for the test type of this name, SERVER or LOAD


def having(trait: Callable[[TestType], bool]) -> Applies:
    """The registered test types with a trait, whenever they were registered."""
    return lambda name: name in TEST_TYPES and trait(TEST_TYPES[name])


def everywhere(name: str) -> bool:
    """Each test type, and the server as a whole."""
    return name == SERVER or name in TEST_TYPES


ALL_TYPES = having(lambda _: True)
JSON_TYPES = having(lambda kind: kind.media_type == "application/json")
ROW_TYPES = having(lambda kind: kind.has_rows)
QUERY_TYPES = having(lambda kind: kind.counts_rows)
PAGE_TYPES = having(lambda kind: kind.answer == "page")
GREETING_TYPES = having(lambda kind: kind.answer == "greeting")
READING_TYPES = having(lambda kind: kind.has_rows and not kind.writes_database)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One violation that a check found."""

    message: str  # one sentence
    expected: str | None = None
    actual: str | None = None
    outcome: Outcome = Outcome.FAIL
    accepted: bool = False  # by TechEmpower's verification, although its rules ask for the paragraph


Find = Callable[[Evidence], Iterator[Finding]]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A registered check."""

    name: str
    rule: str
    applies: Applies
    find: Find
    needs: Callable[[Evidence], bool]  # does this evidence hold what the check looks at?
    enough: Callable[[Evidence], bool] = lambda _: True  # is it so much that no objection means something?

    def holds_for(self, evidence: Evidence) -> bool:
        """True when the check has something to look at."""
        return self.applies(evidence.test_type) and self.needs(evidence)

    def speaks(self, result: CheckResult, evidence: Evidence) -> bool:
        """Whether a result belongs into a verdict: one without an objection claims no more than was looked at."""
        return result.outcome is not Outcome.PASS or self.enough(evidence)

    def run(self, evidence: Evidence) -> CheckResult:
        """The worst finding, with how many there were; a pass when there was none."""
        findings = list(self.find(evidence))
        if not findings:
            return CheckResult(check=self.name, rule=self.rule, outcome=Outcome.PASS)
        relaxed = evidence.rules == "techempower"
        fails = binds(self.rule, evidence.rules)
        waived: list[Finding] = []
        binding: list[Finding] = []
        # In one pass: a spelling that differs is found in each of tens of thousands of rows.
        for finding in findings:
            if finding.outcome is Outcome.FAIL:
                (waived if not fails or (relaxed and finding.accepted) else binding).append(finding)
        worst = (binding or waived or findings)[0]
        more = f" (and {len(findings) - 1} more like it)" if len(findings) > 1 else ""
        return CheckResult(
            check=self.name,
            rule=self.rule,
            outcome=Outcome.FAIL if binding else Outcome.WARN,
            message=worst.message + more,
            expected=worst.expected,
            actual=worst.actual,
            waived=bool(waived) and not binding,
        )


def check(
    rule: str,
    where: Applies | frozenset[str],
    needs: Callable[[Evidence], bool] = lambda evidence: bool(evidence.exchanges or evidence.crowd),
    enough: Callable[[Evidence], bool] = lambda _: True,
) -> Callable[[Find], Check]:
    """Make a check of a function; its name is the function's, in kebab case.

    ``where``: the test types with a trait (``having``), or names, where the requirement is that of one test type.
    """
    applies = where.__contains__ if isinstance(where, frozenset) else where

    def make(function: Find) -> Check:
        name = getattr(function, "__name__", "").replace("_", "-")
        return Check(name=name, rule=rule, applies=applies, find=function, needs=needs, enough=enough)

    return make


def shown(data: bytes | str, limit: int = 160) -> str:
    """A body as a person can read it in a message."""
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
