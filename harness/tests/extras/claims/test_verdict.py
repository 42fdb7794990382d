"""The verdicts, at the edges that tell them apart."""

import pytest

from harness.extras.claims import judge as verdict
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
        (2.5, 1.5, 2.5, "direction only"),  # the size is open
        (2.5, 0.97, 1.03, "refuted"),  # no difference that is worth the name
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
    assert bool(found.more) == (word == "undecided" or (low, high) == (1.5, 2.5))


@pytest.mark.parametrize(
    ("order", "low", "high", "word"),
    [
        ("higher", 1.01, 1.2, "supported"),
        ("higher", 0.8, 0.9, "refuted"),
        ("higher", 0.97, 1.04, "refuted"),  # 5 % are excluded
        ("higher", 0.9, 1.2, "undecided"),
        ("lower", 0.8, 0.99, "supported"),
        ("lower", 1.1, 1.2, "refuted"),
        ("lower", 0.97, 1.03, "refuted"),
        ("not lower", 0.96, 1.2, "supported"),
        ("not lower", 0.8, 0.94, "refuted"),
        ("not lower", 0.9, 1.2, "undecided"),
        ("not higher", 0.9, 1.04, "supported"),
        ("not higher", 1.06, 1.2, "refuted"),
    ],
)
def test_an_order_is_decided_by_the_side_on_which_the_interval_lies(
    order: str, low: float, high: float, word: Word
) -> None:
    found = verdict.of_order(order, 0.05, ratio((low * high) ** 0.5, low, high), processes=5)
    assert found.word == word
    assert bool(found.more) == (word == "undecided")


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.7, 0.9, "supported"), (0.8, 0.95, "undecided"), (0.92, 0.98, "refuted")]
)
def test_a_substantial_difference_is_one_of_at_least_what_the_file_says(low: float, high: float, word: Word) -> None:
    measured = ratio((low * high) ** 0.5, low, high)
    assert verdict.of_order("lower", 0.10, measured, processes=5, substantial=True).word == word


def test_one_process_each_decides_nothing() -> None:
    found = verdict.of_ratio(2.5, 0.15, ratio(2.5, None, None), processes=1)
    assert (found.word, found.more) == ("undecided", 1)


def test_what_it_takes_grows_with_the_square_of_the_width_over_the_distance_to_the_edge() -> None:
    # Half-width 0.2 on logarithms at 5 processes; 1 is 0.1 away: four times as many. 1.05 is nearer, and takes more.
    found = verdict.of_ratio(8.0, 0.15, ratio(1.10517, 0.904837, 1.349859), processes=5)
    assert found.more == pytest.approx(15, abs=1)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("supported", "supported"), "supported"),
        (("supported", "direction only"), "direction only"),
        (("direction only", "undecided"), "undecided"),
        (("undecided", "refuted"), "refuted"),
        (("needs a larger machine", "direction only"), "needs a larger machine"),
        ((), "undecided"),
    ],
)
def test_a_claim_is_as_good_as_its_worst_statement(words: tuple[Word, ...], word: Word) -> None:
    assert verdict.of_claim(words) == word


def test_of_what_can_be_so_one_statement_that_holds_is_enough() -> None:
    assert verdict.of_claim(("refuted", "supported"), can=True) == "supported"
    assert verdict.of_claim(("refuted", "undecided"), can=True) == "undecided"
