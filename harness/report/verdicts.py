"""Verdicts of a verification for programs: JSON, JUnit's XML, and annotations of GitHub Actions."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from xml.etree import ElementTree

from harness.paths import REPOSITORY
from harness.records.models import CheckResult, Outcome, Verdict
from harness.report.causes import of_verdicts
from harness.report.tables import counted

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
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    begun = ((re.match(r"- \*\*(.+?)\*\*", line), number) for number, line in enumerate(text.splitlines(), 1))
    return {found[1]: number for found, number in begun if found}


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
    """Return annotations for GitHub Actions, one for each cause, at the configuration of the implementation."""
    lines = [f"::error title=tfb::{_message(problem)}" for problem in found.problems]
    for name in dict.fromkeys(verdict.implementation for verdict in found.verdicts):
        folder = found.folders.get(name)
        file = f"file={_property(f'{folder}/benchmark_config.json')}," if folder else ""
        for cause in of_verdicts([verdict for verdict in found.verdicts if verdict.implementation == name]):
            result = cause.result
            kind = "error" if result.outcome is Outcome.FAIL else "warning"
            title = _property(f"{name} {' '.join(cause.test_types)}: {result.check} ({result.rule})")
            lines.append(f"::{kind} {file}title={title}::{_message(explained(result))}")
    problems = [counted(len(found.problems), "problem")] if found.problems else []
    passed = sum(verdict.outcome is not Outcome.FAIL for verdict in found.verdicts)
    told = f"{passed} of {len(found.verdicts)} test types passed" if found.verdicts else "nothing was verified"
    return "\n".join((*lines, ", ".join((*problems, told)))) + "\n"


def as_junit(found: Verified) -> str:
    """A suite an implementation and test type, a case a check; what could not be looked at is an error."""
    root = ElementTree.Element("testsuites", name="tfb verify")
    for verdict in found.verdicts:
        name = _xml(f"{verdict.implementation}.{verdict.test_type}")
        failed = str(sum(result.outcome is Outcome.FAIL for result in verdict.results))
        tests = str(len(verdict.results))
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=tests, failures=failed, errors="0")
        for result in verdict.results:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=result.check)
            if result.outcome is Outcome.FAIL:
                ElementTree.SubElement(case, "failure", message=_xml(result.message)).text = _xml(explained(result))
            elif result.outcome is Outcome.WARN:
                ElementTree.SubElement(case, "system-out").text = _xml(f"warning: {explained(result)}")
    errors = str(len(found.problems))
    suite = ElementTree.SubElement(root, "testsuite", name="tfb", tests=errors, failures="0", errors=errors)
    for problem in found.problems:
        first = _xml(problem.splitlines()[0])
        case = ElementTree.SubElement(suite, "testcase", classname="tfb", name=first)
        ElementTree.SubElement(case, "error", message=first).text = _xml(problem)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


FORMATS: dict[str, Callable[[Verified], str]] = {"json": as_json, "github": as_github, "junit": as_junit}


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 does not allow, which a server may well have answered."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _message(text: str) -> str:
    """As GitHub's workflow commands want it: nothing of a server's answer may begin a command of its own."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
