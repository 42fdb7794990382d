"""A document as it is sent: packed for who takes that, and not again to who has it."""

import gzip

from harness.dashboard.bodies import body
from harness.dashboard.documents import LatencyDocument

LONG = body(LatencyDocument(test_type="x" * 5000, cells=()))


def test_who_takes_gzip_is_sent_it_and_others_the_plain_bytes() -> None:
    status, packed, headers = LONG.answer("gzip, br", "")
    assert (status, headers["content-encoding"], gzip.decompress(packed)) == (200, "gzip", LONG.plain)
    assert LONG.answer("", "")[1] == LONG.plain
    assert "content-encoding" not in LONG.answer("", "")[2]


def test_who_has_the_document_is_sent_nothing() -> None:
    assert LONG.answer("gzip", f'"other", W/{LONG.tag}')[:2] == (304, b"")


def test_a_short_document_is_not_packed_and_another_has_another_tag() -> None:
    short = body(LatencyDocument(test_type="json", cells=()))
    assert short.packed == b""
    assert short.answer("gzip", LONG.tag)[:2] == (200, short.plain)
