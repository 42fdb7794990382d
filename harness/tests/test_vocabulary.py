"""Pages and help texts keep to the terms of the field: none of our own words for what has a name."""

import re

import pytest

from harness.cli.verbs import VERBS
from harness.paths import PROFILES, REPOSITORY
from harness.tests.cli.commands import command_of

INSTEAD = {  # what no page says -> what it says
    r"\bin turns?\b|\bturns\b|\blaps?\b": "rounds, in alternation",
    r"\bledgers?\b": "expected queries",
    r"\bmeanwhile\b": "concurrent changes, at the same time",
    r"\bobituar": "crash reason",
    r"\bguests?\b": "foreign implementation",
    r"\bfirst[ -]answers?\b": "startup time",
    r"\breplicates?\b": "process",
    r"\bsamples?\b": "trial",
    r"\bduets?\b|\b(in|per|of|whole|same|further) blocks?\b": "round",
    r"\bprobes?\b|\baudited loads?\b|\ban audit under\b": "trial",
    r"\bsets? of machines\b|\bmachine[- ]sets?\b": "deployment",
    r"\bwords?\b": "flag, argument, label",
    r"(?<!degrees of )\bfreedom\b": "degrees of freedom",
}
# The changelog names what is gone.
PAGES = sorted({*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("results/*.md")})
TEXTS = {
    **{page.relative_to(REPOSITORY).as_posix(): page for page in PAGES if page.name != "CHANGELOG.md"},
    **{f"config/profiles/{profile.name}": profile for profile in PROFILES.glob("*.toml")},
}


def objections(text: str) -> list[str]:
    """Each term that is not ours to use, with what to say."""
    lines = text.splitlines()
    return [
        f"{number}: {found[0]!r}: say {instead}"
        for number, line in enumerate(lines, 1)
        for term, instead in INSTEAD.items()
        if (found := re.search(term, line, re.IGNORECASE))
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_pages_and_profiles_use_the_terms_of_the_field(name: str) -> None:
    assert objections(TEXTS[name].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("verb", [*VERBS, "claims run", "claims report"])
def test_help_uses_the_terms_of_the_field(verb: str) -> None:
    command = command_of(verb.split())
    helps = [each.parameter.help or "" for each in command.assemble_argument_collection()]
    helps += [command.help, *(known.help for known in VERBS.values())]
    assert objections("\n".join(helps)) == []


def test_a_term_of_our_own_is_named() -> None:
    assert objections("one\ntwo in turns") == ["2: 'in turns': say rounds, in alternation"]
