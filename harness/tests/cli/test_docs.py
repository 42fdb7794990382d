"""The documentation as a site: every page is in it, every link of a page leads somewhere."""

import re
from pathlib import Path

import pytest

from harness.cli import docs
from harness.paths import REPOSITORY
from harness.verify.checks.registry import CHECKS

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (*(REPOSITORY / name for name in docs.PAGES), *(REPOSITORY / "docs").rglob("*.md"))
)


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


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_something_of_the_repository(page: str) -> None:
    folder = (REPOSITORY / page).parent
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (REPOSITORY / page).read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (folder / link).exists()] == []
