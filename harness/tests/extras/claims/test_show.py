"""Verdicts in words: what was said, what was measured, and what it would take."""

import io

import pytest
from rich.console import Console

from harness.claims import judgement
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.report import claims as report
from harness.tests.claims.records import claim_of, run_of, side

RUN = run_of({"a": (2500.0, 2510.0, 2505.0), "b": (1000.0, 1001.0, 1002.0)})


def verdict() -> ClaimVerdict:
    found = claim_of(
        {"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5},
        {"name": "other", "metric": "throughput", "of": side("a"), "to": side("c"), "order": "higher"},
        {"name": "errors", "metric": "errors", "of": side("a"), "none": True},
        here="two | CPUs",
        cpus=8,
    )
    return judgement.of_run(found, RUN)


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
    assert report.measured(StatementVerdict.model_validate(first | facts)) == shown


@pytest.mark.parametrize(("here", "shown"), [(2.51, "2.5×"), (20.0, "2.5×, here 20.00×")])
def test_what_theory_expects_here_stands_beside_what_was_said_where_it_differs(here: float, shown: str) -> None:
    first = verdict().statements[0].model_copy(update={"expected": here, "theory": "why"})
    assert report.expected(first) == shown


def test_the_page_has_each_claim_with_conditions_machine_profile_and_what_is_open() -> None:
    out = io.StringIO()
    disturbed = verdict().model_copy(update={"concerns": ("load 10.9 on 2 CPUs",)})
    report.page([disturbed], [("x", "Never tried", "a talk")], out)
    page = out.getvalue()
    assert "| [title](#name) | talk | **undecided** (2 supported, 1 undecided) |" in page
    assert "| Never tried | a talk | not measured yet | |" in page
    assert '<a id="name"></a>' in page
    assert "- 1 on " in page
    assert "- What disturbed the measurement: load 10.9 on 2 CPUs.\n" in page
    assert "profile `simulated`" in page
    assert "Measured on 2 CPUs (8 when it was said)" in page
    assert "c json c64: not measured; it would take run it again" in page
    assert "two | CPUs" in page  # not in a table


def test_a_ratio_without_an_interval_is_left_out_of_the_table_of_all() -> None:
    first = verdict().statements[0].model_copy(update={"low": None, "high": None})
    table = report.table([verdict().model_copy(update={"statements": (first,)})])
    assert "2.5" not in table
    assert "2.50× [" in report.table([verdict()])


def test_the_terminal_lists_what_was_never_measured_too() -> None:
    out = io.StringIO()
    report.listing([("name", "t", "k", verdict()), ("new", "u", "k", None)], Console(file=out, width=100))
    assert "undecided" in out.getvalue()
    assert "not measured yet" in out.getvalue()
    report.show([verdict()], Console(file=out, width=120))
    assert "b json" not in out.getvalue()
    assert "c json c64: not measured" in out.getvalue()
