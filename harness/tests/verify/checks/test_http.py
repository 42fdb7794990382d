"""Dates, media types and freshness of responses."""

import calendar

import pytest

from harness.tests.verify.subjects import exchange
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.http import content_type, date_now, parse_date


def test_only_the_preferred_form_of_a_date_is_one() -> None:
    assert parse_date("Sun, 06 Nov 1994 08:49:37 GMT") == calendar.timegm((1994, 11, 6, 8, 49, 37))
    for text in (
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "",
    ):
        assert parse_date(text) is None, text


NOON = "Sun, 06 Nov 1994 12:00:00 GMT"
AT_NOON = float(calendar.timegm((1994, 11, 6, 12, 0, 0)))


@pytest.mark.parametrize(
    ("sent_at", "received_at", "under_load", "fresh"),
    [
        (AT_NOON, AT_NOON + 0.01, False, True),
        (AT_NOON + 1.99, AT_NOON + 2.0, False, True),  # refreshed once a second, and seconds are cut off
        (AT_NOON + 2.9, AT_NOON + 2.9, False, True),
        (AT_NOON + 3.1, AT_NOON + 3.1, False, False),
        (AT_NOON + 3.1, AT_NOON + 3.1, True, True),
        (AT_NOON + 9.0, AT_NOON + 9.0, True, False),
        (AT_NOON - 6.0, AT_NOON + 0.1, False, True),  # an answer that took six seconds
        (AT_NOON - 2.0, AT_NOON - 1.5, False, False),  # from the future
    ],
)
def test_a_date_is_fresh_when_it_lies_between_request_and_response(
    sent_at: float, received_at: float, under_load: bool, fresh: bool
) -> None:
    evidence = Evidence(test_type="json", under_load=under_load)
    evidence.exchanges = [exchange(headers=[("Date", NOON)], sent_at=sent_at, received_at=received_at)]
    assert (list(date_now.find(evidence)) == []) is fresh


@pytest.mark.parametrize(
    ("test_type", "value", "right"),
    [
        ("json", "application/json", True),
        ("json", "application/json;charset=UTF-8", True),
        ("json", "application/json; charset=latin1", False),
        ("json", "application/problem+json", False),
        ("json", "application/json; charset", False),
        ("plaintext", "text/plain ; charset=utf-8", True),
        ("plaintext", "text/plain; charset=utf-8; format=flowed", False),
        ("fortune", 'Text/HTML; charset="UTF-8"', True),
        ("fortune", "text/html", False),
    ],
)
def test_the_content_type_is_the_test_types(test_type: str, value: str, right: bool) -> None:
    evidence = Evidence(test_type=test_type, exchanges=[exchange(headers=[("Content-Type", value)])])
    assert (list(content_type.find(evidence)) == []) is right


def test_a_header_that_comes_twice_is_no_content_type() -> None:
    twice = exchange(headers=[("Content-Type", "application/json")] * 2)
    assert len(list(content_type.find(Evidence(test_type="json", exchanges=[twice])))) == 1
