"""Reads a file that may hold anything: regular files only, so many bytes, JSON as deep and long as a document is."""

import errno
import json
import math
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

TEXT_BYTES = 4 << 20  # of a file that people write
# Brackets and commas of a document: a parser takes some hundred bytes for each, so few megabytes could fill memory.
MOST_VALUES = 10_000_000  # of numbers mostly, as a run of TechEmpower's size holds
MOST_OPENED = 500_000
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:u0000|U00000000)")


def open_regular(path: Path) -> BinaryIO:
    """Open for reading; raises OSError for a pipe, a device or a folder, and never waits for the other end of one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is no regular file", str(path))


def read(path: Path, most: int) -> bytes:
    """All bytes of a file; raises OSError for one that is larger than ``most`` bytes, or no regular file."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        size = f"{most / 2**20:g} MiB" if most >= 1 << 20 else f"{most / 2**10:.2g} KiB"
        raise OSError(errno.EFBIG, f"larger than {size}", str(path))
    return data


def text(path: Path, most: int = TEXT_BYTES) -> str:
    """A file of UTF-8, with or without a byte order mark; raises OSError as ``read``, ValueError for other bytes."""
    try:
        return read(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason} at byte {error.start}") from error


def toml(path: Path) -> dict[str, Any]:
    """A file of TOML; raises OSError as ``read``, and ValueError that says what is wrong with it."""
    said = text(path)
    if NUL.search(said.encode()):  # nothing could be started with it
        raise ValueError("not valid TOML here: a text holds a NUL character")
    try:
        return tomllib.loads(said)
    except RecursionError:
        raise ValueError("not valid TOML: nested too deep") from None
    except ValueError as error:  # also a number of thousands of digits
        raise ValueError(f"not valid TOML: {error}") from error


def require_few(data: bytes, opened: int = MOST_OPENED) -> bytes:
    """The bytes of a JSON document as they are; raises ValueError where parsing them would fill memory."""
    found = data.count(b"[") + data.count(b"{")
    if found > opened or data.count(b",") > MOST_VALUES:
        raise ValueError(f"holds more than {opened:,} arrays and objects, or {MOST_VALUES:,} values")
    return data


def parse(data: bytes) -> object:
    """The JSON of a document; raises ValueError that says what no document of ours holds.

    That is: more levels than pydantic's parser takes or more than ``MOST_VALUES`` values, a key twice in one object, a
    number that is none (NaN, infinite, thousands of digits), half of a surrogate pair, a NUL in a text.
    """
    try:
        from_json(require_few(data), allow_inf_nan=False)  # refuses what the standard library takes
        if NUL.search(data):
            raise ValueError("a text holds a NUL character")  # noqa: TRY301 - said as the others
        return json.loads(data, object_pairs_hook=_once, parse_float=_finite)
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:30]} is too large a number")
    return value
