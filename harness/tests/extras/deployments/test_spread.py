"""A queue over real processes: deployments here and behind an ssh of the test's own, one of which vanishes."""

import os
from pathlib import Path

import pytest

from harness.extras.deployments import spread
from harness.extras.deployments.units import Deployment, Lab, Queue, Unit

# What a checkout's ./tfb does of `shard --resume PLACE --unit ID --on NAME`: a run's folder, and that it is done.
TFB = """#!/bin/sh
place=$3/units/$5
echo "$7 $5" >> "$TRIED"
[ -e "$BROKEN.$7" ] && exit 1
[ "$5" = 0002 ] && [ ! -e "$TRIED.once" ] && touch "$TRIED.once" && exit 3
mkdir -p "$place/run"
echo "{}" > "$place/run/run.json"
echo run > "$place/done"
"""
# Its options, then a login and a command, for a shell in that login's home. "gone" does not answer, "cut" only once.
SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
login=$1
shift
[ "$login" = gone ] && echo "connection refused" && exit 255
[ "$login" = cut ] && [ -e "$TRIED.cut" ] && exit 255
[ "$login" = cut ] && touch "$TRIED.cut"
cd "$HOMES/$login" && exec sh -c "$*"
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a checkout here and one for each login, and a PATH on which ssh is the test's."""
    program(tmp_path / "bin" / "ssh", SSH)
    program(tmp_path / "here" / "tfb", TFB)
    for login in ("one", "two", "cut"):
        program(tmp_path / "homes" / login / "checkout" / "tfb", TFB)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOMES", str(tmp_path / "homes"))
    monkeypatch.setenv("TRIED", str(tmp_path / "tried"))
    monkeypatch.setenv("BROKEN", str(tmp_path / "broken"))
    monkeypatch.setattr(spread, "REPOSITORY", tmp_path / "here")
    return tmp_path


def queue(*deployments: Deployment, count: int = 4, retries: int = 2) -> Queue:
    units = tuple(
        Unit(id=f"{n:04d}", implementations=("resteasy", "express"), seed=n, seconds=1.0) for n in range(1, count + 1)
    )
    lab = Lab(sets=deployments, directory="checkout")
    return Queue(id="q", command=("all",), reference="resteasy", lab=lab, units=units, retries=retries)


def carried_out(place: Path, of: Queue) -> tuple[list[str], list[str]]:
    """The units that are done afterwards, and what was said."""
    folder = place / "results" / "q"
    (folder / spread.UNITS).mkdir(parents=True, exist_ok=True)
    (folder / spread.QUEUE).write_text(of.model_dump_json(by_alias=True))
    said: list[str] = []
    spread.carry_out(of, folder, said.append)
    return [unit.id for unit in of.units if spread.is_done(folder, unit.id)], said


ALL = ["0001", "0002", "0003", "0004"]
ONE, TWO = Deployment(name="a", login="one"), Deployment(name="b", login="two")


def test_units_are_measured_on_every_deployment_and_brought_back_and_one_that_failed_is_tried_again(
    place: Path,
) -> None:
    done, said = carried_out(place, queue(ONE, Deployment(name="here")))
    assert done == ALL
    assert (place / "results" / "q" / "units" / "0003" / "run" / "run.json").read_text() == "{}\n"
    tried = [line.split()[1] for line in (place / "tried").read_text().splitlines()]
    assert sorted(tried) == ["0001", "0002", "0002", "0003", "0004"]
    assert sum("unit 0002" in line and "exit status 3" in line for line in said) == 1


@pytest.mark.parametrize("login", ["gone", "cut"])
def test_a_deployment_that_does_not_answer_leaves_its_units_to_the_others(login: str, place: Path) -> None:
    done, said = carried_out(place, queue(Deployment(name="x", login=login), TWO))
    assert done == ALL
    assert any(f"set x: ssh {login}" in line and "its units go to the others" in line for line in said)


def test_a_unit_that_fails_as_often_as_it_may_is_left_and_a_resumed_queue_tries_it_again(place: Path) -> None:
    (place / "broken.a").touch()
    of = queue(ONE, count=1, retries=1)
    assert carried_out(place, of)[0] == []
    assert len((place / "tried").read_text().splitlines()) == 2
    (place / "broken.a").unlink()
    assert carried_out(place, of)[0] == ["0001"]
    carried_out(place, of)  # what is done stays
    assert len((place / "tried").read_text().splitlines()) == 3
