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

DEPTH = 100  # levels of arrays and objects; the documents of a run have eight
TEXT_BYTES = 4 << 20  # of a file that people write
# Brackets and commas of a document: a parser takes some hundred bytes for each, so few megabytes could fill memory.
MOST_VALUES = 1_500_000
MOST_OPENED = 500_000
HALF_PAIR = re.compile("[\ud800-\udfff]")
TOO_DEEP = f"nested deeper than {DEPTH} levels"


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


def toml(path: Path, most: int = TEXT_BYTES) -> dict[str, Any]:
    """A file of TOML; raises OSError as ``read``, and ValueError that says what is wrong with it."""
    said = text(path, most)
    try:
        return tomllib.loads(said)
    except RecursionError:
        raise ValueError("not valid TOML: nested too deep") from None
    except ValueError as error:  # also a number of thousands of digits
        raise ValueError(f"not valid TOML: {error}") from error


def require_few(data: bytes, opened: int = MOST_OPENED, values: int = MOST_VALUES) -> bytes:
    """The bytes of a JSON document as they are; raises ValueError where parsing them would fill memory."""
    found = data.count(b"[") + data.count(b"{")
    if found > opened:
        raise ValueError(f"holds {found:,} arrays and objects, more than {opened:,}")
    if found + data.count(b",") > values:
        raise ValueError(f"holds more than {values:,} values")
    return data


def parse(data: bytes, *, nul: bool = False) -> object:
    """The JSON of a document; raises ValueError that says what no document of ours holds.

    That is: more than ``DEPTH`` levels or ``MOST_VALUES`` values, a key twice in one object, a number that is none
    (NaN, infinite, thousands of digits), half of a surrogate pair, a NUL in a text unless ``nul`` allows it.
    """
    require_few(data)
    try:
        found = json.loads(
            data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError as error:
        said = "a number of too many digits" if "digits" in str(error) else str(error)
        raise ValueError(f"not valid JSON: {said}") from error
    _refuse_odd_texts(found, nul=nul)
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:30]} is too large a number")
    return value


def _refuse_odd_texts(value: object, *, nul: bool) -> None:
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > DEPTH and isinstance(item, dict | list):
            raise ValueError(TOO_DEEP)
        if isinstance(item, dict):
            waiting += [(part, depth + 1) for pair in item.items() for part in pair]
        elif isinstance(item, list):
            waiting += [(part, depth + 1) for part in item]
        elif isinstance(item, str) and "\0" in item and not nul:
            raise ValueError(f"a text holds a NUL character: {item!r:.60}")
        elif isinstance(item, str) and not item.isascii() and HALF_PAIR.search(item):
            raise ValueError(f"a text holds half of a surrogate pair: {item!r:.60}")
