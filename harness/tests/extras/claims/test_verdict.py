"""The four verdicts, at the edges that tell them apart."""

import pytest

from harness.extras.claims import verdict
from harness.records.claims import Word
from harness.stats.model import Ratio


def ratio(value: float, low: float | None, high: float | None) -> Ratio:
    return Ratio(value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("expected", "low", "high", "word"),
    [
        (2.5, 2.2, 2.9, "supported"),  # within 2.17 to 2.88 it is not: see below
        (2.5, 2.3, 2.7, "supported"),
        (2.5, 1.2, 1.5, "direction only"),
        (2.5, 3.5, 4.0, "direction only"),
        (2.5, 0.5, 0.9, "refuted"),
        (2.5, 1.5, 2.5, "undecided"),
        (2.5, 0.9, 4.0, "undecided"),
        (0.4, 0.36, 0.44, "supported"),
        (0.4, 0.6, 0.8, "direction only"),
        (0.4, 1.2, 1.4, "refuted"),
        (1.0, 0.95, 1.05, "supported"),
        (1.0, 1.3, 1.4, "refuted"),  # a claim that two are alike claims no order
        (0.95, 0.5, 0.6, "refuted"),
        (1.0, 0.95, 1.3, "undecided"),
    ],
)
def test_an_interval_is_held_against_the_tolerance_and_against_1(
    expected: float, low: float, high: float, word: Word
) -> None:
    tolerance = 0.20 if (expected, low) == (2.5, 2.2) else 0.15
    found = verdict.of_ratio(expected, tolerance, ratio((low * high) ** 0.5, low, high), processes=5)
    assert found.word == word
    assert bool(found.takes) == (word == "undecided")


@pytest.mark.parametrize(
    ("order", "low", "high", "word"),
    [
        ("higher", 1.1, 1.2, "supported"),
        ("higher", 0.8, 0.9, "refuted"),
        ("higher", 0.9, 1.2, "undecided"),
        ("lower", 0.8, 0.9, "supported"),
        ("lower", 1.1, 1.2, "refuted"),
    ],
)
def test_an_order_is_decided_by_the_side_of_1_on_which_the_interval_lies(
    order: str, low: float, high: float, word: Word
) -> None:
    assert verdict.of_order(order, ratio((low * high) ** 0.5, low, high), processes=5).word == word


def test_one_process_each_decides_nothing() -> None:
    found = verdict.of_ratio(2.5, 0.15, ratio(2.5, None, None), processes=1)
    assert (found.word, found.takes) == ("undecided", "at least two processes of each, better five")


def test_what_it_takes_grows_with_the_square_of_the_width_over_the_distance_to_the_edge() -> None:
    # Half-width 0.2 on logarithms at 5 processes; 1 is 0.1 away: four times as many.
    found = verdict.of_order("higher", ratio(1.10517, 0.904837, 1.349859), processes=5)
    assert found.takes.startswith(("about 20 ", "about 21 "))


def test_what_lies_at_the_edge_takes_more_than_can_be_told() -> None:
    found = verdict.of_order("higher", ratio(1.001, 0.9, 1.11), processes=5)
    assert found.takes.startswith("more than 100 processes")


@pytest.mark.parametrize(
    ("count", "none", "word"), [(0, True, "supported"), (3, True, "refuted"), (0, False, "refuted")]
)
def test_errors_are_counted(count: int, none: bool, word: Word) -> None:
    assert verdict.of_count(count, none=none, requests=1000).word == word


def test_a_program_that_ends_differently_from_start_to_start_decides_nothing() -> None:
    assert verdict.of_occurrences((1.0, 0.0), none=False).word == "undecided"
    assert verdict.of_occurrences((1.0, 1.0), none=False).word == "supported"
    assert verdict.of_occurrences((), none=True).word == "undecided"


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("supported", "supported"), "supported"),
        (("supported", "direction only"), "direction only"),
        (("direction only", "undecided"), "undecided"),
        (("undecided", "refuted"), "refuted"),
        ((), "undecided"),
    ],
)
def test_a_claim_is_as_good_as_its_worst_statement(words: tuple[Word, ...], word: Word) -> None:
    assert verdict.of_claim(words) == word
