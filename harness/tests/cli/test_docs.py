"""The documentation: every link leads somewhere, every command of a page exists, and every flag has a help text."""

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from cyclopts import App

from harness.cli.verbs import VERBS, application
from harness.paths import REPOSITORY

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "results/*.md")
    for path in REPOSITORY.glob(pattern)
)
MOST_OF_A_PAGE, MOST_OF_ALL = 3_500, 20_000  # words
READMES = sorted(path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob("frameworks/*/*/README.md"))


def test_the_pages_can_be_read_in_an_afternoon() -> None:
    words = {page: len((REPOSITORY / page).read_text(encoding="utf-8").split()) for page in PAGES}
    assert {page: count for page, count in words.items() if count > MOST_OF_A_PAGE} == {}
    assert sum(words.values()) <= MOST_OF_ALL


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", [*PAGES, *READMES])
def test_every_link_of_a_page_leads_to_something_of_the_repository(page: str) -> None:
    path = REPOSITORY / page
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", path.read_text(encoding="utf-8"))
    local = [(path.parent / link if link else path, anchor) for link, anchor in links if "://" not in link]
    assert [target for target, _ in local if not target.exists()] == []
    named = [(target, anchor) for target, anchor in local if anchor and target.suffix == ".md"]
    assert [(target.name, anchor) for target, anchor in named if anchor not in headings(target)] == []


def command_of(verb: Sequence[str]) -> App:
    """The parser of ``run`` or of ``claims run``; of no verb, that of TechEmpower's flags."""
    app = application()
    for name in verb:
        app = app[name]
    return app


def flags_of(verb: Sequence[str]) -> set[str]:
    """All flags that it takes."""
    return {name for each in command_of(verb).assemble_argument_collection() for name in each.names} | {"--help"}


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each ``./tfb`` of a page, up to a comment or the end of its line."""
    for found in re.finditer(r"(?<![\w/])\./tfb\b([^`\n#|>;)]*)", text):
        yield found[1].replace("[", " ").replace("]", " ").split()


@pytest.mark.parametrize("page", [*PAGES, *READMES])
def test_every_command_and_module_that_a_page_runs_exists(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for arguments in commands(text):
        verb = [each.rstrip(",.:") for each in arguments[:1] if not each.startswith("-") and each != "VERB"]
        assert set(verb) <= set(VERBS), f"./tfb {' '.join(arguments)}"
        if verb == ["claims"]:
            verb += [each for each in arguments[1:2] if each in ("run", "report")]
        known = flags_of(verb) | (flags_of(["run"]) if "--" in arguments else set())
        flags = {each.partition("=")[0].rstrip(",.:") for each in arguments if each.startswith("--")} - {"--"}
        assert flags - known == set(), f"./tfb {' '.join(arguments)}"
    modules = set(re.findall(r"python -m (harness[\w.]*)", text))
    assert {name for name in modules if find_spec(name) is None} == set()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_named_in_the_page_of_the_command_line(verb: str) -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{verb}[ `]", page, re.MULTILINE), f"docs/cli.md has no row of {verb}"


@pytest.mark.parametrize("verb", [*VERBS, "claims run", "claims report"])
def test_every_flag_has_a_help_text(verb: str) -> None:
    flags = command_of(verb.split()).assemble_argument_collection()
    assert [each.name for each in flags if each.show and not each.parameter.help] == []
