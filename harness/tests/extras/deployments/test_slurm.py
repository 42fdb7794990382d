"""Queues as job arrays of Slurm, whose programs are the test's own."""

import os
from pathlib import Path

import pytest

from harness.errors import EnvironmentLacksError, UsageError
from harness.extras.deployments import slurm, spread
from harness.extras.deployments.slurm import Site
from harness.extras.deployments.units import Deployment, Lab, Queue, Unit

LAB = Lab(
    sets=(Deployment(name="a", login="c1.a"), Deployment(name="b", login="c1.b")), directory="bench", partition="lab"
)
SBATCH = 'echo "$@" >> "$ASKED"; [ -z "$FAILS" ]'


def units(*numbers: int) -> tuple[Unit, ...]:
    return tuple(Unit(id=f"{n:04d}", implementations=("resteasy",), seed=n, seconds=100.0) for n in numbers)


def queue(lab: Lab = LAB, count: int = 3) -> Queue:
    of = units(*range(1, count + 1))
    return Queue(id="q", command=("all",), reference="resteasy", lab=lab, units=of, retries=2, slurm=True)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Slurm's programs were asked, a line a call; a site of three nodes and arrays of two."""
    programs = {
        "scontrol": "echo 'MaxArraySize            = 2'",
        "sinfo": "printf 'c1.a lab\\nc1.b lab\\nspare lab\\nc9 other*\\n'",
        "sbatch": f"echo sbatch >> $ASKED; {SBATCH}",
        "scancel": SBATCH.replace('"$@"', '"scancel $*"'),
    }
    for name, code in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    return tmp_path / "asked"


def test_arrays_of_whole_nodes_of_the_lab_go_one_after_the_other_and_what_is_left_is_taken_back(
    asked: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "results" / "q"
    folder.mkdir(parents=True)
    said: list[str] = []
    spread.carry_out(queue(), folder, said.append)
    first, second, last = [line for line in asked.read_text().splitlines() if line != "sbatch"]
    for array, line in (("--array=0,1%2", first), ("--array=0%2", second)):
        assert {array, "--exclude=spare", "--requeue", "--exclusive", "--nodes=1", "--partition=lab"} <= set(
            line.split()
        )
    assert f"--time={int(100 * spread.LONGEST + spread.BUILD_SECONDS) // 60 + 1}" in first.split()
    assert (first.split()[-2:], second.split()[-1]) == ([str(folder / "slurm.sh"), "1"], "3")
    assert last.startswith("scancel --name=tfb-q --user=")
    assert len(said) == 2


def test_a_task_is_the_unit_of_its_index_on_its_node_and_is_tried_as_often_as_asked(tmp_path: Path) -> None:
    script = slurm.script(queue(), tmp_path / "q")
    assert 'unit=$(printf %04d "$((SLURM_ARRAY_TASK_ID + $1))")' in script
    assert f'/tfb shard --resume {tmp_path}/q --unit "$unit" --on "$SLURMD_NODENAME"' in script
    assert '"${SLURM_RESTART_COUNT:-0}" -lt 2 ]' in script


def test_no_index_is_beyond_what_the_site_takes() -> None:
    site = Site(nodes=("c1.a",), array_size=3)
    found = list(slurm.arrays(units(1, 2, 3, 4, 9, 10), site))
    assert [(array.first, [unit.id for unit in array.units]) for array in found] == [
        (1, ["0001", "0002", "0003"]),
        (4, ["0004"]),
        (9, ["0009", "0010"]),
    ]


@pytest.mark.usefixtures("asked")
def test_a_node_that_the_partition_lacks_is_named_before_anything_is_submitted() -> None:
    strange = Lab(sets=(Deployment(name="a", login="c7"),), partition="lab")
    with pytest.raises(UsageError, match="partition 'lab' has no node c7"):
        slurm.site(strange)
    with pytest.raises(UsageError, match="names its node as login, and a does not"):
        slurm.nodes(Lab(sets=(Deployment(name="a"),)))


def test_without_slurm_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacksError, match="scontrol is not on this machine: apt-get install slurm-wlm"):
        slurm.site(LAB)
