"""Runs that end early: signals at every stage, kill -9, a full disk, and simultaneous runs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.records import store
from harness.records.run_folders import list_runs
from harness.tests.scene import CommandResult, Scene, patience

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

RUN = ("--test", "good", "--type", "json")
# A build command that sleeps for a minute the first time it runs.
SLOW_ONCE = "import pathlib, time\nif not (p := pathlib.Path('built')).exists():\n  p.touch()\n  time.sleep(60)"
STAGES = ("building", "making database", "starting", "verifying", "warm-up", "measure")
INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


def prepared(scene: Scene, stage: str, behaviour: str = "good") -> Callable[[], bool]:
    """Add an implementation with which a run stays in ``stage`` for a while.

    Return a function that tests whether the run has reached that stage.
    """
    build = {"build": [sys.executable, "-c", SLOW_ONCE]} if stage == "building" else {}
    scene.add("good", behaviour, **build)
    if stage == "building":
        return (scene.frameworks / "Python" / "good" / "built").exists
    if stage == "making database":
        return lambda: any(scene.scratch.glob("tfb-*postgres*/data"))
    return scene.at(stage)


def signals(*numbers: signal.Signals) -> "Callable[[subprocess.Popen[bytes]], None]":
    """Return a function that sends these signals to a run, one after another."""

    def send(run: "subprocess.Popen[bytes]") -> None:
        for number in numbers:
            run.send_signal(number)
            time.sleep(0.3)

    return send


def interrupted(scene: Scene, answer: CommandResult) -> None:
    """Assert that the exit status and the recorded status say "interrupted"."""
    answer.ends(130)
    assert scene.records().info.status == "interrupted"


def one_trial(scene: Scene) -> bool:
    """Return whether a trial was recorded."""
    return any(path.stat().st_size for path in scene.results.glob("*/trials.jsonl"))


@pytest.mark.parametrize("stage", STAGES)
def test_interrupted_run_cleans_up_and_can_be_resumed(scene: Scene, stage: str) -> None:
    """Ctrl-C ends the run within ten seconds and leaves nothing behind. --resume completes it."""
    there = prepared(scene, stage)
    began: list[float] = []

    def strike(run: "subprocess.Popen[bytes]") -> None:
        began.append(time.monotonic())
        run.send_signal(INT)

    answer = scene.struck(RUN, there, strike)
    assert time.monotonic() - began[0] < 10 * patience() + 1
    interrupted(scene, answer)
    if stage in ("building", "measure"):
        scene.resume().ends(0)
        assert scene.measured() == {"good"}
        assert scene.records().info.status == "complete"


@pytest.mark.parametrize("stage", STAGES)
def test_killed_run_leaves_nothing_and_can_be_resumed(scene: Scene, stage: str) -> None:
    """After kill -9, processes and folders disappear within seconds. --resume completes the run."""
    answer = scene.struck(RUN, prepared(scene, stage), lambda run: run.kill())
    assert answer.status == -signal.SIGKILL
    if stage in ("verifying", "measure"):
        scene.resume().ends(0)
        assert scene.measured() == {"good"}


@pytest.mark.parametrize(
    "numbers",
    [(TERM,), (HUP,), (QUIT,), (INT, INT), (TERM, INT, HUP)],
    ids=lambda numbers: " ".join(number.name for number in numbers),
)
def test_other_signals_end_a_run_like_ctrl_c(scene: Scene, numbers: Sequence[signal.Signals]) -> None:
    """Further signals do not interrupt the clean-up."""
    interrupted(scene, scene.struck(RUN, prepared(scene, "measure"), signals(*numbers)))


@pytest.mark.parametrize(
    ("behaviour", "stage", "then"),
    [
        ("hangs-and-ignores-sigterm", "verifying", (INT,)),
        ("ignores-sigterm", "measure", (INT, TERM, INT)),
        ("ignores-sigterm", "measure", (INT, signal.SIGKILL)),
        ("leaves-a-daemon", "measure", (signal.SIGKILL,)),
    ],
    ids=["hangs", "stubborn", "killed while stopping", "killed beside a daemon"],
)
def test_stubborn_server_does_not_delay_the_end(
    scene: Scene, behaviour: str, stage: str, then: Sequence[signal.Signals]
) -> None:
    """tfb kills a server that ignores SIGTERM. If tfb itself is killed while it waits, the server ends as well."""
    answer = scene.struck(RUN, prepared(scene, stage, behaviour), signals(*then))
    if signal.SIGKILL in then:
        answer.ends(-signal.SIGKILL, 130)
    else:
        interrupted(scene, answer)


def test_stopped_run_continues_to_its_end(scene: Scene) -> None:
    """After SIGSTOP and SIGCONT, the run completes. Its exit status is 1 if the pause invalidated a trial."""

    def stop(run: "subprocess.Popen[bytes]") -> None:
        run.send_signal(signal.SIGSTOP)
        time.sleep(4)
        run.send_signal(signal.SIGCONT)

    scene.struck(RUN, prepared(scene, "measure"), stop).ends(0, 1)
    assert scene.records().trials


def test_debug_mode_leaves_nothing_behind(scene: Scene) -> None:
    """Ctrl-C stops the server and the database."""
    scene.add("good")
    words = ("--mode", "debug", "--test", "good")
    scene.struck(words, lambda: "stop with Ctrl-C" in scene.log(), signals(INT)).ends(130).says("/json")


@contextmanager
def small_disk(scene: Scene) -> Iterator[None]:
    """Mount a 4 MiB file system on the results folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(scene.results)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(scene.results)], check=False)


def fill(path: Path) -> None:
    """Write to a file until the disk is full."""
    subprocess.run(["sh", "-c", 'cat /dev/zero >"$0"', str(path)], check=False, stderr=subprocess.DEVNULL)


@ROOT
@pytest.mark.parametrize("moment", ["the first trial", "the second process"])
def test_run_can_be_resumed_after_a_full_disk(scene: Scene, moment: str) -> None:
    """No record is truncated. Once the disk has free space again, --resume completes the run."""
    scene.add("good")
    filler = scene.results / "filler"
    there = scene.at("warm-up") if moment == "the first trial" else lambda: one_trial(scene)
    with small_disk(scene):
        answer = scene.struck((*RUN, "--processes", "2"), there, lambda _: fill(filler))
        answer.ends(1).says("No space left on device")
        filler.unlink()
        kept = [trial.id for trial in scene.records().trials]
        assert scene.records().problems == ()
        assert bool(kept) == (moment != "the first trial")
        scene.resume().ends(0)
        assert sorted(trial.process for trial in scene.records().trials if trial.purpose == "measure") == [0, 1]
        assert scene.records().info.status == "complete"


def test_simultaneous_runs_are_complete(scene: Scene) -> None:
    """Each run has its own folder, database and ports."""
    scene.add("good")
    runs = [scene.started(*RUN) for _ in range(4)]
    try:
        statuses = [run.wait(200 * patience()) for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.wait()
    assert set(statuses) <= {0, 1}, scene.log()[-900:]  # concurrent runs may invalidate trials
    folders = list_runs(scene.results)
    assert len(folders) == 4
    for folder in folders:
        records = store.read_run(folder)
        assert records.problems == ()
        assert [process.implementation for process in records.processes] == ["good"]
        assert len(records.trials) == 1, records.info.problems
    assert [left for run in runs for left in scene.left(run.pid)] == []
