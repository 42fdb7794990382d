"""Random ids and numbers, and integer parameters of requests."""

import random
import re

ROWS = 10_000
MAX_QUERIES = 500
INTEGER = re.compile(r"-?[0-9]+")


def clamped(parameter: str | None, low: int, high: int, otherwise: int) -> int:
    """Return a parameter as a clamped integer, or ``otherwise`` if it is not an integer (int() would accept "+5")."""
    if parameter is None or not INTEGER.fullmatch(parameter):
        return otherwise
    if len(parameter) > 20:  # longer numbers exceed the bounds, and may exceed int()'s digit limit
        return low if parameter.startswith("-") else high
    return min(max(int(parameter), low), high)


def query_count(parameter: str | None) -> int:
    """Return the requested number of rows, clamped to 1..500."""
    return clamped(parameter, 1, MAX_QUERIES, 1)


def row() -> int:
    """Return an integer, uniform over 1..10000, for use as an id or a number."""
    return int(random.random() * ROWS) + 1


def distinct_rows(count: int) -> list[int]:
    """Return different ids in ascending order, so concurrent updates cannot deadlock."""
    return sorted(random.sample(range(1, ROWS + 1), count))


def number_other_than(old: int) -> int:
    """Return a number, uniform over 1..10000 except ``old``, so every write changes the row."""
    drawn = int(random.random() * (ROWS - 1)) + 1
    return drawn if drawn < old else drawn + 1
