"""Mutations that preserve JSON syntax, so that inputs reach the code behind the parser."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

SHARE = 0.5  # probability of mutating an input as JSON instead of bytes
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -0.0, 5e-324, 1e308, -1e308, float("nan"), float("inf"),
    "", "0", "x" * 5000, "\x1b[2J", "\u2028", "\ud800", "../..", "/", "$a", "{a}", "1e999", [], {}, [[]], [None] * 50,
)  # fmt: skip
MutationPlace = tuple[Any, Any]  # (list or object, index or key in it)


def mutated(data: bytes, most: int, seed: int) -> bytes | None:
    """Mutate a line of the input that contains JSON. Return None if no JSON was found or the result is too long."""
    dice = random.Random(seed)
    lines = [(file, number) for file, part in enumerate(data.split(b"\0")) for number in range(part.count(b"\n") + 1)]
    dice.shuffle(lines)
    parts = [part.split(b"\n") for part in data.split(b"\0")]
    for file, number in lines[:8]:
        try:
            document = [json.loads(parts[file][number])]
        except (ValueError, RecursionError):
            continue
        try:
            for _ in range(dice.randint(1, 3)):
                _change(document, dice)
            parts[file][number] = json.dumps(document[0]).encode()
        # Numbers may have thousands of digits, and documents may be deeply nested.
        except (ArithmeticError, ValueError, RecursionError):
            continue
        made = b"\0".join(b"\n".join(part) for part in parts)
        return made if len(made) <= most else None
    return None


def _change(document: list[Any], dice: random.Random) -> None:
    """Replace, remove, copy or change a random value in ``document``."""
    places = list(_places(document))
    holder, key = dice.choice(places)
    other, elsewhere = dice.choice(places)
    match dice.randrange(5):
        case 0 if holder is not document:
            del holder[key]
        case 1:
            holder[key] = copy.deepcopy(other[elsewhere])
        case 2 if isinstance(holder, list) and holder is not document:
            holder.insert(key, copy.deepcopy(holder[key]))
        case 3 if isinstance(holder[key], int | float):
            holder[key] = dice.choice((-holder[key], holder[key] * 1e6, holder[key] + 1, str(holder[key])))
        case _:
            holder[key] = copy.deepcopy(dice.choice(VALUES))


def _places(value: Any) -> Iterator[MutationPlace]:
    """Yield the places of all values in a list or an object, at every depth."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
