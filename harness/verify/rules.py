"""Which paragraphs of docs/requirements.md TechEmpower's rules ask for, and what fails under both sets of rules.

``tfb`` is all of docs/requirements.md. ``techempower`` fails what TechEmpower's rules ask for, and what is dishonest or
wrong in data whoever looks; the rest warns. The page carries the same marks, and a test holds the two together.
"""

from enum import StrEnum

from harness.plan.discovery import Rules


class Standing(StrEnum):
    """What a paragraph is under TechEmpower's rules; the values are the marks of docs/requirements.md."""

    ASKED = "TE"  # their rules ask for it, and their verification, or their reviewers, refuse what does not
    DATA = "data"  # an answer would be dishonest or wrong: it fails, whether or not their verification sees it
    OURS = "ours"  # they do not ask for it: it warns


_MARKS: dict[Standing, str] = {
    Standing.ASKED: (
        "http.1 http.2 http.4 http.6 http.7 http.9 http.10 http.11 json.1 json.2 json.4 plaintext.1 rows.1 "
        "rows.2 rows.3 count.1 statements.2 statements.3 statements.6 statements.7 fortune.1 fortune.2 "
        "fortune.3 fortune.4"
    ),
    Standing.DATA: (
        "json.3 rows.4 rows.5 random.1 random.2 random.3 random.4 update.1 update.2 update.3 update.4 "
        "update.6 update.7 statements.5 fortune.5 load.1 load.2 load.3 load.4 load.5 load.6 load.7 "
        "load.8 load.9 load.10 load.11 delay.1 fan-out.4 fan-out.5 "
        "order.11 order.13 order.14 order.15 order.16 order.17 order.18 order.19 order.20 order.21 order.22 order.23 "
        "order.24 order.25 order.26 order.27 order.28 order.29"
    ),
    Standing.OURS: (
        "http.3 http.5 http.8 http.12 http.13 http.14 http.15 http.16 http.17 http.18 http.19 http.20 http.21 "
        "http.22 http.23 http.24 delay.2 delay.3 fan-out.1 fan-out.2 fan-out.3 update.5 statements.1 statements.4 "
        "order.1 order.2 order.3 order.4 order.5 order.6 order.7 order.8 order.9 order.10 order.12"
    ),
}
STANDING: dict[str, Standing] = {
    paragraph: standing for standing, paragraphs in _MARKS.items() for paragraph in paragraphs.split()
}


def binds(paragraph: str, rules: Rules) -> bool:
    """Whether a violation of the paragraph fails; one that is not listed does, so that a new one is never lost."""
    return rules == "tfb" or STANDING.get(paragraph, Standing.DATA) is not Standing.OURS
