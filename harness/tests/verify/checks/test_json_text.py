"""Strict JSON."""

import pytest

from harness.verify.checks.json_text import JsonError, parse_json


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "Infinity"),
        (b"{'a':1}", "not JSON"),
        (b'{"a":1} {}', "not JSON"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'[{"id":01}]', "not JSON"),
        (b"[" + b"9" * 5000 + b"]", "not JSON"),
        (b"[" * 9_000, "too deeply"),
        (b'[{"id":1,"id":2}]', "a name twice: id, id"),
    ],
)
def test_what_json_does_not_allow_is_an_error_that_says_why(body: bytes, why: str) -> None:
    with pytest.raises(JsonError, match=why):
        parse_json(body)


@pytest.mark.parametrize(("body", "what"), [(b"[" + b"{}," * 20_000 + b"1]", "arrays"), (b"1," * 200_000, "commas")])
def test_what_would_fill_memory_is_not_parsed(body: bytes, what: str) -> None:
    with pytest.raises(JsonError, match=f"holds .* {what}"):
        parse_json(body)
