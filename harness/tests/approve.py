"""Compares computed values with approved files, which a person has reviewed.

``TFB_APPROVE=1 pytest harness/tests/…`` rewrites the files in harness/tests/approved. Review the diff before you commit
it.
"""

import json
import os
import re
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.records.run_info import RunInfo
from harness.report.tables import ranking_tables
from harness.stats.ranking_model import Ranking

FOLDER = Path(__file__).parent / "approved"
WIDTH = 200  # line width in approved files
MAX_ITEM = 60  # longest list item, in characters, that shares a line with other items
MAX_PACKED = 40  # longest field, in characters, that shares a line with other fields
INDENT = "    "  # marks a line that continues the previous one
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")


def approve(name: str, actual: Any, without: Collection[str] = ()) -> None:
    """Assert that ``actual`` equals ``approved/<name>.txt`` up to rounding. Keys in ``without`` are not compared."""
    lines = [" ".join(line.split()) for line in _lines(json.loads(json.dumps(actual)), "", without)]
    path = FOLDER / f"{name}.txt"
    if os.environ.get("TFB_APPROVE"):
        path.write_text("".join(f"{_wrapped(line)}\n" for line in lines), encoding="utf-8")
    assert path.exists(), f"{path} does not exist. Set TFB_APPROVE=1 to write it"
    approved = path.read_text(encoding="utf-8").replace(f"\n{INDENT}", " ").splitlines()
    assert [_rounded(line, old) for line, old in zip(lines, approved, strict=False)] == approved[: len(lines)]
    assert lines[len(approved) :] == []
    assert approved[len(lines) :] == []


def describe_tables(info: RunInfo, ranking: Ranking, *, every_load: bool = False) -> dict[str, list[str]]:
    """Return a ranking's tables as users see them: title -> one line per row, then one line with the remarks."""
    return {
        table.title: [
            *(" | ".join(cells) for cells in zip(*((each.header, *each.cells) for each in table.columns), strict=True)),
            "; ".join(table.remarks),
        ]
        for table in ranking_tables(info, ranking, every_load=every_load)
    }


def _lines(value: Any, key: str, without: Collection[str]) -> Iterator[str]:
    """Yield a line for each object or list: its path and its plain values, without empty values."""
    nested = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(nested, dict):
        yield f"{key}: {_text(value)}"
        return
    used = {str(name): item for name, item in nested.items() if name not in without and item not in (None, "", [], {})}
    plain = {name: item for name, item in used.items() if not isinstance(item, dict | list)}
    if isinstance(value, list) and plain:
        texts = [_text(item) for item in plain.values()]
        line = f"{key}: {' | '.join(texts)}"
        if len(texts) > 1 and len(line) > WIDTH and max(map(len, texts)) > MAX_ITEM:
            yield f"{key}:"
            yield from (f"- {text}" for text in texts)
        else:
            yield line
    else:
        plain = {name: item for name, item in plain.items() if len(_text(item)) <= MAX_PACKED}
        if plain:
            yield f"{key}: {', '.join(f'{name} {_text(item)}' for name, item in plain.items())}".removeprefix(": ")
    for name, item in used.items():
        if name not in plain:
            yield from _lines(item, f"{key}.{name}" if key else name, without)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    return value if isinstance(value, str) and value.isprintable() and value.strip() == value else json.dumps(value)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)


def _rounded(line: str, approved: str) -> str:
    """Return ``line`` with the approved line's numbers wherever the two differ only by rounding."""
    numbers = NUMBER.findall(approved)
    if len(numbers) != len(NUMBER.findall(line)):
        return line
    following = iter(numbers)

    def choose(match: re.Match[str]) -> str:
        old = next(following)
        return old if float(match[0]) == pytest.approx(float(old), rel=2e-6, abs=1e-12) else match[0]

    return NUMBER.sub(choose, line)
