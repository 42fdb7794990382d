"""Files that may hold anything."""

import os
from pathlib import Path

import pytest

from harness.results import bounded


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"[" * 100_000, "nested deeper than 100 levels"),
        (b"[" * 101 + b"]" * 101, "nested deeper than 100 levels"),
        (b"1" * 10_000, "a number of too many digits"),
        (b"1e999", "too large a number"),
        (b"NaN", "NaN is no number"),
        (b'{"a": 1, "a": 2}', "the key 'a' stands twice"),
        (b'"\\u0000"', "a NUL character"),
        (b'"\\ud800"', "half of a surrogate pair"),
        (b"\xff", "not UTF-8"),
        (b'{"a": ', "line 1, column 7"),
    ],
)
def test_what_no_document_holds_is_named(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bounded.parse(data)


def test_a_document_is_parsed() -> None:
    assert bounded.parse(b'{"a": [1, 2.5, "x", null, true]}') == {"a": [1, 2.5, "x", None, True]}


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is no regular file"):
        bounded.read(tmp_path / "pipe", 10)


def test_a_file_of_more_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345678901")
    with pytest.raises(OSError, match="larger than"):
        bounded.read(tmp_path / "file", 10)
    assert bounded.read(tmp_path / "file", 11) == b"12345678901"
