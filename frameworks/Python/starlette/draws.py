"""What is drawn at random for a request, and the integers that a request may name."""

import random
import re

ROWS = 10_000
MAX_QUERIES = 500
INTEGER = re.compile(r"-?[0-9]+")


def clamped(parameter: str | None, low: int, high: int, otherwise: int) -> int:
    """The integer that a parameter holds, clamped; ``otherwise`` when absent or not an integer (int() takes "+5")."""
    if parameter is None or not INTEGER.fullmatch(parameter):
        return otherwise
    if len(parameter) > 20:  # beyond int()'s limit of digits it is long past the bounds
        return low if parameter.startswith("-") else high
    return min(max(int(parameter), low), high)


def query_count(parameter: str | None) -> int:
    """The number of rows, 1..500."""
    return clamped(parameter, 1, MAX_QUERIES, 1)


def row() -> int:
    """Uniform over 1..10000: an id, or a number."""
    return int(random.random() * ROWS) + 1


def distinct_rows(count: int) -> list[int]:
    """Different ids in ascending order, the order in which rows are locked: concurrent updates can't deadlock."""
    return sorted(random.sample(range(1, ROWS + 1), count))


def number_other_than(old: int) -> int:
    """Uniform over 1..10000 without ``old``, so that a write always changes the row."""
    drawn = int(random.random() * (ROWS - 1)) + 1
    return drawn if drawn < old else drawn + 1
