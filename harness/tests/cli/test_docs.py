"""The documentation: every page is in the site, every link leads somewhere, every command of a page exists."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.cli import docs
from harness.cli.verbs import VERBS
from harness.paths import REPOSITORY
from harness.tests.cli.commands import flags_of
from harness.verify.checks.registry import CHECKS

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (*(REPOSITORY / name for name in docs.PAGES), *(REPOSITORY / "docs").rglob("*.md"))
)
MOST_OF_A_PAGE, MOST_OF_ALL = 3_500, 20_000  # words
READMES = sorted(path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob("frameworks/*/*/README.md"))


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """All pages, as Sphinx gets them."""
    return docs.gathered(tmp_path / "pages")


def test_every_page_is_in_the_contents_once(pages: Path) -> None:
    listed = (pages / "README.md").read_text(encoding="utf-8").rpartition(":hidden:")[2].split()[:-1]
    assert sorted(f"{name}.md" for name in listed) == [page for page in PAGES if page != "README.md"]
    assert len(listed) == len(set(listed))


def test_every_rule_of_verification_has_an_anchor(pages: Path) -> None:
    text = (pages / "docs" / "requirements.md").read_text(encoding="utf-8")
    for rule in {check.rule for check in CHECKS.values()}:
        assert text.count(f'<a id="{rule}"></a>**{rule}**') == 1


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


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each ``./tfb`` of a page, up to a comment or the end of its line."""
    for found in re.finditer(r"(?<![\w/])\./tfb\b([^`\n#|>;)]*)", text):
        yield found[1].replace("[", " ").replace("]", " ").split()


@pytest.mark.parametrize("page", [*PAGES, *READMES])
def test_every_command_of_a_page_exists(page: str) -> None:
    for arguments in commands((REPOSITORY / page).read_text(encoding="utf-8")):
        verb = [each.rstrip(",.:") for each in arguments[:1] if not each.startswith("-") and each != "VERB"]
        assert set(verb) <= set(VERBS), f"./tfb {' '.join(arguments)}"
        if verb == ["claims"]:
            verb += [each for each in arguments[1:2] if each in ("run", "report")]
        known = flags_of(verb) | (flags_of(["run"]) if "--" in arguments else set())
        flags = {each.partition("=")[0].rstrip(",.:") for each in arguments if each.startswith("--")} - {"--"}
        assert flags - known == set(), f"./tfb {' '.join(arguments)}"


@pytest.mark.parametrize("page", [*PAGES, *READMES])
def test_every_module_that_a_page_runs_exists(page: str) -> None:
    named = set(re.findall(r"python -m (harness[\w.]*)", (REPOSITORY / page).read_text(encoding="utf-8")))
    assert {name for name in named if find_spec(name) is None} == set()
