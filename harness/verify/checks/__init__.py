"""What a check is: a pure function from evidence to findings, with a name, a rule and the tests that it holds for.

Evidence is gathered once (``verification``, ``probe``), then every check looks at it; none talks to a server. The
explicit list of all checks is ``registry``; the rules are the paragraphs of docs/requirements.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.results.records import CheckResult, Outcome
from harness.verify.checks.evidence import Evidence

QUERY_TYPES = frozenset({"query", "cached-query", "update"})
ROW_TYPES = QUERY_TYPES | {"db"}
JSON_TYPES = ROW_TYPES | {"json"}
ALL_TYPES = JSON_TYPES | {"plaintext", "fortune"}
SERVER = "http"  # the checks of the server as a whole, not of one test type
LOAD = "load"  # the checks of a whole replicate, once its server has stopped


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One violation that a check found."""

    message: str  # one sentence
    expected: str | None = None
    actual: str | None = None
    outcome: Outcome = Outcome.FAIL


Find = Callable[[Evidence], Iterator[Finding]]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A registered check."""

    name: str
    rule: str
    test_types: frozenset[str]
    find: Find
    needs: Callable[[Evidence], bool]  # does this evidence hold what the check looks at?

    def holds_for(self, evidence: Evidence) -> bool:
        """True when the check has something to look at."""
        return evidence.test_type in self.test_types and self.needs(evidence)

    def run(self, evidence: Evidence) -> CheckResult:
        """The worst finding, with how many there were; a pass when there was none."""
        findings = list(self.find(evidence))
        if not findings:
            return CheckResult(check=self.name, rule=self.rule, outcome=Outcome.PASS)
        worst = next((f for f in findings if f.outcome is Outcome.FAIL), findings[0])
        more = f" (and {len(findings) - 1} more like it)" if len(findings) > 1 else ""
        return CheckResult(
            check=self.name,
            rule=self.rule,
            outcome=worst.outcome,
            message=worst.message + more,
            expected=worst.expected,
            actual=worst.actual,
        )


def check(
    rule: str,
    test_types: frozenset[str],
    needs: Callable[[Evidence], bool] = lambda evidence: bool(evidence.exchanges or evidence.crowd),
) -> Callable[[Find], Check]:
    """Make a check of a function; its name is the function's, in kebab case."""

    def make(function: Find) -> Check:
        name = getattr(function, "__name__", "").replace("_", "-")
        return Check(name=name, rule=rule, test_types=test_types, find=function, needs=needs)

    return make


def shown(data: bytes | str, limit: int = 160) -> str:
    """A body as a person can read it in a message."""
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
