"""Queues through a real Slurm of the test's own: two sets, a third node that is none, and a node that goes down."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from harness.cli import shard
from harness.errors import UsageError
from harness.faults.scene import HEARS_INTERRUPTS
from harness.paths import REPOSITORY
from harness.plan import queue as queues
from harness.plan.lab import Lab, MachineSet
from harness.plan.queue import Queue
from harness.records import merging, store
from harness.run import slurm, spread
from harness.stats.model import Ranking
from harness.tests.e2e.fakes import Place
from harness.tests.e2e.slurm_site import PARTITION, SlurmSite, obstacle, slurm_site

pytestmark = [pytest.mark.machines, pytest.mark.e2e, pytest.mark.timeout(900)]

ARRAY_SIZE = 4
DEADLINE = 400.0
# What ./tfb does of `unit QUEUE ID --login NAME`: the word that it is done, at the second try where the test says so.
TFB = """#!/bin/sh
unit=$(dirname "$2")/units/$3
echo "$5 $3" >> TRIED
[ "$3" = 0002 ] && [ -e FAIL ] && rm FAIL && exit 3
mkdir -p "$unit/run" && echo "{}" > "$unit/run/run.json" && echo run > "$unit/done"
"""


@pytest.fixture(scope="module")
def site() -> Iterator[SlurmSite]:
    """One Slurm for the tests; no array of it has more than a few tasks."""
    if why := obstacle():
        pytest.skip(why)
    with slurm_site(("a", "b", "spare"), array_size=ARRAY_SIZE) as up:
        yield up


@pytest.fixture
def quick(site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose ./tfb measures nothing; its units stand in the test's folder."""
    monkeypatch.setenv("SLURM_CONF", site.environment["SLURM_CONF"])
    monkeypatch.setattr(slurm, "REPOSITORY", tmp_path)
    text = TFB
    for word in ("TRIED", "FAIL"):
        text = text.replace(word, str(tmp_path / word.lower()))
    (tmp_path / "tfb").write_text(text)
    (tmp_path / "tfb").chmod(0o755)
    return tmp_path


def queued(folder: Path, *logins: str) -> Queue:
    names = ["ref", *(f"s{i}" for i in range(3))]
    units = queues.plan(names, "ref", dict.fromkeys(names, 1.0), blocks=2, together=1, seed=1)
    lab = Lab(sets=tuple(MachineSet(name=f"set-{name}", login=name) for name in logins), partition=PARTITION)
    queue = Queue(id=folder.name, engine="slurm", command=(), reference="ref", lab=lab, units=units, retries=2)
    shard.write(queue, folder)
    return queue


def tries(folder: Path) -> list[tuple[str, str]]:
    return [tuple(line.split()) for line in (folder / "tried").read_text().splitlines()]  # type: ignore[misc]


def tfb(site: SlurmSite, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *words],
        env={**os.environ, **site.environment},
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def shard_in_background(site: SlurmSite, *words: str) -> "subprocess.Popen[bytes]":
    """./tfb shard, which hears SIGINT as from a terminal."""
    program = f"{HEARS_INTERRUPTS}import runpy; runpy.run_module('harness', run_name='__main__', alter_sys=True)"
    environment = {**os.environ, **site.environment, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen([sys.executable, "-c", program, "shard", *words], env=environment, cwd=REPOSITORY)


def measuring(folder: Path, name: str, before: Collection[Path]) -> str:
    """The unit that a set is in the middle of, by runs that were not there before; nothing where there is none."""
    for path in set(folder.glob("units/*/*/progress.json")) - set(before):
        info = path.parent / "run.json"
        begun = info.exists() and f'"set_name":"{name}"' in info.read_text().replace('": "', '":"')
        if begun and not (path.parents[1] / "done").exists():
            return path.parents[1].name
    return ""


def set_of(folder: Path, name: str) -> list[str]:
    """The units that count as measured by a set."""
    runs = list(merging.runs_below(folder)) if list(folder.glob("units/*/done")) else []
    return [path.parent.name for path in runs if store.read(path).info.set_name == name]


def until(when: Callable[[], object], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not when():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.05)


def test_more_units_than_an_array_takes_are_each_measured_once_on_nodes_of_the_lab(quick: Path) -> None:
    queue = queued(quick / "results" / "many", "a", "b")
    assert len(queue.units) > ARRAY_SIZE
    assert spread.carry_out(queue, quick / "results" / "many", again=False, say=print) == 0
    assert sorted(unit for _, unit in tries(quick)) == [unit.id for unit in queue.units]
    assert {node for node, _ in tries(quick)} == {"a", "b"}


def test_a_unit_that_fails_is_tried_again(site: SlurmSite, quick: Path) -> None:
    queue = queued(quick / "results" / "fails", "a", "b")
    queue = queue.model_copy(update={"units": queue.units[:3]})
    (quick / "fail").touch()
    with site.impatient():
        assert spread.carry_out(queue, quick / "results" / "fails", again=False, say=print) == 0
    assert sorted(unit for _, unit in tries(quick)) == ["0001", "0002", "0002", "0003"]


def test_a_node_that_is_not_there_is_named(quick: Path) -> None:
    queue = queued(quick / "results" / "wrong", "a", "elsewhere")
    with pytest.raises(UsageError, match="partition 'lab' has no node elsewhere"):
        spread.carry_out(queue, quick / "results" / "wrong", again=False, say=print)


@pytest.mark.lengthy
def test_an_interrupted_queue_goes_on_and_outlives_a_node_that_goes_down(site: SlurmSite, tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name in ("one", "two", "three"):
        place.add(name)
    lab = tmp_path / "lab.toml"
    sets = "".join(f'[[set]]\nname = "set-{node}"\nlogin = "{node}"\n' for node in ("a", "b"))
    lab.write_text(f'partition = "{PARTITION}"\n{sets}')
    run = ("--frameworks", str(place.frameworks), "--rules", "tfb", "--results", str(place.results), "--type", "json")
    measured = (
        *run,
        "--runtime",
        "local",
        "--profile",
        str(place.profile),
        "--no-install",
        "--test",
        "one",
        "two",
        "three",
    )
    spreading = ("--engine", "slurm", "--lab", str(lab), "--blocks", "2", "--together", "1")

    first = shard_in_background(site, *spreading, *measured)
    until(lambda: len(set(place.results.glob("*/units/*/*/progress.json"))) == 2, "two units that are measured")
    first.send_signal(signal.SIGINT)
    assert first.wait(DEADLINE) == 130
    until(lambda: not site.ask("squeue", "--noheader"), "the end of the jobs")
    (folder,) = place.results.glob("queue-*")

    before = list(folder.glob("units/*/*/progress.json"))
    second = shard_in_background(site, "--resume", str(folder))
    until(lambda: set_of(folder, "set-a"), "a unit that a has measured")
    until(lambda: measuring(folder, "set-a", before), "a unit in the middle of its run on a")
    struck = measuring(folder, "set-a", before)
    site.kill("a")
    with site.impatient():
        assert second.wait(DEADLINE) == 0

    done = sorted(folder.glob("units/*/done"))
    assert [path.parent.name for path in done] == ["0001", "0002", "0003", "0004"]
    assert len(list(merging.runs_below(folder))) == 4
    assert struck in set_of(folder, "set-b")
    assert set_of(folder, "set-a")
    merged = tfb(site, "merge", str(folder), "--output", str(tmp_path / "merged"))
    assert merged.returncode == 0, merged.stdout
    ranking = Ranking.model_validate_json((tmp_path / "merged" / "ranking.json").read_bytes())
    assert {row.implementation for row in ranking.test_types["json"].headline.rows} == {"one", "two", "three"}
    replicates = Counter(each.implementation for each in store.read(tmp_path / "merged").replicates)
    assert replicates == {"one": 4, "two": 2, "three": 2}
