"""What a check is: a pure function from evidence to findings, with a name, a rule and the tests that it holds for.

Evidence is gathered once (``verification``, ``trial``), then every check looks at it; none talks to a server. All
checks are listed by ``registry``; the rules are the paragraphs of docs/requirements.md. By the rules ``tfb`` all of
them bind; ``techempower`` fails what TechEmpower's rules ask for, and what is dishonest or wrong in data whoever looks,
and the rest warns. The page carries the same marks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.plan.discovery import Rules
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import CheckResult, Outcome
from harness.verify.checks.evidence import Evidence, Exchange

SERVER = "http"  # the checks of the server as a whole, not of one test type
LOAD = "load"  # what the database counted around a load, or over a process

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


@dataclass(frozen=True)
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
        binding: list[Finding] = []
        waived: list[Finding] = []
        fails, relaxed = binds(self.rule, evidence.rules), evidence.rules == "techempower"
        # In one pass: a spelling that differs is found in each of tens of thousands of rows.
        for finding in findings:
            if finding.outcome is Outcome.FAIL:
                (waived if not fails or (relaxed and finding.accepted) else binding).append(finding)
        worst = (binding or waived or findings)[0]
        return CheckResult(
            check=self.name,
            rule=self.rule,
            outcome=Outcome.FAIL if binding else Outcome.WARN,
            message=worst.message + (f" (and {len(findings) - 1} more like it)" if len(findings) > 1 else ""),
            expected=worst.expected,
            actual=worst.actual,
            waived=bool(waived) and not binding,
        )


def asked(evidence: Evidence) -> bool:
    """Whether anything was asked."""
    return bool(evidence.exchanges or evidence.crowd)


def check(
    rule: str,
    where: Applies | frozenset[str],
    needs: Callable[[Evidence], bool] = asked,
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


def each(
    rule: str, where: Applies | frozenset[str], *, good: bool = True
) -> Callable[[Callable[[Exchange], Iterator[Finding]]], Check]:
    """Make a check of a function of one exchange, of status 200 if ``good``; messages begin with its target."""

    def make(function: Callable[[Exchange], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            for exchange in evidence.good if good else evidence.all:
                for finding in function(exchange):
                    yield replace(finding, message=f"GET {exchange.target}: {finding.message}")

        find.__name__ = getattr(function, "__name__", "")
        return check(rule, where)(find)

    return make


def shown(data: bytes | str, limit: int = 160) -> str:
    """A body as a person can read it in a message."""
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


class Standing(StrEnum):
    """What a paragraph is under TechEmpower's rules; the values are the marks of docs/requirements.md."""

    ASKED = "TE"  # their rules ask for it, and their verification, or their reviewers, refuse what does not
    DATA = "data"  # an answer would be dishonest or wrong: it fails, whether or not their verification sees it
    OURS = "ours"  # they do not ask for it: it warns


_MARKS: dict[Standing, str] = {
    Standing.ASKED: (
        "http.1 http.2 http.4 http.6 http.7 http.9 http.10 http.11 json.1 json.2 json.4 plaintext.1 rows.1 "
        "rows.2 rows.3 count.1 statements.2 statements.3 statements.5 statements.6 fortune.1 fortune.2 "
        "fortune.3 fortune.4"
    ),
    Standing.DATA: (
        "json.3 rows.4 rows.5 random.1 random.2 random.3 random.4 update.1 update.2 update.3 update.4 "
        "update.6 update.7 fortune.5 load.1 load.2 load.3 load.4 load.5 load.6 load.7 "
        "delay.1 fan-out.4 fan-out.5 "
        "order.5 order.7 order.8 order.9 order.10 order.11 order.12 order.13 order.14 order.15 order.16 order.17 "
        "order.18 order.19 order.20 order.21 order.22 order.23 "
        "declared.1"
    ),
    Standing.OURS: (
        "http.3 http.5 http.8 http.12 http.13 http.14 http.15 http.16 http.17 http.18 http.19 http.20 http.21 "
        "http.22 http.23 http.24 delay.2 delay.3 fan-out.1 fan-out.2 fan-out.3 update.5 statements.1 statements.4 "
        "order.1 order.2 order.3 order.4 order.6"
    ),
}
STANDING: dict[str, Standing] = {
    paragraph: standing for standing, paragraphs in _MARKS.items() for paragraph in paragraphs.split()
}


def binds(paragraph: str, rules: Rules) -> bool:
    """Whether a violation of the paragraph fails; one that is not listed does, so that a new one is never lost."""
    return rules == "tfb" or STANDING.get(paragraph, Standing.DATA) is not Standing.OURS
