"""Runs on several simulated machines: laptop, db, app and two clients. Some runs lose a machine."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.paths import REPOSITORY
from harness.records import store
from harness.records.loads import ClosedLoop
from harness.records.run_folders import find_run, list_runs
from harness.tests.doubles import namespaces as machines
from harness.tests.doubles.namespaces import Lab

pytestmark = [pytest.mark.machines, pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(900)]

WHERE = ("--server-host", "app", "--database-host", "db", "--client-host", "c1", "--client-host", "c2")
NOTICED_SECONDS = 10.0
SLACK_SECONDS = 60.0  # additional time; tfb may notice a hung engine only when the load should end


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Yield the simulated machines. Tests share them, so that images are sent only once."""
    if why := machines.obstacle():
        pytest.skip(why)
    with machines.machines() as up:
        yield up


def left(lab: Lab) -> dict[str, str]:
    return {
        name: progress_files
        for name in machines.NAMES
        if (progress_files := lab.docker(name, "ps", "--all", "--quiet"))
    }


def test_smoke_run_measures_all_cells_and_cleans_up(lab: Lab, tmp_path: Path) -> None:
    words = ("--test", "express", "vertx-web", "--type", "json", "db", "--profile", "smoke", "--seed", "1")
    done = lab.tfb(*words, *WHERE, "--results", str(tmp_path), seconds=800)
    assert done.returncode == 0, done.stderr[-3000:]
    records = store.read_run(find_run(tmp_path, None))
    assert records.problems == ()
    assert {(t.implementation, t.test_type) for t in records.trials if t.rankable} == {
        (name, kind) for name in ("express", "vertx-web") for kind in ("json", "db")
    }
    for trial in records.trials:
        assert trial.errors.total == 0
        assert isinstance(trial.load, ClosedLoop)
        assert (trial.connections or 0) >= trial.load.connections  # total over both clients
        assert trial.server.cpu_seconds > 0
        assert trial.cpu_per_request is not None
        assert (trial.database_cpu_seconds or 0) > 0 or trial.test_type == "json"
        assert [client.client for client in trial.clients] == ["c1", "c2"]
        assert sum(client.requests for client in trial.clients) == trial.requests
        assert {"clients-apart", "link"} <= {check.name for check in trial.validity}
        assert 0 < (trial.link_share or 0) < 1
    info = records.info
    assert info.machine.hostname == "app"
    roles = {each.role: each.name for each in info.machines}
    assert roles == {"server": "app", "database": "db", "client 1": "c1", "client 2": "c2"}
    assert {each.machine.grade for each in info.machines} <= set("ABCD")
    assert {(link.of, link.to) for link in info.links} == {("app", "c1"), ("app", "c2"), ("db", "app")}
    assert all(link.throughput > 0 and link.round_trip > 0 for link in info.links)
    assert "server: app (10.99.0.2), " in done.stdout + done.stderr
    assert left(lab) == {}
    tags = subprocess.check_output(["docker", "image", "ls", "--format", "{{.Tag}}"], text=True).split()
    own = set(re.findall(r"tfb/express:(run-\w+)", (find_run(tmp_path, None) / "logs" / "harness.log").read_text()))
    assert len(own) == 1
    assert not own & set(tags)


def test_changed_host_key_is_refused(lab: Lab, tmp_path: Path) -> None:
    known = lab.folder / "known"
    right = known.read_text()
    key = (lab.folder / "other.pub").read_text()
    known.write_text("".join(f"10.99.0.{number} {key}" for number in range(2, 6)))
    try:
        done = lab.tfb("--test", "express", *WHERE, "--results", str(tmp_path), seconds=200)
    finally:
        known.write_text(right)
    assert done.returncode == 3
    assert "app cannot be reached over ssh" in done.stderr
    assert "Host key verification failed" in done.stderr


def kill_session(lab: Lab, run: subprocess.Popen[str]) -> None:
    for child in psutil.Process(run.pid).children(recursive=True):
        words = child.cmdline()
        if words and words[0] == "ssh" and words[-1] == "app" and "-nNT" in words:
            os.kill(child.pid, signal.SIGKILL)
            return
    pytest.fail("the run has no ssh session to app")


Blow = Callable[[Lab, subprocess.Popen[str]], object]
BLOWS: dict[str, tuple[Blow, str]] = {
    "a client is switched off": (lambda lab, _: lab.kill("c1"), "the machine c1 is lost"),
    "a client's engine hangs": (lambda lab, _: lab.hang("c2"), "the engine of the machine c2 has not responded"),
    "the link of a client is down": (lambda lab, _: lab.link("c1", "down"), "machine c1"),
    "an ssh session ends": (kill_session, "the machine app is lost: the ssh session ended"),
    "the server's engine hangs": (lambda lab, _: lab.hang("app"), "machine app has not responded"),
    "the database's engine hangs": (lambda lab, _: lab.hang("db"), "machine db has not responded"),
}


@pytest.mark.parametrize("how", BLOWS)
def test_run_names_lost_machine_and_can_resume(lab: Lab, tmp_path: Path, how: str) -> None:
    blow, says = BLOWS[how]
    words = ("--test", "express", "--type", "json", "--seed", "1", "--profile", "smoke", "--duration", "12")
    command = lab.laptop(sys.executable, "-m", "harness", *words, *WHERE, "--results", str(tmp_path))
    log = tmp_path / "stderr"
    with log.open("w") as output:
        run = subprocess.Popen(command, cwd=REPOSITORY, env=lab.environment, stdout=output, stderr=output, text=True)
    try:
        _until(lambda: len(lab.docker("c1", "ps", "--quiet").split()) == 1 and _measuring(tmp_path), 400, log)
        blow(lab, run)
        _until(lambda: says in log.read_text(), NOTICED_SECONDS + SLACK_SECONDS, log)
        assert run.wait(300) == 3, log.read_text()[-3000:]
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait(100)
        mend(lab)
    (folder,) = list_runs(tmp_path)
    records = store.read_run(folder)
    assert records.info.status == "interrupted"  # so --resume can continue it
    assert list(records.trials) == []  # interrupted loads leave no records
    if how == "a client is switched off":
        done = lab.tfb("run", "--resume", "--results", str(tmp_path), seconds=300)
        assert done.returncode == 0, done.stderr[-3000:]
        assert {(t.implementation, t.rankable) for t in store.read_run(folder).trials} == {("express", True)}
    assert left(lab) == {}


def mend(lab: Lab) -> None:
    for name in machines.NAMES:
        lab.link(name, "up")
        if lab.nodes[name].poll() is not None:
            lab.start(name)
        else:
            lab.wake(name)
    lab.await_up(*machines.NAMES)
    for name in machines.NAMES:  # tfb could not remove containers on unreachable machines
        if left_there := lab.docker(name, "ps", "--all", "--quiet").split():
            lab.docker(name, "rm", "--force", *left_there)


def test_full_remote_disk_is_named_with_machine(tmp_path: Path) -> None:
    with machines.machines(("full",), disk="64m", tag=f"f{os.getpid() % 10000:04d}") as lab:
        alone = ("--server-host", "full", "--database-host", "full", "--client-host", "full")
        done = lab.tfb("--test", "express", "--type", "json", "--profile", "smoke", *alone,
                       "--results", str(tmp_path), seconds=500)  # fmt: skip
        assert done.returncode == 3, done.stderr[-3000:]
        assert "cannot send the image" in done.stderr
        assert " to full: " in done.stderr
        assert "no space left on device" in done.stderr


def _measuring(results: Path) -> bool:
    """Return whether the run has reached its first measured load ("c32")."""
    progress_files = list(results.glob("*/progress.json"))
    return bool(progress_files) and '"c32"' in progress_files[0].read_text()


def _until(ready: Callable[[], bool], seconds: float, log: Path) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.1)
