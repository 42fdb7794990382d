"""The data set of the JSON test types: 50 items, which tfb generates anew for each start of a server."""

import json
import random
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Item = Mapping[str, Any]

COUNT = 50  # number of items in the data set
MAX_MULTIPLIER = 1_000
VARIABLE = "DATASET"  # environment variable that contains the file's path
FILE = "dataset.json"
# Some words contain non-ASCII characters, or characters that are escaped in JSON or HTML.
ADJECTIVES = ("Blue", "Cosy", "Élan", "Fine", "Größe", "Hardy", "Light", "Quiet", '12"', "Salt & Pepper", "Übersee")
NOUNS = ("Basket", "Chair", "Clock", "Desk", "Kettle", "Lamp", "Mirror", "Rug", "Shelf", "Stool", "Vase")
CATEGORIES = ("bath", "garden", "kitchen", "office", "play & fun", "travel")
TAGS = ("handmade", "imported", "large", "limited", "organic", "popular", "sale", "small", "vegan", "wooden")


def make_items(seed: int) -> list[Item]:
    """Generate the data set for a seed."""
    dice = random.Random(seed)
    return [
        {
            "id": number,
            "name": f"{dice.choice(ADJECTIVES)} {dice.choice(NOUNS)} {dice.randint(1, 999)}",
            "category": dice.choice(CATEGORIES),
            "price": dice.randint(1, 500),
            "quantity": dice.randint(1, 100),
            "active": dice.random() < 0.7,
            "tags": dice.sample(TAGS, dice.randint(1, 4)),
            "rating": {"score": dice.randint(0, 50), "count": dice.randint(0, 5_000)},
        }
        for number in range(1, COUNT + 1)
    ]


def write_data_set(folder: Path) -> Mapping[str, str]:
    """Write a random data set to a folder. Return a mapping from environment variable to file name."""
    items = make_items(secrets.randbits(63))
    (folder / FILE).write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    return {VARIABLE: FILE}


def read_data_set(file: Path) -> tuple[Item, ...]:
    """Read the items from a JSON file."""
    return tuple(json.loads(file.read_text(encoding="utf-8")))


def expected_document(items: Sequence[Item], count: int, multiplier: int) -> Item:
    """Return the correct JSON response for the first ``count`` items, with totals scaled by ``multiplier``."""
    totals = [{**item, "total": item["price"] * item["quantity"] * multiplier} for item in items[:count]]
    return {"items": totals, "count": count}
