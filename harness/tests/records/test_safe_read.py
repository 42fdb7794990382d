"""Tests for reading files with arbitrary contents."""

import os
from pathlib import Path

import pytest

from harness.records import safe_read


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"[" * 100_000, "recursion limit"),
        (b"1" * 10_000, "number out of range"),
        (b"1" * 50 + b"e999", "number 1{30} is too large"),
        (b"NaN", "expected value"),
        (b"", "EOF while parsing"),
        (b'{"a": 1,}', "trailing comma"),
        (b'{"a": 1} {}', "trailing characters"),
        (b'[{"id": 01}]', "invalid number"),
        (b'{"b": 1, "a": {"c": 1}, "c": 2, "a": 1, "b": 0}', "duplicate key 'a' in an object"),
        (b'"\\ud800"', ".*hex escape"),
        (b'"\xff"', "invalid unicode code point"),
        (b'{"a": ', ".* line 1 column 6$"),
        (b"\xef\xbb\xbf{}", "starts with a byte order mark: save it as UTF-8 without BOM$"),
    ],
)
def test_invalid_json_is_explained(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=f"^not valid JSON: {says}"):
        safe_read.parse_json(data)


def test_pipes_and_large_files_are_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=rf"\[Errno 22\] is not a regular file: '{tmp_path}/pipe'"):
        safe_read.read(tmp_path / "pipe", 10)
    path, text = tmp_path / "file", b"x" * (1 + (3 << 20))
    path.write_bytes(text)
    for most, said in ((100, r"0\.098 KiB"), (1 << 20, "1 MiB"), (3 << 20, "3 MiB")):
        with pytest.raises(OSError, match=rf"\[Errno 27\] larger than {said}: '{path}'"):
            safe_read.read(path, most)
    assert safe_read.read(path, len(text)) == text


def test_json_with_too_many_values_is_rejected() -> None:
    assert safe_read.parse_json(b'{"a": [1, 2.5, "x", null, true]}') == {"a": [1, 2.5, "x", None, True]}
    message = "contains more than 1,002 arrays and objects, or 2,003 values"
    for data in (b"[{" * 501 + b"[", b"," * 2004):
        with pytest.raises(ValueError, match=f"^{message}$"):
            safe_read.require_bounded_json(data, 1002, 2003)
        assert safe_read.require_bounded_json(data[:-1], 1002, 2003) == data[:-1]
    with pytest.raises(ValueError, match="arrays and objects"):
        safe_read.parse_json(b"[" + b"[]," * safe_read.MAX_JSON_CONTAINERS + b"[]]")
    with pytest.raises(ValueError, match="or 2 values"):
        safe_read.parse_json(b"[1, 2, 3, 4]", values=2)


def test_only_configurations_reject_nul_characters() -> None:
    assert safe_read.parse_json(b'"\\u0000"') == "\0"
    for data in (b'"\\u0000"', b'"\\\\\\u0000"'):
        with pytest.raises(ValueError, match="a NUL character"):
            safe_read.require_no_nul(data)
    assert safe_read.require_no_nul(b'"\\\\u0000"') == b'"\\\\u0000"'  # a backslash and five other characters


def test_toml_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1")
    assert safe_read.read_toml_document(path) == {"a": 1}
    for data, says in (
        (b"a = " + b"[" * 20_000, "nested too deeply"),
        (b"a = ", "not valid TOML"),
        (b"\xff", "not valid TOML: .* byte 0xff"),
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=says):
            safe_read.read_toml_document(path)
