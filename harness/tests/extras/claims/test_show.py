"""Verdicts in words: what was said, what was measured, and what it would take."""

import io

import pytest
from rich.console import Console

from harness.extras.claims import judge, show
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.tests.extras.claims.records import STEADY, claim, claim_of, run_of, side

NEVER_TRIED = claim(ratio=2.5).model_copy(update={"name": "new", "title": "Never tried", "talk": "a talk"})


def verdict() -> ClaimVerdict:
    found = claim_of(
        {"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5},
        {"name": "other", "metric": "throughput", "of": side("a"), "to": side("c"), "order": "higher"},
        {"name": "errors", "metric": "errors", "of": side("a"), "none": True},
        here="two | CPUs",
        cpus=8,
    )
    return judge.of_run(found, run_of(STEADY))


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


def test_the_page_has_each_claim_with_conditions_machine_profile_and_what_is_open() -> None:
    out = io.StringIO()
    disturbed = verdict().model_copy(update={"concerns": ("load 10.9 on 2 CPUs",)})
    show.page([disturbed], [NEVER_TRIED], out)
    page = out.getvalue()
    assert "| [title](#name) | talk | **undecided** (2 supported, 1 undecided) |" in page
    assert "| Never tried | a talk | not measured yet | |" in page
    assert '<a id="name"></a>' in page
    assert "- 1 on Slow CPU, 2 CPUs, kernel 6.1, grade D: profile `quick`, local runtime, 1970-01-01" in page
    assert "- What disturbed the measurement: load 10.9 on 2 CPUs.\n" in page
    assert "Measured on 2 CPUs (8 when it was said)" in page
    assert "c json c64: not measured; it would take run it again" in page
    assert "two | CPUs" in page  # not in a table


def test_a_ratio_without_an_interval_is_left_out_of_the_table_of_all() -> None:
    first = verdict().statements[0].model_copy(update={"low": None, "high": None})
    table = show.table([verdict().model_copy(update={"statements": (first,)})])
    assert "2.5" not in table
    assert "2.50× [" in show.table([verdict()])


def test_the_terminal_lists_what_was_never_measured_too() -> None:
    out = io.StringIO()
    show.listing([(claim(ratio=2.5), verdict()), (NEVER_TRIED, None)], Console(file=out, width=100))
    assert "undecided" in out.getvalue()
    assert "not measured yet" in out.getvalue()
    show.show([verdict()], Console(file=out, width=120))
    assert "c json c64: not measured" in out.getvalue()
