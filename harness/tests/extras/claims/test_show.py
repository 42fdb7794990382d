"""Verdicts on claims as text and as diagrams."""

import io

import pytest
from rich.console import Console

from harness.extras.claims import show
from harness.extras.claims.claim import Claim, read_claims
from harness.paths import REPOSITORY
from harness.records import claims as recorded
from harness.records.claims import ClaimVerdict
from harness.tests.extras.claims.claim_records import STEADY, claim, claim_of, judged, run_of, side

NEVER_TRIED = claim(ratio=2.5).model_copy(update={"name": "new", "title": "Never tried", "talk": "a talk"})
SAID = claim_of(
    {"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5},
    {"name": "other", "metric": "throughput", "of": side("a"), "to": side("c"), "order": "higher"},
    {"name": "errors", "metric": "errors", "of": side("a"), "order": "none"},
    here="two | CPUs",
)


def verdict(said: Claim = SAID) -> ClaimVerdict:
    return judged(said, run_of(STEADY))


def test_page_shows_source_machine_and_open_statements() -> None:
    disturbed = verdict().model_copy(update={"concerns": ("load 10.9 on 2 CPUs", "no turbo")})
    busier = disturbed.model_copy(update={"concerns": ("load 9.5 on 2 CPUs",)})
    page = show.page(
        [SAID, NEVER_TRIED, SAID.model_copy(update={"name": "twice"})], {"name": disturbed, "twice": busier}
    )
    assert "| title | **undecided** | Undecided (1 of 3 statements): other: c json c64: not measured. |" in page
    assert "| Never tried | not measured yet |" in page
    assert "- 2 on Slow CPU, 2 CPUs, kernel 6.1, grade D, local runtime, 1970-01-01" in page
    assert "sources of noise:\n\n- load 9.5 to 10.9 on 2 CPUs\n- no turbo\n" in page


def test_open_ratios_and_missing_intervals_are_shown() -> None:
    (exact,) = verdict(claim(ratio=5.0)).statements
    still_open = exact.model_copy(update={"value": 5.0, "low": 3.75, "high": 6.67, "more": 12.0, "takes": "more"})
    assert show.sentence("direction only", [still_open]).startswith("Order as claimed, ratio undecided: 5.00× [")
    both = show.sentence("direction only", [still_open, exact])
    assert both.startswith("Order as claimed, ratio different or undecided: ")
    assert show.picture(exact.model_copy(update={"low": None})) == ""


def test_the_terminal_lists_what_was_never_measured_too() -> None:
    out = io.StringIO()
    show.show([SAID, NEVER_TRIED], {"name": verdict()}, Console(file=out, width=140), with_statements=True)
    for said in ("undecided", "not measured yet", "c json c64: not measured", "●"):
        assert said in out.getvalue()


@pytest.mark.needs_extra("orders")
def test_docs_page_matches_the_published_verdicts() -> None:
    page = (REPOSITORY / "docs" / "reference" / "claim-verdicts.md").read_text(encoding="utf-8")
    assert page == show.page(list(read_claims().values()), recorded.read_claims(recorded.PUBLISHED).verdicts)
