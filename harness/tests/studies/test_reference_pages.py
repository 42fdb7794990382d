"""The pages in docs/reference/ describe all keys, verbs and flags as the code defines them."""

from types import ModuleType

import pytest

from harness.paths import REPOSITORY

FOLDER = REPOSITORY / "docs" / "reference"
NAMES = sorted(
    {path.stem for path in FOLDER.glob("*.md")} - {"claim-verdicts", "protocols"}
)  # tests of extras check these pages
ALL_EXTRAS = ("claims", "deployments", "gate", "orders", "profiler", "protocols", "site")
pytestmark = [pytest.mark.needs_extra(name) for name in ALL_EXTRAS]


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """Return the page generator. It is imported here, because the import fails without the extras."""
    from harness.studies import reference_pages

    return reference_pages


def test_every_page_has_a_generator(pages: ModuleType) -> None:
    assert sorted(pages.PAGES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_reference_pages_are_current(name: str, pages: ModuleType) -> None:
    command = "python -m harness.studies.reference_pages"
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == pages.PAGES[name](), f"run {command}"


def test_table_and_output_of_the_readme_are_current(pages: ModuleType) -> None:
    command = "python -m harness.studies.reference_pages"
    assert pages.README.read_text(encoding="utf-8") == pages.readme_page(), f"run {command}"


@pytest.mark.parametrize("name", ["benchmark-config", "claims", "cli", "gate", "profiles"])
def test_every_key_has_a_meaning(name: str) -> None:
    rows = [line for line in (FOLDER / f"{name}.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []
