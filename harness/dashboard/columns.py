"""Long tables of a document as columns: rows of one shape, and values that all rows share, are then told once. Pure.

A table of ``count`` rows is ``{"count": …, "columns": {field: column}}``. A column is ``{"same": value}``, ``{"each":
[value of each row]}``, or of objects of one shape, where some may be null, ``{"columns": {field: column}, "none":
[indices]}``. web/src/columns.ts makes rows of it again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from harness.dashboard.documents import RunDocument

LEAST_ROWS = 24  # shorter tables stay as they are
FIELD = re.compile(r"[a-z][a-z0-9_]*")  # of a model, and no key that means something to JavaScript, such as __proto__

Json = Any


def packed(document: RunDocument) -> bytes:
    """A run's document as JSON, its implementations, headline tables and scores as columns where they are long."""
    whole = from_json(document.model_dump_json())
    for holder, key in tables(whole):
        holder[key] = columns(holder[key]) or holder[key]
    return to_json(whole)


def tables(document: Json) -> Iterator[tuple[dict[str, Json], str]]:
    """Where the long tables of a run's document are: an object and its key."""
    yield document["run"], "implementations"
    yield document["ranking"], "overall"
    for test in document["ranking"]["test_types"].values():
        yield test["headline"], "rows"


def columns(rows: Sequence[Json]) -> dict[str, Json] | None:
    """A table's columns; None for one that is short, or whose rows differ in their fields."""
    fields = _fields(rows) if len(rows) >= LEAST_ROWS else None
    if fields is None:
        return None
    return {"count": len(rows), "columns": {name: _column([row[name] for row in rows]) for name in fields}}


def _fields(rows: Sequence[Json]) -> list[str] | None:
    """What every row has, in its order; None where they are not objects of one shape."""
    first = rows[0]
    if not isinstance(first, Mapping) or not first or not all(FIELD.fullmatch(name) for name in first):
        return None
    names = first.keys()
    return list(names) if all(isinstance(row, Mapping) and row.keys() == names for row in rows) else None


def _column(values: list[Json]) -> dict[str, Json]:
    first = values[0]
    if all(value is first or _alike(value, first) for value in values):
        return {"same": first}
    there = [value for value in values if value is not None]
    if fields := _fields(there):
        inner = {name: _column([None if value is None else value[name] for value in values]) for name in fields}
        return {"columns": inner, "none": [index for index, value in enumerate(values) if value is None]}
    return {"each": values}


def _alike(one: Json, other: Json) -> bool:
    """Whether they are the same JSON: ``1 == True`` in Python, and so is what holds them."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, Mapping):
        return all(_alike(value, other[name]) for name, value in one.items())
    return not isinstance(one, list) or all(map(_alike, one, other))
