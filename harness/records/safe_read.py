"""Reads untrusted files: only regular files, with limits on the size and on the number of JSON values."""

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

MAX_TEXT_BYTES = 4 << 20  # maximum size of hand-written files
# A parser needs about 100 bytes for each bracket and comma. Without these limits, a file could exhaust memory.
MAX_JSON_VALUES = 10_000_000  # enough for a run as large as TechEmpower's rounds
MAX_JSON_CONTAINERS = 500_000  # arrays and objects; a ranking.json of 31 MB has 280,000
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:u0000|U00000000)")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for other files, and never waits for the writer of a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is not a regular file", str(path))


def read(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file. Raises OSError if the file is larger than ``max_bytes``."""
    with open_regular(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        size = f"{max_bytes / 2**20:g} MiB" if max_bytes >= 1 << 20 else f"{max_bytes / 2**10:.2g} KiB"
        raise OSError(errno.EFBIG, f"larger than {size}", str(path))
    return data


def read_toml_document(path: Path) -> dict[str, Any]:
    """Parse a TOML file. Raises OSError as ``read`` does, and ValueError for invalid TOML."""
    try:
        return tomllib.loads(require_no_nul(read(path, MAX_TEXT_BYTES)).decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("not valid TOML: nested too deeply") from None
    except ValueError as error:  # for example, invalid UTF-8, or a number with thousands of digits
        raise ValueError(f"not valid TOML: {error}") from error


def require_no_nul(data: bytes) -> bytes:
    """Return a configuration unchanged. Raises ValueError if it contains NUL, which is invalid in command lines."""
    if NUL.search(data):
        raise ValueError("contains a NUL character: remove it")
    return data


def require_bounded_json(data: bytes, containers: int = MAX_JSON_CONTAINERS, values: int = MAX_JSON_VALUES) -> bytes:
    """Return a JSON document unchanged. Raises ValueError for too many containers (arrays and objects) or values."""
    if data.count(b"[") + data.count(b"{") > containers or data.count(b",") > values:
        raise ValueError(f"contains more than {containers:,} arrays and objects, or {values:,} values")
    return data


def parse_json(data: bytes, containers: int = MAX_JSON_CONTAINERS, values: int = MAX_JSON_VALUES) -> object:
    """Parse JSON with limits on nesting depth and on the number of containers (arrays and objects) and values.

    Raises ValueError if the text exceeds a limit or is invalid. Unlike ``json.loads``, also reject BOMs, repeated
    keys, unpaired surrogates and unrepresentable numbers.
    """
    try:
        if data.startswith(codecs.BOM_UTF8):
            raise ValueError("starts with a byte order mark: save it as UTF-8 without BOM")  # noqa: TRY301 - same prefix
        from_json(require_bounded_json(data, containers, values), allow_inf_nan=False)  # stricter than json.loads
        return json.loads(data, object_pairs_hook=_unique, parse_float=_finite)
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ValueError(f"duplicate key {repeated!r} in an object")
    return members


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"number {text[:30]} is too large")
    return value
