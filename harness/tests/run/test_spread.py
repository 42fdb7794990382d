"""Queues in the words of GNU parallel and Slurm, and a unit as the settings of a run."""

from pathlib import Path

import pytest
from harness.plan.lab import Lab, MachineSet
from harness.plan.queue import Queue, Unit
from harness.run import slurm, spread

from harness.cli import unit as unit_verb
from harness.errors import UsageError

HERE = Lab(sets=(MachineSet(name="a"), MachineSet(name="b")))
THERE = Lab(
    sets=(MachineSet(name="a", login="c1.a"), MachineSet(name="b", login="c1.b", flags=("--hosts", "three"))),
    directory="bench/tfb", partition="lab",
)  # fmt: skip


def queue(lab: Lab, engine: str) -> Queue:
    units = tuple(
        Unit(id=f"{n:04d}", implementations=("resteasy", "express"), seed=n, seconds=100.0) for n in (1, 2, 3)
    )
    return Queue(
        id="q", engine=engine, command=("--test", "run", "--profile", "smoke", "--tag", "core"), reference="resteasy",
        lab=lab, units=units, retries=2,
    )  # fmt: skip


def test_over_ssh_each_login_has_one_unit_at_a_time_and_folders_come_back(tmp_path: Path) -> None:
    words = spread.parallel(queue(THERE, "parallel"), tmp_path / "q", queue(THERE, "parallel").units, again=True)
    text = " ".join(words)
    assert "--sshlogin 1/c1.a,1/c1.b --ssh " in text
    assert "--workdir bench/tfb/results --basefile q/queue.json --return q/units/{1}" in text
    assert "--joblog q/joblog --retries 3" in text
    assert "--resume-failed" in words
    assert "BatchMode=yes" in text
    assert words[-4:] == [":::", "0001", "0002", "0003"]


def test_here_there_are_as_many_slots_as_sets_and_no_ssh(tmp_path: Path) -> None:
    words = spread.parallel(queue(HERE, "local"), tmp_path / "q", queue(HERE, "local").units, again=False)
    assert words[words.index("--jobs") + 1] == "2"
    assert "--sshlogin" not in words
    assert "--resume-failed" not in words


def test_engines_refuse_sets_that_they_cannot_reach(tmp_path: Path) -> None:
    for lab, engine in ((HERE, "parallel"), (THERE, "local")):
        with pytest.raises(UsageError, match="login"):
            spread.parallel(queue(lab, engine), tmp_path / "q", (), again=False)
    with pytest.raises(UsageError, match="names its node as login"):
        slurm.nodes(HERE)


def test_a_unit_is_a_run_of_its_implementations_once_on_its_set(tmp_path: Path) -> None:
    whole = queue(THERE, "parallel")
    found = unit_verb.settings_of(whole, whole.units[1], THERE.sets[1], tmp_path)
    assert found.selection.test == ("resteasy", "express")
    assert found.selection.tag == ()
    assert (found.profile.replication.minimum, found.profile.replication.maximum) == (1, 1)
    assert (found.seed, found.reference, found.set_name, found.unit) == (2, "resteasy", "b", "q/0002")
    assert found.hosts.elsewhere
    assert found.results == tmp_path


def test_the_set_is_found_by_login_or_slot() -> None:
    assert unit_verb.which(queue(THERE, "parallel"), "1/c1.b", None).name == "b"
    assert unit_verb.which(queue(HERE, "local"), None, 2).name == "b"
    with pytest.raises(UsageError, match="no set of the lab has this login"):
        unit_verb.which(queue(THERE, "parallel"), "elsewhere", None)
    with pytest.raises(UsageError, match="2 sets without a login"):
        unit_verb.which(queue(HERE, "local"), None, 3)
