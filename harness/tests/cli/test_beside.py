"""Stages side by side: when each begins, and that its output stays whole."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from harness.cli import beside, check
from harness.cli.beside import Ended
from harness.cli.stages import Stage, stages
from harness.errors import Exit


def python(name: str, code: str, *, long: bool = False, after: str = "") -> Stage:
    return Stage(name=name, command=(sys.executable, "-S", "-c", code), beside=True, long=long, after=after)


class Stages:
    """Stages that end when they are told to; ``begun`` names them as they begin."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.order: list[str] = []  # in which they end
        self.terminated: list[str] = []

    def start(self, stage: Stage, output: IO[bytes]) -> "subprocess.Popen[bytes]":
        self.begun.append(stage.name)
        output.write(stage.name.encode())
        return Controlled(self, stage.name)  # type: ignore[return-value]

    def told(self, ended: Ended) -> None:
        self.ended.append(ended.stage.name)

    def run(self, found: Sequence[Stage], others: int = 1) -> None:
        beside.side_by_side(found, self.start, self.told, others=others)


class Controlled:
    """A child that ends when it is next in the order."""

    def __init__(self, world: Stages, name: str) -> None:
        self._world, self._name = world, name
        self.returncode = 0

    def poll(self) -> int | None:
        if self._world.order and self._world.order[0] == self._name:
            self._world.order.pop(0)
            return 0
        return None

    def terminate(self) -> None:
        self._world.terminated.append(self._name)

    def wait(self) -> int:
        assert self._name in self._world.terminated
        return -15


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has to be waited for; what never ends is an error at once."""
    looks = iter(range(100))
    monkeypatch.setattr("harness.cli.beside.time.sleep", lambda _: next(looks))


FOUND = [
    python("lint", ""),
    python("page", ""),
    python("page lint", "", after="page"),
    python("types", ""),
    python("tests", "", long=True),
]


@pytest.mark.usefixtures("no_waiting")
def test_the_longest_begins_with_the_first_and_the_others_follow_one_by_one() -> None:
    world = Stages()
    world.order = ["lint", "page", "page lint", "tests", "types"]
    world.run(FOUND)
    assert world.begun == ["lint", "tests", "page", "page lint", "types"]
    assert world.ended == ["lint", "page", "page lint", "tests", "types"]


@pytest.mark.usefixtures("no_waiting")
def test_with_more_room_a_stage_still_comes_after_the_one_that_it_needs() -> None:
    world = Stages()
    world.order = ["types", "lint", "page", "tests", "page lint"]
    world.run(FOUND, others=4)
    assert world.begun == ["lint", "page", "types", "tests", "page lint"]


@pytest.mark.usefixtures("no_waiting")
def test_an_interruption_ends_all_that_run_and_tells_what_they_wrote() -> None:
    world = Stages()
    told: list[tuple[str, int | None, bytes]] = []

    def interrupted(ended: Ended) -> None:
        told.append((ended.stage.name, ended.status, ended.output))
        if ended.status is not None:
            raise KeyboardInterrupt

    world.order = ["lint"]
    with pytest.raises(KeyboardInterrupt):
        beside.side_by_side(FOUND, world.start, interrupted, others=2)
    assert told == [("lint", 0, b"lint"), ("page", None, b"page"), ("tests", None, b"tests")]
    assert world.terminated == ["page", "tests"]


def test_what_each_stage_writes_is_shown_in_one_piece_and_what_failed_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    speaks = "import sys, time\nfor n in range(20): print('{0}', n, file=(sys.stdout, sys.stderr)[n % 2], flush=True)"
    found = (
        python("one", speaks.format("one"), long=True),
        python("two", speaks.format("two") + "\nsys.exit(3)"),
        Stage(name="absent", command=("/no/such/program",), beside=True),
        Stage(name="five", command=(sys.executable, "-S", "-c", "raise SystemExit(5)"), beside=True, also_fine=(5,)),
        Stage(name="by itself", command=(sys.executable, "-S", "-c", "raise SystemExit(0)")),
    )
    monkeypatch.setattr(check, "STATE", tmp_path)
    monkeypatch.setattr(check, "stages", lambda **_: found)
    monkeypatch.setattr(check, "lacking", lambda _: {})
    assert check.main(["--fast"]) == Exit.FAILED
    streams = capfd.readouterr()
    lines = streams.out.splitlines()
    for name, word in (("one", "ok"), ("two", "failed")):
        begin = lines.index(f"== {name}")
        assert lines[begin + 1 : begin + 21] == [f"{name} {n}" for n in range(20)]
        assert lines[begin + 21].startswith(f"== {name}: {word} in ")
    assert any(line.startswith("== five: ok") for line in lines)
    assert lines[-1].startswith("== by itself: ok")
    assert "/no/such/program is not on this machine: ./tfb doctor" in lines
    assert streams.err == "tfb check: failed: two, absent\n"


def test_whoever_gives_pytest_words_watches_one_stage_after_the_other(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(check, "STATE", tmp_path)
    monkeypatch.setattr(check, "stages", lambda **_: (python("one", ""), python("two", "", long=True)))
    monkeypatch.setattr(check, "lacking", lambda _: {})
    assert check.main(["--fast", "--", "-x"]) == Exit.OK
    assert "side by side" not in capfd.readouterr().out


def test_what_measures_runs_by_itself_and_each_stage_comes_after_one_that_is_there() -> None:
    found = stages(fast=False, arguments=())
    assert [stage.name for stage in found if stage.beside != stage.fast] == []
    assert [stage.name for stage in found if stage.long] == ["tests"]
    names = {stage.name for stage in found if stage.beside}
    assert {stage.after for stage in found if stage.after} <= names
