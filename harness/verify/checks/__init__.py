"""Checks: pure functions that examine evidence and return findings. A check enforces a rule for certain test types.

``verification`` and ``trial`` gather the evidence once for all checks. Checks never contact a server. ``registry``
lists all checks. docs/requirements.md describes the rules. All checks are binding under the rule set ``tfb``. Under the
rule set ``techempower``, a violation that TechEmpower accepts is only a warning.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.verification_record import WHOLE_SERVER, CheckResult, Outcome
from harness.verify.checks.evidence import Evidence, Exchange

CONDUCT = "conduct"  # pseudo test type for checks of the server's process and the implementation's folder
LOAD = "load"  # pseudo test type for checks of database counts after a load or after a process has exited

# Rules that TechEmpower does not have, marked "ours" in docs/requirements.md. Plugins set ``Check.stricter`` instead.
STRICTER_THAN_TECHEMPOWER = frozenset(
    (
        *(f"http.{n}" for n in (3, 5, 8, *range(12, 25))),
        *("delay.2", "delay.3", "fan-out.2", "update.3", "statements.1", "statements.4", "load.5"),
        *("process.2", "process.3", *(f"folder.{n}" for n in range(1, 4))),
    )
)

# Predicate that takes a test type's name, WHOLE_SERVER, CONDUCT or LOAD, and returns whether a check applies to it.
Applies = Callable[[str], bool]


def types_where(trait: Callable[[TestType], bool]) -> Applies:
    """Return a predicate that selects all test types with a trait, including those that plugins register later."""
    return lambda name: name in TEST_TYPES and trait(TEST_TYPES[name])


def all_types_and_server(name: str) -> bool:
    """Return whether a name is a test type or WHOLE_SERVER."""
    return name == WHOLE_SERVER or name in TEST_TYPES


ALL_TYPES = types_where(lambda _: True)
JSON_TYPES = types_where(lambda test_type: test_type.media_type == "application/json")
ROW_TYPES = types_where(lambda test_type: test_type.has_rows)
QUERY_TYPES = types_where(lambda test_type: test_type.counts_rows)
PAGE_TYPES = types_where(lambda test_type: test_type.response_shape == "page")
GREETING_TYPES = types_where(lambda test_type: test_type.response_shape == "greeting")
READING_TYPES = types_where(lambda test_type: test_type.has_rows and not test_type.writes_database)


@dataclass(frozen=True)
class Finding:
    """A violation of a rule."""

    message: str  # description of the problem, followed by advice
    expected: str | None = None
    actual: str | None = None
    outcome: Outcome = Outcome.FAIL
    accepted: bool = False  # whether TechEmpower's verification accepts the violation


CheckFunction = Callable[[Evidence], Iterator[Finding]]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A function that finds violations of a rule, and the conditions under which the function applies."""

    name: str
    rule: str
    applies: Applies
    find: CheckFunction
    needs: Callable[[Evidence], bool]  # whether the evidence contains the observations that the check examines
    has_evidence: Callable[[Evidence], bool]  # whether there is enough evidence for a pass to be meaningful
    stricter: bool  # whether only tfb has the rule; under TechEmpower's rules, the check then only warns

    def applies_to(self, evidence: Evidence) -> bool:
        """Return whether the check applies to the test type and the evidence contains the required observations."""
        return self.applies(evidence.test_type) and self.needs(evidence)

    def run(self, evidence: Evidence) -> CheckResult:
        """Return a result with the worst finding and the number of findings, or a pass if there are none."""
        findings = list(self.find(evidence))
        if not findings:
            return CheckResult(check=self.name, rule=self.rule, outcome=Outcome.PASS)
        lenient = evidence.rules == "techempower"
        failing = [finding for finding in findings if finding.outcome is Outcome.FAIL]
        binding = [finding for finding in failing if not (lenient and (self.stricter or finding.accepted))]
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


def check(
    rule: str,
    scope: Applies | frozenset[str],
    needs: Callable[[Evidence], bool] = lambda evidence: bool(evidence.exchanges or evidence.concurrent),
    has_evidence: Callable[[Evidence], bool] = lambda _: True,
    *,
    stricter: bool = False,
) -> Callable[[CheckFunction], Check]:
    """Return a decorator that turns a function into a check. The check's name is the function's name in kebab case.

    ``scope`` selects test types: by a predicate, for example from ``types_where``, or by a set of names. A check for a
    rule in ``STRICTER_THAN_TECHEMPOWER`` is always ``stricter``.
    """
    applies = scope.__contains__ if isinstance(scope, frozenset) else scope

    def make(function: CheckFunction) -> Check:
        name = getattr(function, "__name__", "").replace("_", "-")
        return Check(
            name=name,
            rule=rule,
            applies=applies,
            find=function,
            needs=needs,
            has_evidence=has_evidence,
            stricter=stricter or rule in STRICTER_THAN_TECHEMPOWER,
        )

    return make


def exchange_check(
    rule: str, scope: Applies | frozenset[str], *, only_ok: bool = True
) -> Callable[[Callable[[Exchange], Iterator[Finding]]], Check]:
    """Return a decorator that turns a function into a check. The function examines a single exchange.

    The check applies the function to every exchange or, with ``only_ok``, to every exchange with status 200.
    """

    def make(function: Callable[[Exchange], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            for exchange in evidence.ok_exchanges if only_ok else evidence.all_exchanges:
                for finding in function(exchange):
                    yield replace(finding, message=f"{exchange.case.method} {exchange.target}: {finding.message}")

        find.__name__ = getattr(function, "__name__", "")
        return check(rule, scope)(find)

    return make


def excerpt(data: bytes | str, limit: int = 160) -> str:
    """Return the first ``limit`` characters of a body as readable text for a message."""
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
