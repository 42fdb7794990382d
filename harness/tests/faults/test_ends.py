"""How runs end before their time: signals at any moment, kill -9, a full disk, and several runs at once."""

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
# Waits a minute the first time and not at all afterwards.
SLOW_ONCE = "import pathlib, time\nif not (p := pathlib.Path('built')).exists():\n  p.touch()\n  time.sleep(60)"
STAGES = ("building", "making database", "starting", "verifying", "warm-up", "measure")
INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


def prepared(scene: Scene, stage: str, behaviour: str = "good") -> Callable[[], bool]:
    """A scene in which a run comes to this stage and stays for a while; whether it is there."""
    build = {"build": [sys.executable, "-c", SLOW_ONCE]} if stage == "building" else {}
    scene.add("good", behaviour, **build)
    if stage == "building":
        return (scene.frameworks / "Python" / "good" / "built").exists
    if stage == "making database":
        return lambda: any(scene.scratch.glob("tfb-*postgres*/data"))
    return scene.at(stage)


def signals(*numbers: signal.Signals) -> "Callable[[subprocess.Popen[bytes]], None]":
    """One after the other."""

    def send(run: "subprocess.Popen[bytes]") -> None:
        for number in numbers:
            run.send_signal(number)
            time.sleep(0.3)

    return send


def interrupted(scene: Scene, answer: CommandResult) -> None:
    """Exit status 130, and whoever reads the run sees that it was interrupted."""
    answer.ends(130)
    assert scene.records().info.status == "interrupted"


def one_trial(scene: Scene) -> bool:
    """Whether a trial stands in the records."""
    return any(path.stat().st_size for path in scene.results.glob("*/trials.jsonl"))


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_ends_a_run_in_order_at_any_moment_and_it_goes_on(scene: Scene, stage: str) -> None:
    """Exit status 130 within ten seconds, no process and no folder left; --resume completes the run."""
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
def test_a_killed_run_leaves_nothing_and_goes_on(scene: Scene, stage: str) -> None:
    """kill -9: every process and folder of it is gone within seconds; --resume completes the run."""
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
def test_other_and_several_signals_end_a_run_as_one_ctrl_c(scene: Scene, numbers: Sequence[signal.Signals]) -> None:
    """Exit status 130, and the stopping is not cut short: nothing is left."""
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
def test_a_server_that_ignores_sigterm_delays_no_end(
    scene: Scene, behaviour: str, stage: str, then: Sequence[signal.Signals]
) -> None:
    """It is killed in time, also where the harness is killed while it waits for it."""
    answer = scene.struck(RUN, prepared(scene, stage, behaviour), signals(*then))
    if signal.SIGKILL in then:
        answer.ends(-signal.SIGKILL, 130)
    else:
        interrupted(scene, answer)


def test_a_run_that_was_stopped_for_seconds_goes_on_to_its_end(scene: Scene) -> None:
    """As by Ctrl-Z and fg: exit status 0, or 1 where a trial was spoilt; never a hang."""

    def stop(run: "subprocess.Popen[bytes]") -> None:
        run.send_signal(signal.SIGSTOP)
        time.sleep(4)
        run.send_signal(signal.SIGCONT)

    scene.struck(RUN, prepared(scene, "measure"), stop).ends(0, 1)
    assert scene.records().trials


def test_debug_mode_leaves_nothing_behind(scene: Scene) -> None:
    """Ctrl-C ends server and database."""
    scene.add("good")
    words = ("--mode", "debug", "--test", "good")
    scene.struck(words, lambda: "stop with Ctrl-C" in scene.log(), signals(INT)).ends(130).says("/json")


# ---- no room ---------------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(scene: Scene) -> Iterator[None]:
    """In place of the results folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(scene.results)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(scene.results)], check=False)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    subprocess.run(["sh", "-c", 'cat /dev/zero >"$0"', str(path)], check=False, stderr=subprocess.DEVNULL)


@ROOT
@pytest.mark.parametrize("moment", ["the first trial", "the second process"])
def test_a_full_disk_is_named_loses_nothing_and_the_run_goes_on(scene: Scene, moment: str) -> None:
    """Exit status 1 and a line; what was measured is kept whole, and with room again --resume completes the run."""
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


# ---- side by side ----------------------------------------------------------------------------------------------------


def test_eight_runs_at_once_are_eight_whole_runs(scene: Scene) -> None:
    """Each has a folder, a database and ports of its own; the others are told of, and none disturbs the records."""
    scene.add("good")
    runs = [scene.started(*RUN) for _ in range(8)]
    try:
        statuses = [run.wait(200 * patience()) for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.wait()
    assert set(statuses) <= {0, 1}, scene.log()[-900:]  # a trial may be spoilt by the other seven
    folders = list_runs(scene.results)
    assert len(folders) == 8
    for folder in folders:
        records = store.read_run(folder)
        assert records.problems == ()
        assert [process.implementation for process in records.processes] == ["good"]
        assert len(records.trials) == 1, records.info.problems
    assert [left for run in runs for left in scene.left(run.pid)] == []
