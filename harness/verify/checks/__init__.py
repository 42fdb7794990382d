"""What a check is: a pure function from evidence to findings, with a name, a rule and the tests that it holds for.

Evidence is gathered once (``verification``, ``trial``), then every check looks at it; none talks to a server. All
checks are listed by ``registry``; the rules are the paragraphs of docs/requirements.md. By the rules ``tfb`` all of
them bind; ``techempower`` fails what TechEmpower's rules ask for, and what is dishonest or wrong in data whoever looks,
and the rest warns.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.outcome import Outcome
from harness.records.verification_record import CheckResult
from harness.verify.checks.evidence import Evidence, Exchange

SERVER = "http"  # the checks of the server as a whole, not of one test type
CONDUCT = "conduct"  # how the server behaves as a process, and whether its folder is complete
LOAD = "load"  # what the database counted around a load, or over a process

# What TechEmpower does not ask for: it warns under its rules. docs/requirements.md carries the same marks.
OURS = frozenset(
    (
        *(f"http.{n}" for n in (3, 5, 8, *range(12, 25))),
        *(f"order.{n}" for n in (1, 2, 3, 4)),
        *("delay.2", "delay.3", "fan-out.2", "update.3", "statements.1", "statements.4", "load.5"),
        *("process.2", "process.3", *(f"folder.{n}" for n in range(1, 5))),
    )
)

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
PAGE_TYPES = having(lambda kind: kind.response_shape == "page")
GREETING_TYPES = having(lambda kind: kind.response_shape == "greeting")
READING_TYPES = having(lambda kind: kind.has_rows and not kind.writes_database)


@dataclass(frozen=True)
class Finding:
    """One violation that a check found."""

    message: str  # one sentence
    expected: str | None = None
    actual: str | None = None
    outcome: Outcome = Outcome.FAIL
    accepted: bool = False  # by TechEmpower's verification, although its rules ask for the paragraph


CheckFunction = Callable[[Evidence], Iterator[Finding]]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A registered check."""

    name: str
    rule: str
    applies: Applies
    find: CheckFunction
    needs: Callable[[Evidence], bool]  # does this evidence hold what the check looks at?
    enough: Callable[[Evidence], bool]  # is it so much that no objection means something? Else a pass is not shown

    def holds_for(self, evidence: Evidence) -> bool:
        """True when the check has something to look at."""
        return self.applies(evidence.test_type) and self.needs(evidence)

    def run(self, evidence: Evidence) -> CheckResult:
        """The worst finding, with how many there were; a pass when there was none."""
        findings = list(self.find(evidence))
        if not findings:
            return CheckResult(check=self.name, rule=self.rule, outcome=Outcome.PASS)
        relaxed = evidence.rules == "techempower"
        failing = [finding for finding in findings if finding.outcome is Outcome.FAIL]
        binding = [f for f in failing if not relaxed or not (self.rule in OURS or f.accepted)]
        worst = (binding or failing or findings)[0]
        return CheckResult(
            check=self.name,
            rule=self.rule,
            outcome=Outcome.FAIL if binding else Outcome.WARN,
            message=worst.message + (f" (and {len(findings) - 1} more like it)" if len(findings) > 1 else ""),
            expected=worst.expected,
            actual=worst.actual,
            waived=bool(failing) and not binding,
        )


def asked(evidence: Evidence) -> bool:
    """Whether anything was asked."""
    return bool(evidence.exchanges or evidence.crowd)


def check(
    rule: str,
    where: Applies | frozenset[str],
    needs: Callable[[Evidence], bool] = asked,
    enough: Callable[[Evidence], bool] = lambda _: True,
) -> Callable[[CheckFunction], Check]:
    """Make a check of a function; its name is the function's, in kebab case.

    ``where``: the test types with a trait (``having``), or names, where the requirement is that of one test type.
    """
    applies = where.__contains__ if isinstance(where, frozenset) else where

    def make(function: CheckFunction) -> Check:
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
