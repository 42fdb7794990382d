"""Damaged files of a run are reported by file and line. Readable records are still shown."""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.dashboard.results_folder import ResultsFolder
from harness.tests.scene import Scene

pytestmark = pytest.mark.fault

Damage = Callable[[Path], object]
MANY = 20_000_000  # number of JSON values whose parsed form needs many times the memory of the text
ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def put(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(data)


def before(name: str, data: bytes) -> Damage:
    """Return a function that inserts data at the start of a file."""
    return lambda folder: (folder / name).write_bytes(data + (folder / name).read_bytes())


def after(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + data)


def set_value(key: str, value: object) -> Damage:
    """Return a function that changes a value in run.json."""

    def damage(folder: Path) -> None:
        path = folder / "run.json"
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {key: value}), encoding="utf-8")

    return damage


def device(folder: Path) -> None:
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to("/dev/zero")


def renamed(folder: Path, name: str) -> None:
    """Rename the implementation ``one`` in all records."""
    for file in ("trials.jsonl", "processes.jsonl", "verdicts.jsonl", "run.json"):
        path = folder / file
        path.write_bytes(path.read_bytes().replace(b'"one"', json.dumps(name).encode()))
    (folder / "ranking.json").unlink()


NOT_READ: Mapping[str, Damage] = {  # damage that leaves nothing to show
    "60 MB of empty lists": put("run.json", b'{"a": [' + b"[]," * MANY + b"[]]}"),
    "a time of 1e300": set_value("started_at", 1e300),
    "a device": device,
}


def lists_others(scene: Scene, original: Scene) -> None:
    """Assert that the dashboard still lists an undamaged run."""
    shutil.copytree(original.folder(), scene.results / "20200101-000000")
    assert "20200101-000000" in [run.run_id for run in ResultsFolder(scene.results).listed().runs]


@pytest.mark.parametrize("damage", NOT_READ)
def test_unreadable_run_json_is_reported(recorded: Scene, original: Scene, damage: str) -> None:
    """The report fails in bounded time and memory, and the dashboard lists the other runs."""
    NOT_READ[damage](recorded.folder())
    recorded.report().ends(1, 2).says("run.json")
    lists_others(recorded, original)


SHOWN: Mapping[str, tuple[str, Damage]] = {  # name -> (expected text, damage that leaves readable records)
    "no trials": ("trials.jsonl", lambda folder: (folder / "trials.jsonl").unlink()),
    "half a last line": ("trials.jsonl: line", after("trials.jsonl", b'{"id": ')),
    "a line of 15 MB of lists": ("trials.jsonl: line 1", before("trials.jsonl", b"[" + b"[]," * 5_000_000 + b"[]]\n")),
    "3,000,000 bad lines": ("trials.jsonl: line 1", before("trials.jsonl", b"x\n" * 3_000_000)),
}


@pytest.mark.parametrize("damage", SHOWN)
def test_readable_records_of_a_damaged_run_are_shown(recorded: Scene, original: Scene, damage: str) -> None:
    """The report names file and line, and needs less than 300 MiB of memory."""
    named, make = SHOWN[damage]
    make(recorded.folder())
    answer = recorded.report().ends(1).says(named)
    assert "two" in answer.stdout or damage == "no trials", answer.stdout
    assert len(answer.text) < 1 << 20
    lists_others(recorded, original)


def test_terminal_escapes_in_records_are_printed_as_text(recorded: Scene) -> None:
    renamed(recorded.folder(), f"o{ESCAPE}ne")
    set_value("profile", f"x{ESCAPE}y")(recorded.folder())
    recorded.report().says("\\x1b[2J")


HOSTS = ("--test", "good", "--dry-run", "--frameworks", "ROOT/frameworks", "--hosts", "ROOT/machines.toml")
COMPARE = ("compare", "ROOT/round.json", "latest", "--results", "ROOT/results")


@pytest.mark.parametrize(
    ("name", "words", "make"),
    [
        ("machines.toml", HOSTS, os.mkfifo),
        ("round.json", COMPARE, lambda path: path.write_bytes(b"[" + b"[]," * MANY + b"[]]")),
        ("round.json", COMPARE, lambda path: path.symlink_to("/dev/zero")),
    ],
    ids=["machines are a pipe", "a round of many values", "a round is a device"],
)
def test_other_unreadable_files_are_reported(
    recorded: Scene, name: str, words: Sequence[str], make: Callable[[Path], object]
) -> None:
    """The command fails in bounded time and memory."""
    recorded.add("good")
    make(recorded.root / name)
    recorded.tfb(*(word.replace("ROOT", str(recorded.root)) for word in words)).ends(1, 2).says(name)
