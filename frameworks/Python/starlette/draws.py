"""Random ids and numbers, and parsing of integer parameters."""

import random
import re

ROWS = 10_000
MAX_QUERIES = 500
INTEGER = re.compile(r"-?[0-9]+")


def clamped(parameter: str | None, low: int, high: int, fallback: int) -> int:
    """Return a parameter as an integer clamped to ``low..high``, or ``fallback`` if it is not an integer.

    Unlike int(), this function does not accept "+5".
    """
    if parameter is None or not INTEGER.fullmatch(parameter):
        return fallback
    if len(parameter) > 20:  # longer numbers exceed the bounds, and may exceed int()'s digit limit
        return low if parameter.startswith("-") else high
    return min(max(int(parameter), low), high)


def query_count(parameter: str | None) -> int:
    """Return the requested number of rows, clamped to 1..500."""
    return clamped(parameter, 1, MAX_QUERIES, 1)


def row() -> int:
    """Return a uniformly distributed integer from 1 to 10000, for use as an id or a random number."""
    return int(random.random() * ROWS) + 1


def distinct_rows(count: int) -> list[int]:
    """Return distinct ids in ascending order, so that concurrent updates cannot deadlock."""
    return sorted(random.sample(range(1, ROWS + 1), count))


def number_other_than(old: int) -> int:
    """Return a random number from 1 to 10000 that differs from ``old``, so that every update changes the row."""
    drawn = int(random.random() * (ROWS - 1)) + 1
    return drawn if drawn < old else drawn + 1
