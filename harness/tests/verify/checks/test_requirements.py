"""docs/requirements.md and the registered checks agree."""

import re
from collections import defaultdict

import pytest

from harness.paths import REPOSITORY
from harness.verify.checks import STRICTER_THAN_TECHEMPOWER
from harness.verify.checks.registry import CHECKS

DOCUMENT = REPOSITORY / "docs" / "requirements.md"
# Rules without a registered check. Trials, validity checks, a second verification or the rule declared.1 enforce them.
ELSEWHERE = {"load.1", "load.2", "load.3", "load.4", "order.1", "order.2"}
PARAGRAPH = re.compile(r"^- \*\*([a-z0-9-]+\.\d+)\*\* (.*?)(?=^- \*\*|^#|^\S|\Z)", re.MULTILINE | re.DOTALL)


def paragraphs() -> dict[str, str]:
    return dict(PARAGRAPH.findall(DOCUMENT.read_text(encoding="utf-8")))


def checks_named(text: str) -> set[str]:
    """Return the names in backticks after the last dash of a paragraph."""
    return set(re.findall(r"`([a-z0-9-]+)`", text.rpartition("—")[2]))


@pytest.mark.needs_extra("orders")
@pytest.mark.needs_extra("protocols")
def test_every_paragraph_names_its_checks() -> None:
    enforced = defaultdict(set)
    for name, check in CHECKS.items():
        enforced[check.rule].add(name)
    assert enforced.keys() <= paragraphs().keys()
    for rule, text in paragraphs().items():
        if "Not enforced" in text or rule in ELSEWHERE:
            assert rule not in enforced, rule
        else:
            assert checks_named(text) == enforced[rule], rule


def test_paragraphs_are_numbered_without_gaps() -> None:
    numbers = defaultdict(list)
    for rule in paragraphs():
        subject, _, number = rule.partition(".")
        numbers[subject].append(int(number))
    assert {s: n for s, n in numbers.items() if n != list(range(1, len(n) + 1))} == {}


@pytest.mark.needs_extra("orders")
def test_every_paragraph_is_marked_by_origin() -> None:
    marks = {rule: text.partition(")")[0].removeprefix("(") for rule, text in paragraphs().items()}
    assert set(marks.values()) == {"TE", "data", "ours"}
    stricter = STRICTER_THAN_TECHEMPOWER | {check.rule for check in CHECKS.values() if check.stricter}
    assert {rule for rule, mark in marks.items() if mark == "ours"} == stricter | {"order.1", "order.2"}
