"""Queues as job arrays of Slurm."""

import getpass
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from harness.plan.queue import Unit
from harness.run import slurm, spread
from harness.run.slurm import Array, Site

from harness.host import process
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


@pytest.mark.parametrize("statuses", [(0, 3), (3, 0), (0, 0)])
def test_arrays_go_one_after_the_other_with_the_worst_status_and_what_is_left_is_taken_back(
    statuses: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "q"
    folder.mkdir()
    of_the_lab = queue(THERE, "slurm")
    happened: list[object] = []
    ends = iter(statuses)

    def run(words: Sequence[str], where: Path, more: Mapping[str, str]) -> int:
        happened.append((list(words), where, dict(more)))
        return next(ends)

    monkeypatch.setattr(slurm, "site", lambda _: Site(nodes=("c1.a", "c1.b"), array_size=2))
    monkeypatch.setattr(slurm, "cancel", lambda taken: happened.append(taken.id))
    monkeypatch.setattr(spread, "_run", run)
    said: list[str] = []
    assert spread._by_slurm(of_the_lab, folder, of_the_lab.units, said.append) == max(statuses)
    script = folder / "slurm.sh"
    assert script.read_text(encoding="utf-8") == slurm.script(of_the_lab, "q/queue.json")
    assert script.stat().st_mode & 0o777 == 0o755
    seconds = 100.0 * spread.LONGEST + spread.BUILD_SECONDS
    site = Site(nodes=("c1.a", "c1.b"), array_size=2)
    submitted = [
        [
            *slurm.sbatch(of_the_lab, folder, Array(first=first, units=of), site, seconds=seconds),
            str(script),
            str(first),
        ]
        for first, of in ((1, of_the_lab.units[:2]), (3, of_the_lab.units[2:]))
    ]
    assert happened == [*((words, tmp_path, {}) for words in submitted), "q"]
    watching = f"squeue --name=tfb-q shows its tasks; what they say: {folder}/slurm-*.log"
    assert said == [shlex.join(submitted[0]), watching, shlex.join(submitted[1]), watching]


def test_an_interrupted_submission_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    taken: list[str] = []
    monkeypatch.setattr(slurm, "site", lambda _: SITE)
    monkeypatch.setattr(slurm, "cancel", lambda which: taken.append(which.id))
    monkeypatch.setattr(spread, "_run", interrupted)
    of_the_lab = queue(THERE, "slurm")
    with pytest.raises(KeyboardInterrupt):
        spread._by_slurm(of_the_lab, tmp_path, of_the_lab.units, lambda _: None)
    assert taken == ["q"]
