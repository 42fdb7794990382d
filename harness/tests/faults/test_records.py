"""Damaged files of a run: named with their line, what is whole is shown; a run that goes on knows what it lacks."""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.dashboard.runs import Runs
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


def special(name: str, make: Callable[[Path], object]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return damage


def renamed(folder: Path, name: str) -> None:
    """The implementation ``one`` is called otherwise in all records."""
    for file in ("trials.jsonl", "processes.jsonl", "verdicts.jsonl", "run.json"):
        path = folder / file
        path.write_bytes(path.read_bytes().replace(b'"one"', json.dumps(name).encode()))
    (folder / "ranking.json").unlink()


NOT_READ: Mapping[str, Damage] = {  # nothing can be shown
    "random bytes": put("run.json", bytes(range(256))),
    "empty": put("run.json", b""),
    "100,000 brackets": put("run.json", b"[" * 100_000),
    "10,000 digits": put("run.json", b'{"seed": ' + b"1" * 10_000 + b"}"),
    "70 MB": put("run.json", b" " * (70 << 20)),
    "60 MB of empty lists": put("run.json", b'{"a": [' + b"[]," * MANY + b"[]]}"),
    "a time of 1e300": set_value("started_at", 1e300),
    "loads that are a number": set_value("loads", 7),
    "folder": special("run.json", Path.mkdir),
    "pipe": special("run.json", os.mkfifo),
    "device": special("run.json", lambda path: path.symlink_to("/dev/zero")),
}


def lists_others(scene: Scene, original: Scene) -> None:
    """The dashboard's list has the whole run beside the damaged one."""
    shutil.copytree(original.folder(), scene.results / "20200101-000000")
    assert "20200101-000000" in [run.run_id for run in Runs(scene.results).listed().runs]


@pytest.mark.parametrize("damage", NOT_READ)
def test_a_run_json_that_cannot_be_read_is_named(recorded: Scene, original: Scene, damage: str) -> None:
    """Named, in bounded time and memory, with an exit status that is not 0; the dashboard lists the other runs."""
    NOT_READ[damage](recorded.folder())
    recorded.report().ends(1, 2).says("run.json")
    lists_others(recorded, original)


SHOWN: Mapping[str, tuple[str, Damage]] = {  # the rest is shown
    "a later schema": ("run.json", set_value("schema_version", 99)),
    "no trials": ("trials.jsonl", lambda folder: (folder / "trials.jsonl").unlink()),
    "half a last line": ("trials.jsonl: line", after("trials.jsonl", b'{"id": ')),
    "a binary line": ("trials.jsonl: line 1", before("trials.jsonl", b"\xff\0\n")),
    "a line of brackets": ("trials.jsonl: line 1", before("trials.jsonl", b"[" * 100_000 + b"\n")),
    "a line of 40 MB": ("trials.jsonl: line 1", before("trials.jsonl", b"x" * (40 << 20) + b"\n")),
    "a line of 15 MB of lists": ("trials.jsonl: line 1", before("trials.jsonl", b"[" + b"[]," * 5_000_000 + b"[]]\n")),
    "3,000,000 bad lines": ("trials.jsonl: line 1", before("trials.jsonl", b"x\n" * 3_000_000)),
    "a pipe for trials": ("trials.jsonl", special("trials.jsonl", os.mkfifo)),
    "a bad process": ("processes.jsonl: line", before("processes.jsonl", b"\xff\n")),
    "a bad verdict": ("verdicts.jsonl: line", before("verdicts.jsonl", bytes(range(256)) + b"\n")),
}


@pytest.mark.parametrize("damage", SHOWN)
def test_what_is_whole_of_a_damaged_run_is_shown(recorded: Scene, original: Scene, damage: str) -> None:
    """Named with file and line or key; what is whole is shown in less than 300 MiB; exit status 1."""
    named, make = SHOWN[damage]
    make(recorded.folder())
    answer = recorded.report().ends(1).says(named)
    assert "two" in answer.stdout or damage in ("no trials", "a pipe for trials"), answer.stdout
    assert len(answer.text) < 1 << 20
    lists_others(recorded, original)


# ---- what a terminal and a page are given -------------------------------------------------------------------------


def test_a_terminal_s_escapes_in_records_are_spelled_out(recorded: Scene) -> None:
    renamed(recorded.folder(), f"o{ESCAPE}ne")
    set_value("profile", f"x{ESCAPE}y")(recorded.folder())
    recorded.report().says("\\x1b[2J")


def test_marks_of_a_library_of_colours_are_shown_as_they_are(recorded: Scene) -> None:
    renamed(recorded.folder(), "[/bold]one")
    recorded.report().says("[/bold]one")


# ---- going on --------------------------------------------------------------------------------------------------------


@pytest.fixture
def interrupted(recorded: Scene, original: Scene) -> Scene:
    """As if the harness had been killed after its first process."""
    folder = recorded.folder()
    command = json.loads((folder / "run.json").read_bytes())["command"]
    set_value("status", "interrupted")(folder)
    set_value("command", [word.replace(str(original.root), str(recorded.root)) for word in command])(folder)
    path = folder / "processes.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    return recorded


def names(scene: Scene) -> list[str]:
    return sorted(trial.implementation for trial in scene.records().trials)


def test_a_run_that_goes_on_measures_what_is_missing(interrupted: Scene) -> None:
    path = interrupted.folder() / "trials.jsonl"
    kept = json.loads((interrupted.folder() / "processes.jsonl").read_bytes())["implementation"]
    first = [line for line in path.read_bytes().splitlines() if f'"{kept}"'.encode() in line]
    interrupted.resume().ends(0)
    assert names(interrupted) == ["one", "two"]
    assert set(first) <= set(path.read_bytes().splitlines())


def test_a_finished_process_whose_trials_are_lost_is_measured_again(interrupted: Scene) -> None:
    """Though its record says that it was ok."""
    put("trials.jsonl", b"")(interrupted.folder())
    interrupted.resume().ends(0)
    assert names(interrupted) == ["one", "two"]


def test_lines_that_are_no_records_are_set_aside_and_kept(interrupted: Scene) -> None:
    folder = interrupted.folder()
    before("trials.jsonl", b"\xff\xfe\n[]\n" + b"[" * 5000 + b"\n")(folder)
    after("trials.jsonl", b'{"half')(folder)
    interrupted.resume().ends(0)
    assert b"\xff\xfe\n" in (folder / "trials.unfinished.jsonl").read_bytes()


def test_a_run_does_not_go_on_with_something_else(interrupted: Scene) -> None:
    """Whatever else may have changed: experiment/test_resuming.py."""
    interrupted.add("one", "answers-slowly")
    path = interrupted.folder() / "trials.jsonl"
    held = path.read_bytes()
    # Without consent, which root gives by starting a run: it would end what tests beside this one call leftovers.
    where = ("--results", str(interrupted.results), "--no-install")
    interrupted.tfb("--resume", interrupted.folder().name, *where).ends(2).says("one")
    assert path.read_bytes() == held


def test_a_lock_that_is_a_link_costs_nobody_a_file(interrupted: Scene) -> None:
    victim = interrupted.root / "victim"
    victim.write_text("precious", encoding="utf-8")
    lock = interrupted.folder() / ".lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(victim)
    interrupted.resume().ends(1, 2).says(".lock")
    assert victim.read_text(encoding="utf-8") == "precious"


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
