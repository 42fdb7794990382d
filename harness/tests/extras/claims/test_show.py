"""Verdicts in words and pictures: what was said, what was measured, and what it would take."""

import io

import pytest
from rich.console import Console

from harness.extras.claims import show
from harness.extras.claims.claim import Claim, read
from harness.paths import REPOSITORY
from harness.records import claims as recorded
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.tests.extras.claims.records import STEADY, claim, claim_of, judged, run_of, side

NEVER_TRIED = claim(ratio=2.5).model_copy(update={"name": "new", "title": "Never tried", "talk": "a talk"})
SAID = claim_of(
    {"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5},
    {"name": "other", "metric": "throughput", "of": side("a"), "to": side("c"), "order": "higher"},
    {"name": "errors", "metric": "errors", "of": side("a"), "order": "none"},
    here="two | CPUs",
)


def verdict(said: Claim = SAID) -> ClaimVerdict:
    return judged(said, run_of(STEADY))


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({"value": 2.313, "low": 2.2, "high": 2.43}, "2.31× [2.20, 2.43]"),
        ({"value": 0.4567}, "0.457×"),
        ({"value": None}, "–"),
        ({"value": 1042.0, "to": ""}, "1,042"),
    ],
)
def test_a_figure_is_a_ratio_with_its_interval_or_a_count(facts: dict[str, object], shown: str) -> None:
    first = verdict().statements[0].model_dump() | {"low": None, "high": None}
    assert show.measured(StatementVerdict.model_validate(first | facts)) == shown


@pytest.mark.parametrize(("here", "shown"), [(2.51, "2.5×"), (20.0, "2.5×, here 20.00×")])
def test_what_theory_expects_here_stands_beside_what_was_said_where_it_differs(here: float, shown: str) -> None:
    assert show.expected(verdict().statements[0].model_copy(update={"expected": here})) == shown


def test_the_page_has_each_claim_with_its_source_machine_and_what_is_open() -> None:
    disturbed = verdict().model_copy(update={"concerns": ("load 10.9 on 2 CPUs",)})
    page = show.page([SAID, NEVER_TRIED], {"name": disturbed})
    assert "| title | **undecided** | It is open (1 of 3 statements): other: c json c64: not measured. |" in page
    assert "| Never tried | not measured yet |" in page
    assert "- 1 on Slow CPU, 2 CPUs, kernel 6.1, grade D, local runtime, 1970-01-01" in page
    assert "- What disturbed the measurements: load 10.9 on 2 CPUs." in page


def test_a_sentence_has_the_figures_that_make_the_verdict() -> None:
    supported = verdict(claim(ratio=2.5)).sentence
    assert supported.startswith("It holds here: 2.50× [")
    assert supported.endswith("], said 2.5×.")
    assert verdict(claim(ratio=5.0)).sentence.startswith("The order is as said, the size is not: 2.50× [")
    exact, wide = (
        StatementVerdict.model_validate(verdict(claim(ratio=5.0)).statements[0]),
        {"more": 12.0, "takes": "more"},
    )
    still_open = exact.model_copy(update={"value": 5.0, "low": 3.75, "high": 6.67, **wide})
    assert show.sentence("direction only", [still_open]).startswith("The order is as said, the size is open: 5.00× [")
    both = show.sentence("direction only", [still_open, exact])
    assert both.startswith("The order is as said, the size is another, or open: ")
    refuted = verdict(claim(order="lower")).sentence
    assert refuted.startswith("It does not hold here: 2.50× [")


@pytest.mark.parametrize(("ratio", "order"), [(2.5, "│●"), (5.0, "│●░"), (0.2, "░│●")])
def test_a_picture_has_1_what_was_said_and_the_interval_in_their_order(ratio: float, order: str) -> None:
    (statement,) = verdict(claim(ratio=ratio)).statements
    picture = show.picture(statement)
    assert len(picture) == show.COLUMNS
    assert sorted(order, key=picture.index) == list(order)
    assert show.picture(statement.model_copy(update={"low": None})) == ""


def test_the_terminal_lists_what_was_never_measured_too() -> None:
    out = io.StringIO()
    show.show([SAID, NEVER_TRIED], {"name": verdict()}, Console(file=out, width=140), whole=True)
    for said in ("undecided", "not measured yet", "c json c64: not measured", "●"):
        assert said in out.getvalue()


def test_the_page_of_the_repository_is_that_of_the_published_verdicts() -> None:
    """``./tfb claims report --results results/rounds/1 --output docs/claims.md`` makes it."""
    page = (REPOSITORY / "docs" / "claims.md").read_text(encoding="utf-8")
    assert page == show.page(list(read().values()), recorded.read(recorded.PUBLISHED).verdicts)
