"""Damaged files of a run: named with their line, what is whole is shown; a run that goes on knows what it lacks."""

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
MANY = 20_000_000  # small values: each takes a parser many times the bytes that it has in the file
ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def put(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(data)


def before(name: str, data: bytes) -> Damage:
    """Something stands before the first line."""
    return lambda folder: (folder / name).write_bytes(data + (folder / name).read_bytes())


def after(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + data)


def set_value(key: str, value: object) -> Damage:
    """Another value for a key of run.json."""

    def damage(folder: Path) -> None:
        path = folder / "run.json"
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {key: value}), encoding="utf-8")

    return damage


def device(folder: Path) -> None:
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to("/dev/zero")


def renamed(folder: Path, name: str) -> None:
    """The implementation ``one`` is called otherwise in all records."""
    for file in ("trials.jsonl", "processes.jsonl", "verdicts.jsonl", "run.json"):
        path = folder / file
        path.write_bytes(path.read_bytes().replace(b'"one"', json.dumps(name).encode()))
    (folder / "ranking.json").unlink()


NOT_READ: Mapping[str, Damage] = {  # nothing can be shown
    "60 MB of empty lists": put("run.json", b'{"a": [' + b"[]," * MANY + b"[]]}"),
    "a time of 1e300": set_value("started_at", 1e300),
    "a device": device,
}


def lists_others(scene: Scene, original: Scene) -> None:
    """The dashboard's list has the whole run beside the damaged one."""
    shutil.copytree(original.folder(), scene.results / "20200101-000000")
    assert "20200101-000000" in [run.run_id for run in ResultsFolder(scene.results).listed().runs]


@pytest.mark.parametrize("damage", NOT_READ)
def test_a_run_json_that_cannot_be_read_is_named(recorded: Scene, original: Scene, damage: str) -> None:
    """Named, in bounded time and memory, with an exit status that is not 0; the dashboard lists the other runs."""
    NOT_READ[damage](recorded.folder())
    recorded.report().ends(1, 2).says("run.json")
    lists_others(recorded, original)


SHOWN: Mapping[str, tuple[str, Damage]] = {  # the rest is shown
    "no trials": ("trials.jsonl", lambda folder: (folder / "trials.jsonl").unlink()),
    "half a last line": ("trials.jsonl: line", after("trials.jsonl", b'{"id": ')),
    "a line of 15 MB of lists": ("trials.jsonl: line 1", before("trials.jsonl", b"[" + b"[]," * 5_000_000 + b"[]]\n")),
    "3,000,000 bad lines": ("trials.jsonl: line 1", before("trials.jsonl", b"x\n" * 3_000_000)),
}


@pytest.mark.parametrize("damage", SHOWN)
def test_what_is_whole_of_a_damaged_run_is_shown(recorded: Scene, original: Scene, damage: str) -> None:
    """Named with file and line or key; what is whole is shown in less than 300 MiB; exit status 1."""
    named, make = SHOWN[damage]
    make(recorded.folder())
    answer = recorded.report().ends(1).says(named)
    assert "two" in answer.stdout or damage == "no trials", answer.stdout
    assert len(answer.text) < 1 << 20
    lists_others(recorded, original)


# ---- what a terminal and a page are given -------------------------------------------------------------------------


def test_a_terminal_s_escapes_in_records_are_spelled_out(recorded: Scene) -> None:
    renamed(recorded.folder(), f"o{ESCAPE}ne")
    set_value("profile", f"x{ESCAPE}y")(recorded.folder())
    recorded.report().says("\\x1b[2J")


# ---- other files that commands read ----------------------------------------------------------------------------------

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
def test_every_other_file_that_is_read_is_bounded_and_named(
    recorded: Scene, name: str, words: Sequence[str], make: Callable[[Path], object]
) -> None:
    """Something else in its place ends the command with a status of its own, in bounded time and memory."""
    recorded.add("good")
    make(recorded.root / name)
    recorded.tfb(*(word.replace("ROOT", str(recorded.root)) for word in words)).ends(1, 2).says(name)
