"""Groups violations by cause, and formats verification results as JSON, JUnit XML or GitHub Actions annotations."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, Self
from xml.etree import ElementTree

from harness.console import write_commands
from harness.paths import REPOSITORY
from harness.plain_text import inert_line, json_text, printable
from harness.records.run_info import BuildRecord
from harness.records.verification_record import WHOLE_SERVER, CheckResult, Outcome, VerificationRecord
from harness.report.tables import format_count

REQUIREMENTS = "docs/requirements.md"
_TARGET = re.compile(r"^[A-Z]+ \S+: ")
_COUNT = re.compile(r" \(and \d+ more like it\)$")
_NUMBER = re.compile(r"(?!\b[1-5]\d\d\b)\b\d+(?:[.,]\d+)*\b")  # numbers except HTTP status codes


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause of failures or warnings, and the test types that it affects."""

    result: CheckResult  # the check's result for the first affected test type
    test_types: tuple[str, ...]


def format_result(result: CheckResult) -> str:
    """Format a failed check's result as a line of text."""
    expected = "" if result.expected is None else f". Expected {result.expected}"
    got = f", got {result.actual}" if expected and result.actual is not None else ""
    return f"{result.check} ({result.rule}): {result.message}{expected}{got}"


def group_causes(results: Iterable[tuple[str, CheckResult]]) -> list[Cause]:
    """Group failures and warnings by cause, in order of appearance. ``results`` are (test type, result) pairs."""
    groups: dict[tuple[object, ...], list[tuple[str, CheckResult]]] = {}
    for kind, result in results:
        if result.outcome is not Outcome.PASS:
            groups.setdefault(cause_key(result), []).append((kind, result))
    return [
        Cause(result=group[0][1], test_types=tuple(dict.fromkeys(kind for kind, _ in group)))
        for group in groups.values()
    ]


def group_verdict_causes(verdicts: Sequence[VerificationRecord]) -> list[Cause]:
    """Group the failures and warnings in an implementation's verification records by cause."""
    return group_causes((verdict.test_type, result) for verdict in verdicts for result in verdict.results)


def format_test_types(cause: Cause, every: Sequence[str]) -> str:
    """List the test types that a cause affects.

    Return ``all test types`` if the cause affects at least three test types and all test types in ``every``.
    """
    affected = [kind for kind in cause.test_types if kind != WHOLE_SERVER]
    affects_all = len(affected) > 2 and set(affected) >= set(every) - {WHOLE_SERVER}
    return "all test types" if affects_all else ", ".join(cause.test_types)


def cause_key(result: CheckResult) -> tuple[object, ...]:
    """Return a key shared by all results with the same cause. It ignores request targets and numbers in messages."""

    def plain(text: str | None) -> str:
        return _NUMBER.sub("0", _COUNT.sub("", _TARGET.sub("", text or "")))

    return result.check, result.rule, result.outcome, result.waived, plain(result.message), plain(result.expected)


@dataclass(frozen=True, kw_only=True)
class ImplementationVerdict:
    """The verdict on an implementation, with the reason if it failed."""

    implementation: str
    verdict: Literal["verified", "failed", "build failed", "skipped", "not started"]
    reason: str = ""
    problems: tuple[str, ...] = ()  # full messages about a failed build, a failed start or an exited server

    @classmethod
    def failed(cls, name: str, violations: int, reason: str) -> Self:
        """Return the verdict on a failed implementation. ``reason`` is used only if there are no violations."""
        return cls(
            implementation=name,
            verdict="failed",
            reason=format_count(violations, "violation") if violations else _first(reason),
        )

    @property
    def line(self) -> str:
        """The verdict as a single line, for example ``gin: build failed: go build failed (exit status 1)``."""
        reason = _first(self.reason).removeprefix(f"{self.implementation}: ").removesuffix(":")
        return f"{self.implementation}: {self.verdict}" + (f": {reason}" if reason else "")


def build_verdict(name: str, build: BuildRecord | None) -> ImplementationVerdict | None:
    """Return the verdict on an implementation after a failed or skipped build. Return None for any other build."""
    if build is None or build.status == "ok":
        return None
    return ImplementationVerdict(
        implementation=name, verdict="skipped" if build.status == "skipped" else "build failed", reason=build.reason
    )


def count_violations(verdicts: Sequence[VerificationRecord]) -> int:
    """Count the distinct causes of an implementation's failed checks. Warnings do not count."""
    return sum(cause.result.outcome is Outcome.FAIL for cause in group_verdict_causes(verdicts))


@dataclass(frozen=True, kw_only=True)
class VerificationReport:
    """The results of ``tfb verify`` for all selected implementations."""

    verdicts: Sequence[VerificationRecord]
    problems: Sequence[str]  # messages about failed builds, failed starts and checks that could not run
    # Implementation -> folder, relative to the repository or, outside the repository, to the tree of implementations.
    folders: Mapping[str, str]
    implementations: Sequence[ImplementationVerdict] = ()  # all selected implementations

    @property
    def other_problems(self) -> Sequence[str]:
        """Problems that do not concern a particular implementation."""
        reported = {problem for each in self.implementations for problem in each.problems}
        return [problem for problem in self.problems if problem not in reported]


@cache
def rule_lines() -> Mapping[str, int]:
    """Return each rule's line number in docs/requirements.md. The mapping is empty if the page does not exist."""
    page = REPOSITORY / REQUIREMENTS
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    matches = ((re.match(r"- \*\*(.+?)\*\*", line), number) for number, line in enumerate(text.splitlines(), 1))
    return {match[1]: number for match, number in matches if match}


def rule_location(rule: str) -> str:
    """Return a rule's location in a form that editors can open, for example ``docs/requirements.md:24``."""
    line = rule_lines().get(rule)
    return f"{REQUIREMENTS}:{line}" if line else REQUIREMENTS


def explain_result(result: CheckResult) -> str:
    """Return a result's message, expected value, actual value and rule on separate lines."""
    lines = [result.message]
    lines += [f"expected: {result.expected}"] if result.expected is not None else []
    lines += [f"got: {result.actual}"] if result.actual is not None else []
    return "\n".join((*lines, f"rule: {result.rule} ({rule_location(result.rule)})"))


def as_json(report: VerificationReport) -> str:
    """Return the report as a JSON document."""
    documents = [verdict.model_dump(mode="json", by_alias=True) for verdict in report.verdicts]
    implementations = [
        {"name": each.implementation, "verdict": each.verdict, "reason": each.reason} for each in report.implementations
    ]
    document = json.dumps(
        {"implementations": implementations, "verdicts": documents, "problems": list(report.problems)}
    )
    return json_text(document) + "\n"


def as_github(report: VerificationReport) -> str:
    """Return a GitHub Actions annotation for each cause, attached to the implementation's configuration."""
    lines = [f"::error title=tfb::{_message(problem)}" for problem in report.other_problems]
    for implementation in report.implementations:
        title = _property(f"{implementation.implementation}: {implementation.verdict}")
        lines += [
            f"::error {_file(report, implementation.implementation)}title={title}::{_message(p)}"
            for p in implementation.problems
        ]
    for name in dict.fromkeys(verdict.implementation for verdict in report.verdicts):
        for cause in group_verdict_causes([verdict for verdict in report.verdicts if verdict.implementation == name]):
            result = cause.result
            kind = "error" if result.outcome is Outcome.FAIL else "warning"
            title = _property(f"{name} {' '.join(cause.test_types)}: {result.check} ({result.rule})")
            lines.append(f"::{kind} {_file(report, name)}title={title}::{_message(explain_result(result))}")
    problems = [format_count(len(report.problems), "problem")] if report.problems else []
    passed = sum(verdict.outcome is not Outcome.FAIL for verdict in report.verdicts)
    summary = f"{passed} of {len(report.verdicts)} test types passed" if report.verdicts else "nothing was verified"
    verdict_lines = [_message(each.line) for each in report.implementations]
    return "\n".join((*lines, *verdict_lines, ", ".join((*problems, summary)))) + "\n"


def as_junit(report: VerificationReport) -> str:
    """Return JUnit XML with a suite for each implementation and test type, and a case for each check."""
    root = ElementTree.Element("testsuites", name="tfb verify")
    for verdict in report.verdicts:
        name = _xml(f"{verdict.implementation}.{verdict.test_type}")
        failed = str(sum(result.outcome is Outcome.FAIL for result in verdict.results))
        tests = str(len(verdict.results))
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=tests, failures=failed, errors="0")
        for result in verdict.results:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=result.check)
            if result.outcome is Outcome.FAIL:
                ElementTree.SubElement(case, "failure", message=_xml(result.message)).text = _xml(
                    explain_result(result)
                )
            elif result.outcome is Outcome.WARN:
                ElementTree.SubElement(case, "system-out").text = _xml(f"warning: {explain_result(result)}")
    _add_implementations(root, report.implementations)
    errors = str(len(report.other_problems))
    suite = ElementTree.SubElement(root, "testsuite", name="tfb", tests=errors, failures="0", errors=errors)
    for problem in report.other_problems:
        first = _xml(problem.splitlines()[0])
        case = ElementTree.SubElement(suite, "testcase", classname="tfb", name=first)
        ElementTree.SubElement(case, "error", message=first).text = _xml(problem)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_implementations(root: ElementTree.Element, verdicts: Sequence[ImplementationVerdict]) -> None:
    """Add a suite with a case for each implementation.

    The case has an error if the build or the start failed, or if the server exited.
    """
    if not verdicts:
        return
    errors = sum(bool(each.problems) for each in verdicts)
    skipped = sum(each.verdict == "skipped" and not each.problems for each in verdicts)
    counts = {"tests": str(len(verdicts)), "failures": "0", "errors": str(errors), "skipped": str(skipped)}
    suite = ElementTree.SubElement(root, "testsuite", {"name": "implementations", **counts})
    for verdict in verdicts:
        line = _xml(verdict.line)
        case = ElementTree.SubElement(suite, "testcase", classname="implementations", name=_xml(verdict.implementation))
        if verdict.problems:
            ElementTree.SubElement(case, "error", message=line).text = _xml("\n".join(verdict.problems))
        elif verdict.verdict == "skipped":
            ElementTree.SubElement(case, "skipped", message=line)
        ElementTree.SubElement(case, "system-out").text = line


FORMATS: dict[str, Callable[[VerificationReport], str]] = {"json": as_json, "github": as_github, "junit": as_junit}


def print_report(name: str, report: VerificationReport) -> None:
    """Print a report in the named format. Only the GitHub format may contain workflow commands."""
    if name == "github":
        write_commands(as_github(report))
    else:
        print(FORMATS[name](report), end="")


def _xml(text: str) -> str:
    """Replace characters that XML 1.0 does not allow, because responses may contain them."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _first(text: str) -> str:
    return (text.splitlines() or [""])[0]


def _message(text: str) -> str:
    """Escape text for a workflow command, so that text from a response cannot start a command."""
    return inert_line(printable(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _file(report: VerificationReport, implementation: str) -> str:
    """Return the annotation property that names an implementation's configuration file, or "" if it is unknown."""
    folder = report.folders.get(implementation)
    return f"file={_property(f'{folder}/benchmark_config.json')}," if folder else ""


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
