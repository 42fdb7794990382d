"""Reads a file that may hold anything: regular files only, so many bytes, JSON as deep and long as a document is."""

import codecs
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

MAX_TEXT_BYTES = 4 << 20  # of a file that people write
# Brackets and commas of a document: a parser takes some hundred bytes for each, so few megabytes could fill memory.
MAX_JSON_VALUES = 10_000_000  # of numbers mostly, as a run of TechEmpower's size holds
MAX_JSON_CONTAINERS = 500_000  # a ranking.json of 31 MB has 280,000
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


def read_toml_document(path: Path) -> dict[str, Any]:
    """A file of TOML; raises OSError as ``read``, and ValueError that says what is wrong with it."""
    try:
        return tomllib.loads(require_no_nul(read(path, MAX_TEXT_BYTES)).decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("not valid TOML: nested too deep") from None
    except ValueError as error:  # also a number of thousands of digits
        raise ValueError(f"not valid TOML: {error}") from error


def require_no_nul(data: bytes) -> bytes:
    """The bytes of a configuration as they are; raises ValueError for one that nothing could be started with."""
    if NUL.search(data):
        raise ValueError("a text holds a NUL character")
    return data


def require_bounded_json(data: bytes, opened: int = MAX_JSON_CONTAINERS, values: int = MAX_JSON_VALUES) -> bytes:
    """The bytes of a JSON document as they are; raises ValueError where parsing them would fill memory."""
    found = data.count(b"[") + data.count(b"{")
    if found > opened or data.count(b",") > values:
        raise ValueError(f"holds more than {opened:,} arrays and objects, or {values:,} values")
    return data


def parse_json(data: bytes, opened: int = MAX_JSON_CONTAINERS, values: int = MAX_JSON_VALUES) -> object:
    """The JSON of a document, or of a server's answer; raises ValueError that says what is wrong with it.

    That is: more levels than pydantic's parser takes, more than so many arrays and objects or values, a byte order
    mark, a key twice in one object, a number that is none (NaN, infinite, thousands of digits), half of a surrogate
    pair.
    """
    try:
        if data.startswith(codecs.BOM_UTF8):
            raise ValueError("begins with a byte order mark; save it as UTF-8 without one")  # noqa: TRY301 - said as the others
        from_json(
            require_bounded_json(data, opened, values), allow_inf_nan=False
        )  # refuses what the standard library takes
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
