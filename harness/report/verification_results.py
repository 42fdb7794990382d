"""Formats verification results for programs: JSON, JUnit XML, and annotations for GitHub Actions."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, Self
from xml.etree import ElementTree

from harness.console import write_commands
from harness.paths import REPOSITORY
from harness.plain_text import inert_line, json_text, printable
from harness.records.outcome import Outcome
from harness.records.run_info import BuildRecord
from harness.records.verification_record import CheckResult, VerificationRecord
from harness.report.causes import group_verdict_causes
from harness.report.tables import format_count

REQUIREMENTS = "docs/requirements.md"


@dataclass(frozen=True, kw_only=True)
class ImplementationVerdict:
    """The verdict on an implementation."""

    implementation: str
    verdict: Literal["verified", "failed", "build failed", "skipped", "not started"]
    reason: str = ""
    problems: tuple[str, ...] = ()  # complete messages about the build, the start or the exit of the server

    @classmethod
    def failed(cls, name: str, broken: int, reason: str) -> Self:
        """Return the verdict on an implementation with violations, or with a process that failed otherwise."""
        return cls(
            implementation=name,
            verdict="failed",
            reason=format_count(broken, "violation") if broken else _first(reason),
        )

    @property
    def line(self) -> str:
        """The verdict in a single line, for example ``gin: build failed: go build failed (exit status 1)``."""
        reason = _first(self.reason).removeprefix(f"{self.implementation}: ").removesuffix(":")
        return f"{self.implementation}: {self.verdict}" + (f": {reason}" if reason else "")


def build_verdict(name: str, build: BuildRecord | None) -> ImplementationVerdict | None:
    """Return the verdict on an implementation that was not built. Return None after a successful build."""
    if build is None or build.status == "ok":
        return None
    return ImplementationVerdict(
        implementation=name, verdict="skipped" if build.status == "skipped" else "build failed", reason=build.reason
    )


def count_violations(verdicts: Sequence[VerificationRecord]) -> int:
    """Return the number of distinct causes of an implementation's failed checks."""
    return sum(cause.result.outcome is Outcome.FAIL for cause in group_verdict_causes(verdicts))


@dataclass(frozen=True, kw_only=True)
class VerificationReport:
    """The result of a verification."""

    verdicts: Sequence[VerificationRecord]
    problems: Sequence[str]  # messages about failed builds, failed starts and checks that could not run
    folders: Mapping[str, str]  # implementation -> folder, relative to the repository if it is inside it
    implementations: Sequence[ImplementationVerdict] = ()  # all selected implementations

    @property
    def other_problems(self) -> Sequence[str]:
        """Problems that do not belong to an implementation."""
        told = {problem for each in self.implementations for problem in each.problems}
        return [problem for problem in self.problems if problem not in told]


@cache
def rule_lines() -> Mapping[str, int]:
    """Return the line number of each rule in docs/requirements.md, or an empty mapping if the page does not exist."""
    page = REPOSITORY / REQUIREMENTS
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    begun = ((re.match(r"- \*\*(.+?)\*\*", line), number) for number, line in enumerate(text.splitlines(), 1))
    return {found[1]: number for found, number in begun if found}


def rule_location(rule: str) -> str:
    """Return the location of a rule in a form that editors can open, for example ``docs/requirements.md:24``."""
    line = rule_lines().get(rule)
    return f"{REQUIREMENTS}:{line}" if line else REQUIREMENTS


def explain_result(result: CheckResult) -> str:
    """Return the message, the expected value, the actual value and the rule on separate lines."""
    lines = [result.message]
    lines += [f"expected: {result.expected}"] if result.expected is not None else []
    lines += [f"got: {result.actual}"] if result.actual is not None else []
    return "\n".join((*lines, f"rule: {result.rule} ({rule_location(result.rule)})"))


def as_json(found: VerificationReport) -> str:
    """Return the report as a JSON document."""
    documents = [verdict.model_dump(mode="json", by_alias=True) for verdict in found.verdicts]
    judged = [
        {"name": each.implementation, "verdict": each.verdict, "reason": each.reason} for each in found.implementations
    ]
    document = json.dumps({"implementations": judged, "verdicts": documents, "problems": list(found.problems)})
    return json_text(document) + "\n"


def as_github(found: VerificationReport) -> str:
    """Return a GitHub Actions annotation for each cause, attached to the implementation's configuration."""
    lines = [f"::error title=tfb::{_message(problem)}" for problem in found.other_problems]
    for judged in found.implementations:
        title = _property(f"{judged.implementation}: {judged.verdict}")
        lines += [f"::error {_file(found, judged.implementation)}title={title}::{_message(p)}" for p in judged.problems]
    for name in dict.fromkeys(verdict.implementation for verdict in found.verdicts):
        for cause in group_verdict_causes([verdict for verdict in found.verdicts if verdict.implementation == name]):
            result = cause.result
            kind = "error" if result.outcome is Outcome.FAIL else "warning"
            title = _property(f"{name} {' '.join(cause.test_types)}: {result.check} ({result.rule})")
            lines.append(f"::{kind} {_file(found, name)}title={title}::{_message(explain_result(result))}")
    problems = [format_count(len(found.problems), "problem")] if found.problems else []
    passed = sum(verdict.outcome is not Outcome.FAIL for verdict in found.verdicts)
    told = f"{passed} of {len(found.verdicts)} test types passed" if found.verdicts else "nothing was verified"
    words = [_message(each.line) for each in found.implementations]
    return "\n".join((*lines, *words, ", ".join((*problems, told)))) + "\n"


def as_junit(found: VerificationReport) -> str:
    """Return JUnit XML with a suite for each implementation and test type, and a case for each check.

    Failed builds, failed starts and checks that could not run are errors.
    """
    root = ElementTree.Element("testsuites", name="tfb verify")
    for verdict in found.verdicts:
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
    _add_implementations(root, found.implementations)
    errors = str(len(found.other_problems))
    suite = ElementTree.SubElement(root, "testsuite", name="tfb", tests=errors, failures="0", errors=errors)
    for problem in found.other_problems:
        first = _xml(problem.splitlines()[0])
        case = ElementTree.SubElement(suite, "testcase", classname="tfb", name=first)
        ElementTree.SubElement(case, "error", message=first).text = _xml(problem)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_implementations(root: ElementTree.Element, judged: Sequence[ImplementationVerdict]) -> None:
    """Add a suite that contains a case for each implementation.

    A case is an error if the implementation was not built or started, or if its server exited. Failed checks are in the
    suites of the test types.
    """
    if not judged:
        return
    errors = sum(bool(each.problems) for each in judged)
    skipped = sum(each.verdict == "skipped" and not each.problems for each in judged)
    counts = {"tests": str(len(judged)), "failures": "0", "errors": str(errors), "skipped": str(skipped)}
    suite = ElementTree.SubElement(root, "testsuite", {"name": "implementations", **counts})
    for each in judged:
        line = _xml(each.line)
        case = ElementTree.SubElement(suite, "testcase", classname="implementations", name=_xml(each.implementation))
        if each.problems:
            ElementTree.SubElement(case, "error", message=line).text = _xml("\n".join(each.problems))
        elif each.verdict == "skipped":
            ElementTree.SubElement(case, "skipped", message=line)
        ElementTree.SubElement(case, "system-out").text = line


FORMATS: dict[str, Callable[[VerificationReport], str]] = {"json": as_json, "github": as_github, "junit": as_junit}


def print_report(name: str, found: VerificationReport) -> None:
    """Print a report in the named format. Only the GitHub format may contain workflow commands."""
    if name == "github":
        write_commands(as_github(found))
    else:
        print(FORMATS[name](found), end="")


def _xml(text: str) -> str:
    """Replace characters that XML 1.0 does not allow. Responses may contain them."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _first(text: str) -> str:
    return (text.splitlines() or [""])[0]


def _message(text: str) -> str:
    """Escape text for a workflow command. A response must not be able to start a different command."""
    return inert_line(printable(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _file(found: VerificationReport, implementation: str) -> str:
    """Return the property that attaches an annotation to a configuration. Empty for a file outside the repository."""
    folder = found.folders.get(implementation)
    return f"file={_property(f'{folder}/benchmark_config.json')}," if folder else ""


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
