"""What is made of known input, held line by line against what somebody has read and approved.

``TFB_APPROVE=1 .venv/bin/pytest harness/tests/…`` writes harness/tests/approved anew: read its difference before you
commit it.
"""

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "approved"
MOST_SHOWN = 12


def approve(name: str, found: Any, without: Collection[str] = ()) -> None:
    """Equal to ``approved/<name>.txt`` but for rounding; keys ``without`` are of this machine, or of no interest."""
    lines = dict(_flat(json.loads(json.dumps(found)), "", without))
    path = FOLDER / f"{name}.txt"
    if os.environ.get("TFB_APPROVE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
    assert path.exists(), f"{path}: nothing is approved yet: TFB_APPROVE=1 writes it"
    wanted = dict(line.split(" = ", 1) for line in path.read_text(encoding="utf-8").splitlines())
    differing = [
        f"{key}: {lines.get(key, 'nothing')}, approved {wanted.get(key, 'nothing')}"
        for key in dict.fromkeys((*wanted, *lines))
        if key not in lines or key not in wanted or not _alike(lines[key], wanted[key])
    ]
    assert not differing, f"{len(differing)} lines of {path.name}:\n" + "\n".join(differing[:MOST_SHOWN])


def _alike(one: str, other: str) -> bool:
    found, wanted = json.loads(one), json.loads(other)
    numbers = not isinstance(found, str) and not isinstance(wanted, str)
    return one == other or (numbers and bool(found == pytest.approx(wanted, rel=1e-6, abs=1e-12)))


def _flat(found: Any, key: str, without: Collection[str]) -> Iterator[tuple[str, str]]:
    """A line for each value that is not empty, by its path; for each list of numbers one."""
    if found in (None, "", [], {}):
        return
    if isinstance(found, dict):
        for name, value in found.items():
            if name not in without:
                yield from _flat(value, f"{key}.{name}" if key else name, without)
    elif isinstance(found, list) and not all(isinstance(value, int | float) for value in found):
        for place, value in enumerate(found):
            yield from _flat(value, f"{key}.{place}", without)
    else:
        several = found if isinstance(found, list) else [found]
        short = [float(f"{value:.9g}") if isinstance(value, float) else value for value in several]
        yield key, json.dumps(short if isinstance(found, list) else short[0], ensure_ascii=False)
