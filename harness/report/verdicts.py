"""Verdicts of a verification for programs: JSON, JUnit's XML, and annotations of GitHub Actions."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from xml.etree import ElementTree

from harness.paths import REPOSITORY
from harness.records.models import CheckResult, Outcome, Verdict

REQUIREMENTS = "docs/requirements.md"


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What a verification has found."""

    verdicts: Sequence[Verdict]
    problems: Sequence[str]  # what could not be built, started or looked at
    folders: Mapping[str, str]  # implementation -> its folder, relative to the repository where it lies there


@cache
def lines_of_rules() -> Mapping[str, int]:
    """The line of each paragraph of docs/requirements.md by its name; empty where the page is not there."""
    page = REPOSITORY / REQUIREMENTS
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    return {
        line.removeprefix("- **").partition("**")[0]: number
        for number, line in enumerate(lines, 1)
        if line.startswith("- **")
    }


def place(rule: str) -> str:
    """Where a rule stands, as editors and terminals open it: ``docs/requirements.md:24``."""
    line = lines_of_rules().get(rule)
    return f"{REQUIREMENTS}:{line}" if line else REQUIREMENTS


def explained(result: CheckResult) -> str:
    """What was expected, what came, and the rule, a line each."""
    lines = [result.message]
    lines += [f"expected: {result.expected}"] if result.expected is not None else []
    lines += [f"got: {result.actual}"] if result.actual is not None else []
    return "\n".join((*lines, f"rule: {result.rule} ({place(result.rule)})"))


def as_json(found: Verified) -> str:
    """One document."""
    documents = [verdict.model_dump(mode="json", by_alias=True) for verdict in found.verdicts]
    return json.dumps({"verdicts": documents, "problems": list(found.problems)}) + "\n"


def as_github(found: Verified) -> str:
    """Annotations for the log of GitHub Actions, at the configuration of the implementation."""
    lines = [f"::error title=tfb::{_message(problem)}" for problem in found.problems]
    for verdict, result in _open(found.verdicts):
        kind = "error" if result.outcome is Outcome.FAIL else "warning"
        folder = found.folders.get(verdict.implementation)
        file = f"file={_property(f'{folder}/benchmark_config.json')}," if folder else ""
        title = _property(f"{verdict.implementation} {verdict.test_type}: {result.check} ({result.rule})")
        lines.append(f"::{kind} {file}title={title}::{_message(explained(result))}")
    failed = sum(verdict.outcome is Outcome.FAIL for verdict in found.verdicts)
    passed = f"{len(found.verdicts) - failed} of {len(found.verdicts)} test types passed"
    problems = f"{len(found.problems)} problem{'s' if len(found.problems) > 1 else ''}" if found.problems else ""
    lines.append(", ".join(part for part in (problems, passed if found.verdicts else "nothing was verified") if part))
    return "\n".join(lines) + "\n"


def as_junit(found: Verified) -> str:
    """A suite an implementation and test type, a case a check; what could not be looked at is an error."""
    root = ElementTree.Element("testsuites", name="tfb verify")
    for verdict in found.verdicts:
        failed = sum(result.outcome is Outcome.FAIL for result in verdict.results)
        suite = _suite(root, f"{verdict.implementation}.{verdict.test_type}", len(verdict.results), failures=failed)
        for result in verdict.results:
            case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name=result.check)
            if result.outcome is Outcome.FAIL:
                ElementTree.SubElement(case, "failure", message=_xml(result.message)).text = _xml(explained(result))
            elif result.outcome is Outcome.WARN:
                ElementTree.SubElement(case, "system-out").text = _xml(f"warning: {explained(result)}")
    if found.problems:
        suite = _suite(root, "tfb", len(found.problems), errors=len(found.problems))
        for problem in found.problems:
            case = ElementTree.SubElement(suite, "testcase", classname="tfb", name=_xml(problem.splitlines()[0]))
            ElementTree.SubElement(case, "error", message=_xml(problem.splitlines()[0])).text = _xml(problem)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


FORMATS: dict[str, Callable[[Verified], str]] = {"json": as_json, "github": as_github, "junit": as_junit}


def _open(verdicts: Iterable[Verdict]) -> Iterable[tuple[Verdict, CheckResult]]:
    for verdict in verdicts:
        for result in verdict.results:
            if result.outcome is not Outcome.PASS:
                yield verdict, result


def _suite(
    root: ElementTree.Element, name: str, tests: int, *, failures: int = 0, errors: int = 0
) -> ElementTree.Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": str(errors)}
    return ElementTree.SubElement(root, "testsuite", {"name": _xml(name), **counts})


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 does not allow, which a server may well have answered."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _message(text: str) -> str:
    """As GitHub's workflow commands want it: nothing of a server's answer may begin a command of its own."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
