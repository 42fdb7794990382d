"""Queues through a real Slurm of the test's own: two deployments, a third node that is none, arrays of four tasks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.extras.deployments import slurm, spread, units
from harness.extras.deployments.units import Deployment, Lab, Queue
from harness.tests.extras.deployments.slurm_site import PARTITION, SlurmSite, obstacle, slurm_site

pytestmark = [pytest.mark.machines, pytest.mark.e2e, pytest.mark.timeout(900)]

ARRAY_SIZE = 4
# What ./tfb does of `shard --resume QUEUE --unit ID --on NODE`; unit 0002 fails once where the test says so.
TFB = """#!/bin/sh
place=$3/units/$5
echo "$7 $5" >> TRIED
[ "$5" = 0002 ] && [ -e FAIL ] && rm FAIL && exit 3
mkdir -p "$place/run" && echo "{}" > "$place/run/run.json" && echo run > "$place/done"
"""


@pytest.fixture(scope="module")
def site() -> Iterator[SlurmSite]:
    """One Slurm for the tests; no array of it has more than a few tasks."""
    if why := obstacle():
        pytest.skip(why)
    with slurm_site(("a", "b", "spare"), array_size=ARRAY_SIZE) as up:
        yield up


@pytest.fixture
def checkout(site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One whose ./tfb measures nothing; its units stand in the test's folder."""
    monkeypatch.setenv("SLURM_CONF", site.environment["SLURM_CONF"])
    monkeypatch.setattr(slurm, "REPOSITORY", tmp_path)
    (tmp_path / "tfb").write_text(TFB.replace("TRIED", str(tmp_path / "tried")).replace("FAIL", str(tmp_path / "fail")))
    (tmp_path / "tfb").chmod(0o755)
    return tmp_path


def carried_out(checkout: Path, *logins: str, processes: int = 2) -> tuple[Queue, list[tuple[str, str]]]:
    """A queue once it has been carried out, and the tries: node, unit."""
    folder = checkout / "results" / "q"
    folder.mkdir(parents=True)
    names = ["ref", *(f"s{i}" for i in range(3))]
    of = units.plan(names, "ref", 1.0, processes=processes, together=1, seed=1)
    lab = Lab(sets=tuple(Deployment(name=f"set-{name}", login=name) for name in logins), partition=PARTITION)
    queue = Queue(id="q", command=(), reference="ref", lab=lab, units=of, retries=2, slurm=True)
    spread.carry_out(queue, folder, print)
    assert [unit.id for unit in queue.units if not spread.is_done(folder, unit.id)] == []
    lines = (checkout / "tried").read_text().splitlines()
    return queue, [(line.split()[0], line.split()[1]) for line in lines]


def test_more_units_than_an_array_takes_are_each_measured_once_on_nodes_of_the_lab(checkout: Path) -> None:
    queue, tries = carried_out(checkout, "a", "b")
    assert len(queue.units) > ARRAY_SIZE
    assert sorted(unit for _, unit in tries) == [unit.id for unit in queue.units]
    assert {node for node, _ in tries} == {"a", "b"}


def test_a_unit_that_fails_is_tried_again(site: SlurmSite, checkout: Path) -> None:
    (checkout / "fail").touch()
    with site.impatient():
        _, tries = carried_out(checkout, "a", "b", processes=1)
    assert sorted(unit for _, unit in tries) == ["0001", "0002", "0002", "0003"]


def test_a_node_that_is_not_there_is_named(checkout: Path) -> None:
    with pytest.raises(UsageError, match="partition 'lab' has no node elsewhere"):
        carried_out(checkout, "a", "elsewhere")
