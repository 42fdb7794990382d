"""Strict JSON: what ``json.loads`` forgives (a name twice, NaN, a byte order mark, other encodings) is an error."""

import json
from typing import NoReturn

# A parser takes some hundred bytes for each: few megabytes of them would fill memory.
MOST_OPENED, MOST_VALUES = 10_000, 100_000


class JsonError(ValueError):
    """Not a JSON text as RFC 8259 has it, or an object with a name twice."""


def parse_json(body: bytes, *, bounded: bool = True) -> object:
    """The document of a UTF-8 body, ``bounded`` to what the six tests answer; raises JsonError with what is wrong."""
    if bounded and (found := body.count(b"[") + body.count(b"{")) > MOST_OPENED:
        raise JsonError(f"holds {found:,} arrays and objects: no answer of these tests has more than {MOST_OPENED:,}")
    if bounded and (found := body.count(b",")) > MOST_VALUES:
        raise JsonError(f"holds {found:,} commas: no answer of these tests has more than {MOST_VALUES:,}")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8: {error.reason} at byte {error.start}") from error
    if text.startswith("\ufeff"):
        raise JsonError("begins with a byte order mark")
    try:
        document: object = _DECODER.decode(text)
    except JsonError:
        raise
    except ValueError as error:  # includes integers of more digits than Python converts
        raise JsonError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise JsonError("nested too deeply") from error
    return document


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        names = [name for name, _ in pairs]
        raise JsonError(f"an object has a name twice: {', '.join(names)}")
    return document


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)  # made once: a load's answers are many
