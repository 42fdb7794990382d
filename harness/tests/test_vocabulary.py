"""Texts and names use the glossary of the style guide, as far as patterns can tell."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness.paths import REPOSITORY
from harness.tests.vocabulary import product_files, texts, words

GATE = "harness/extras/gate/"
# Pattern in texts -> (correct term, phrases and files in which the word means something else).
TERMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    r"\blaps?\b": ("round", ()),
    r"\breplicates?\b": ("process", ()),
    r"\bduets?\b": ("round", ()),
    r"\btwins?\b": ("control copy", ()),
    r"\bobituar\w+": ("crash reason", ()),
    r"\bguests?\b": ("foreign implementation", ()),
    r"\baudit\w*": (
        "verification",
        (
            "npm audit",
            "pip-audit",
            "cargo-audit",
            "--audit",
            "not audited",
            "harness/cli/scans.py",
            "harness/cli/check.py",
        ),
    ),
    r"\bgates?\b": (
        "validity check",
        (
            "regression gate",
            "compare --base",
            "profile gate",
            "gate.md",
            "extras.gate",
            "extras/gate",
            "gate.py",
            "studies.gate",
            GATE,
        ),
    ),
    r"\b(an|the|each|every|its|this|first|wrong|right|no|any|whose|their|of|last|same|correct) answers?\b": (
        "response",
        ("wrong answers",),  # a validity flag in stored records
    ),
    r"\breference (row|implementation|version)s?\b": ("baseline", ()),
    r"\bthe same within\b": ("same within", ()),
    r"(?<!degrees of )\bfreedom\b": ("degrees of freedom", ()),
}
# Word in names -> correct term.
NAMES = {
    "lap": "round",
    "laps": "round",
    "replicate": "process",
    "replicates": "process",
    "twin": "control_copy",
    "twins": "control_copy",
    "duet": "round",
    "answer": "response",
    "answers": "responses",
    "answered": "responded",
    "gate": "validity_check",
    "gates": "validity_checks",
}
# Name -> reason to keep it.
KEPT_NAMES: Mapping[str, str] = {
    "answered": "a key of recorded files",
    "gates": "a key of recorded files",
    **dict.fromkeys(("tables_as_answered", "committed_before_answered", "load_as_answered"), "ids of recorded checks"),
    **dict.fromkeys(("answer_agrees", "load_answers_agree", "one_answer_a_request"), "ids of recorded checks"),
    "declared_answer": "id of a recorded check",
}
PAGES = sorted(path for pattern in ("*.md", "docs/**/*.md") for path in REPOSITORY.glob(pattern))


def text_objections(path: Path) -> Iterator[str]:
    for text in texts(path):
        if text.kind != "name":
            for pattern, (term, others) in TERMS.items():
                match = re.search(pattern, text.text, re.IGNORECASE)
                if match and not any(other in text.text or text.path.startswith(other) for other in others):
                    yield f"{text}: {match[0]!r} in a {text.kind}: write {term!r}"


def name_objections(path: Path) -> Iterator[str]:
    relative = path.relative_to(REPOSITORY).as_posix()
    for text in texts(path):
        if text.kind == "name" and text.text not in KEPT_NAMES and not relative.startswith(GATE):
            for word in words(text.text):
                if word in NAMES:
                    yield f"{text}: name {text.text}: use {NAMES[word]!r}"


@pytest.mark.parametrize(
    "path",
    product_files(),
    ids=lambda path: path.relative_to(REPOSITORY).as_posix(),
)
def test_product_uses_the_terms_of_the_glossary(path: Path) -> None:
    assert [*text_objections(path), *name_objections(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_headings_use_the_terms_of_the_glossary(page: Path) -> None:
    headings = re.findall(r"^#+ .*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    objections = [
        f"{heading}: write {term!r}"
        for heading in headings
        for pattern, (term, others) in TERMS.items()
        if re.search(pattern, heading, re.IGNORECASE) and not any(other in heading for other in others)
    ]
    assert page.name == "gate.md" or objections == []
