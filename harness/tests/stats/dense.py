"""Reproducible random input, and compact results for ``approve``."""

import random
from typing import Any

from harness.records.record import Record


def luck(*key: object) -> float:
    """Return a standard normal random number that depends only on the key."""
    return random.Random(repr(key)).gauss(0, 1)


def dense(found: Any) -> Any:
    """Convert records that contain only numbers, such as estimates and ratios, to lists of numbers."""
    if isinstance(found, Record):
        leaves = _leaves(found)
        return leaves if all(isinstance(each, int | float) for each in leaves) else dense(dict(found))
    if isinstance(found, dict):
        return {" ".join(map(str, key)) if isinstance(key, tuple) else key: dense(found[key]) for key in found}
    return [dense(each) for each in found] if isinstance(found, tuple | list) else found


def _leaves(found: Any) -> list[Any]:
    several = dict(found).values() if isinstance(found, Record) else found
    if isinstance(found, tuple | list | Record):
        return [leaf for each in several for leaf in _leaves(each)]
    return [] if found is None else [found]
