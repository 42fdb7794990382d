"""Helpers for tests with approved results: reproducible random input and compact output."""

import random
from typing import Any

from harness.records.record import Record


def luck(*key: object) -> float:
    """Return a standard normal random number that depends only on the key."""
    return random.Random(repr(key)).gauss(0, 1)


def dense(value: Any) -> Any:
    """Convert records of numbers, such as estimates and ratios, to plain lists."""
    if isinstance(value, Record):
        leaves = _leaves(value)
        return leaves if all(isinstance(each, int | float) for each in leaves) else dense(dict(value))
    if isinstance(value, dict):
        return {" ".join(map(str, key)) if isinstance(key, tuple) else key: dense(value[key]) for key in value}
    return [dense(each) for each in value] if isinstance(value, tuple | list) else value


def _leaves(value: Any) -> list[Any]:
    several = dict(value).values() if isinstance(value, Record) else value
    if isinstance(value, tuple | list | Record):
        return [leaf for each in several for leaf in _leaves(each)]
    return [] if value is None else [value]
