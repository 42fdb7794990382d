"""docs/rogues.md is what the gallery and TechEmpower's checks make of it."""

import pytest

from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import URLS, ReferenceServer
from harness.tests.doubles.rogues.everyone import EVERYONE
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.techempower_checks import MINIMUM_URL, Verification
from harness.tests.verify.checks.rogue_table import DOCUMENT, documented, render, techempower
from harness.tests.verify.checks.test_rogues import ELSEWHERE
from harness.verify.checks.registry import CHECKS

# Found by running TechEmpower's own functions: these pass there without a warning.
KNOWN_HOLES = ("string-ids", "floats", "negatives", "keys-in-two-cases", "identical-rows", "injected-script")


def test_the_document_lists_the_gallery_as_it_is() -> None:
    found, runs, honest = documented()
    assert found.keys() == ROGUES.keys()
    assert runs.keys() == EVERYONE.keys()
    assert DOCUMENT.read_text(encoding="utf-8") == render(found, runs, honest)


def test_no_run_has_missed_a_rogue() -> None:
    assert [name for name, run in documented()[1].items() if run.word == "missed"] == []


@pytest.mark.gallery
@pytest.mark.parametrize("name", KNOWN_HOLES)
def test_the_known_holes_of_techempower_are_holes_here_too(name: str, database: DatabaseAddress) -> None:
    assert techempower(ROGUES[name], database) == "pass" == documented()[0][name]


@pytest.mark.gallery
@pytest.mark.parametrize("name", ["select-in", "does-not-read", "sorted-by-id", "json-trailing-comma", "further-key"])
def test_what_techempower_catches_is_documented_as_caught(name: str, database: DatabaseAddress) -> None:
    assert techempower(ROGUES[name], database) == documented()[0][name] != "pass"


@pytest.mark.gallery
@pytest.mark.parametrize("test_type", MINIMUM_URL)
def test_the_reference_server_passes_techempowers_checks(test_type: str, database: DatabaseAddress) -> None:
    with ReferenceServer(database) as server:
        verification = Verification(server.endpoint, test_type, URLS[test_type], database, date_moves=True)
        assert (verification.outcome(), verification.problems) == ("pass", [])


def test_every_check_is_in_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert {name for name in CHECKS if f"`{name}`" not in text} == ELSEWHERE - {"one-answer-a-request"}
