"""What people read for a word of the records, and the remarks that all rows share."""

from collections.abc import Iterable, Sequence

from harness.stats.model import Row, Table

NAMES = {  # as harness/dashboard/web/src/words.ts has them
    "contended": "CPU contention",
    "not steady": "not warmed up",
    "generator-bound": "limited by the load generator",
    "link full": "limited by the network",
}


def name(word: str) -> str:
    """A word of the records in plain words."""
    return NAMES.get(word, word)


def counted(number: int, thing: str) -> str:
    """``1 implementation``, ``2 implementations``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def shared(tables: Iterable[Table]) -> frozenset[str]:
    """The words that every ranked row of all these tables has; none where there are fewer than two rows."""
    rows = [row for table in tables for row in table.rows if row.ranked]
    if len(rows) < 2:
        return frozenset()
    return frozenset(set.intersection(*(set(row.words) for row in rows)))


def in_order(words: Iterable[str], rows: Sequence[Row]) -> list[str]:
    """Words in the order in which the rows have them."""
    wanted = set(words)
    return [word for word in dict.fromkeys(word for row in rows for word in row.words) if word in wanted]
