"""A run over several machines (laptop, db, app, two clients), and what happens when one of them vanishes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.paths import REPOSITORY
from harness.results import store
from harness.run.blocks import BACK_SECONDS
from harness.tests.e2e import machines
from harness.tests.e2e.machines import Lab

pytestmark = [pytest.mark.machines, pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(400)]

WHERE = ("--server-host", "app", "--database-host", "db", "--client-host", "c1", "--client-host", "c2")
NOTICED_SECONDS = 10.0
SLACK_SECONDS = 10.0  # to stop and clean up on a busy machine


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One lab for all tests: images are sent once."""
    if why := machines.obstacle():
        pytest.skip(why)
    with machines.machines() as up:
        yield up


def left(lab: Lab) -> dict[str, str]:
    """Containers that are still on a machine, by its name."""
    return {name: found for name in machines.NAMES if (found := lab.docker(name, "ps", "--all", "--quiet"))}


def test_a_smoke_run_of_two_implementations_measures_every_cell_and_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    words = ("--test", "express", "vertx-web", "--type", "json", "db", "--profile", "smoke", "--seed", "1")
    done = lab.tfb(*words, *WHERE, "--results", str(tmp_path), seconds=350)
    assert done.returncode == 0, done.stderr[-3000:]
    records = store.read(store.find(tmp_path, None))
    assert records.problems == ()
    assert {(s.implementation, s.test_type) for s in records.samples if s.rankable} == {
        (name, kind) for name in ("express", "vertx-web") for kind in ("json", "db")
    }
    for sample in records.samples:
        assert sample.errors.total == 0
        assert sample.connections == 32  # sixteen from each client, counted where the server runs
        assert sample.command.count("-c") >= 2
        assert sample.server.cpu_seconds > 0
        assert sample.cpu_per_request is not None
        assert (sample.database_cpu_seconds or 0) > 0 or sample.test_type == "json"
    assert records.info.machine.hostname == "app"
    assert "db" in records.info.tools["machine of the database"]
    assert left(lab) == {}


def test_a_machine_whose_host_key_is_another_one_is_refused(lab: Lab, tmp_path: Path) -> None:
    known = lab.folder / "known"
    right = known.read_text()
    key = (lab.folder / "other.pub").read_text()
    known.write_text("".join(f"10.99.0.{number} {key}" for number in range(2, 6)))
    try:
        done = lab.tfb("--test", "express", *WHERE, "--results", str(tmp_path), seconds=60)
    finally:
        known.write_text(right)
    assert done.returncode == 3
    assert "app cannot be reached over ssh" in done.stderr
    assert "Host key verification failed" in done.stderr


def kill_session(lab: Lab, run: subprocess.Popen[str]) -> None:
    """End the ssh that reaches the server's machine."""
    for child in psutil.Process(run.pid).children(recursive=True):
        words = child.cmdline()
        if words and words[0] == "ssh" and words[-1] == "app" and "-nNT" in words:
            os.kill(child.pid, signal.SIGKILL)
            return
    pytest.fail("the run has no ssh session to app")


def kill_machine(lab: Lab, _: subprocess.Popen[str]) -> None:
    """Take the link of a client away."""
    lab.link("c1", "down")


def strike(
    lab: Lab, results: Path, blow: Callable[[Lab, subprocess.Popen[str]], None], seconds: float
) -> tuple[int, str]:
    """Have a machine vanish in the middle of a sample; exit code of the run within the time, and what it said."""
    words = ("--test", "express", "--type", "json", "--profile", "smoke", "--duration", "20", "--seed", "1")
    command = lab.laptop(sys.executable, "-m", "harness", *words, *WHERE, "--results", str(results))
    log = results / "stderr"
    with log.open("w") as output:
        run = subprocess.Popen(command, cwd=REPOSITORY, env=lab.environment, stdout=output, stderr=output, text=True)
    try:
        _until(lambda: len(lab.docker("c1", "ps", "--quiet").split()) == 1 and _measuring(results), 240, log)
        blow(lab, run)
        return run.wait(seconds), log.read_text()
    finally:
        lab.link("c1", "up")
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait(60)


def test_a_replicate_whose_machine_was_lost_is_measured_again_when_it_is_back(lab: Lab, tmp_path: Path) -> None:
    status, said = strike(lab, tmp_path, kill_session, 200)
    assert status == 0, said[-3000:]
    assert "the machine app is lost: its ssh session ended" in said
    assert "all machines answer again" in said
    records = store.read(store.find(tmp_path, None))
    assert [(s.implementation, s.rankable) for s in records.samples] == [("express", True)]
    assert [each.status for each in records.replicates] == ["ok"]
    assert left(lab) == {}


def test_a_machine_that_stays_away_ends_the_run_which_can_go_on(lab: Lab, tmp_path: Path) -> None:
    status, said = strike(lab, tmp_path, kill_machine, NOTICED_SECONDS + BACK_SECONDS + 6 * SLACK_SECONDS)
    assert status == 3, said[-3000:]
    assert "machine c1" in said
    records = store.read(store.find(tmp_path, None))
    assert records.info.status == "failed"  # so that --resume goes on
    assert records.samples == ()  # what was cut off is no sample


def _measuring(results: Path) -> bool:
    """Whether the run is in its sample, not its warm-up."""
    found = list(results.glob("*/progress.json"))
    return bool(found) and '"c32"' in found[0].read_text()


def _until(ready: Callable[[], bool], seconds: float, log: Path) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.1)
