"""Tests for the checks of dates and media types."""

import calendar

from harness.tests.verify.subjects import exchange
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.http import content_type, date_now, parse_date


def test_only_imf_fixdates_are_dates() -> None:
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


def test_a_date_lies_between_request_and_response() -> None:
    for sent, received, under_load, fresh in (
        (0.0, 0.01, False, True),
        (1.99, 2.0, False, True),  # Date has whole seconds, and a server may refresh it only once per second
        (2.9, 2.9, False, True),
        (3.1, 3.1, False, False),
        (3.1, 3.1, True, True),
        (9.0, 9.0, True, False),
        (-6.0, 0.1, False, True),  # the response takes six seconds
        (-2.0, -1.5, False, False),  # Date is in the future
    ):
        one = exchange(headers=[("Date", NOON)], sent_at=AT_NOON + sent, received_at=AT_NOON + received)
        evidence = Evidence(test_type="json", under_load=under_load, exchanges=[one])
        assert (list(date_now.find(evidence)) == []) is fresh, sent


def test_content_type_matches_and_is_not_repeated() -> None:
    json, plain, page = "application/json", "text/plain", "text/html"
    right = [("json", json), ("json", f"{json};charset=UTF-8"), ("plaintext", f"{plain} ; charset=utf-8")]
    right += [("fortune", 'Text/HTML; charset="UTF-8"')]
    wrong = [("json", f"{json}; charset=latin1"), ("json", "application/problem+json"), ("json", f"{json}; charset")]
    wrong += [("plaintext", f"{plain}; charset=utf-8; format=flowed"), ("fortune", page)]
    for test_type, value in right + wrong:
        once, twice = (exchange(headers=[("Content-Type", value)] * times) for times in (1, 2))
        found = [[*content_type.find(Evidence(test_type=test_type, exchanges=[one]))] for one in (once, twice)]
        assert [len(one) for one in found] == [(test_type, value) in wrong, 1], value
