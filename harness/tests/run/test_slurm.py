"""Queues as job arrays of Slurm."""

import getpass
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.host import process
from harness.request.queue import Unit
from harness.run import slurm
from harness.run.slurm import Array, Site
from harness.tests.run.test_spread import THERE, queue

SITE = Site(nodes=("c1.a", "c1.b", "spare"), array_size=3)


def units(*numbers: int) -> tuple[Unit, ...]:
    return tuple(Unit(id=f"{n:04d}", implementations=("resteasy",), seed=n, seconds=100.0) for n in numbers)


def test_an_array_is_of_whole_nodes_of_the_lab_and_is_requeued(tmp_path: Path) -> None:
    array = Array(first=2, units=units(2, 3))
    words = slurm.sbatch(queue(THERE, "slurm"), tmp_path / "q", array, SITE, seconds=4000.0)
    assert "--array=0,1%2" in words
    assert "--exclude=spare" in words
    assert "--time=67" in words
    assert {"--requeue", "--exclusive", "--nodes=1", "--partition=lab"} <= set(words)


def test_no_index_is_beyond_what_the_site_takes() -> None:
    found = list(slurm.arrays(units(1, 2, 3, 4, 9, 10), SITE))
    assert [(array.first, [unit.id for unit in array.units]) for array in found] == [
        (1, ["0001", "0002", "0003"]),
        (4, ["0004"]),
        (9, ["0009", "0010"]),
    ]
    assert all(int(unit.id) - array.first < SITE.array_size for array in found for unit in array.units)


def test_a_task_is_the_unit_of_its_index_on_the_set_of_its_node_and_is_tried_as_often_as_asked() -> None:
    script = slurm.script(queue(THERE, "slurm"), "q/queue.json")
    assert 'unit=$(printf %04d "$((SLURM_ARRAY_TASK_ID + $1))")' in script
    assert '/tfb unit q/queue.json "$unit" --login "$SLURMD_NODENAME"' in script
    assert '"${SLURM_RESTART_COUNT:-0}" -lt 2 ]' in script


def test_what_is_taken_back_is_the_queue_s_own_and_this_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []
    monkeypatch.setattr(process, "run", lambda words, **_: asked.append(words))
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    of_the_lab = queue(THERE, "slurm")
    slurm.cancel(of_the_lab)
    assert asked == [["scancel", f"--name=tfb-{of_the_lab.id}", "--user=ann"]]
