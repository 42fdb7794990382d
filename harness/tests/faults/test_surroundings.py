"""Streams, encodings, virtual environments and the leftovers of the dead, none of which is the usual."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.host import ownership
from harness.host.process import MARK_VARIABLE
from harness.paths import REPOSITORY
from harness.tests.host.test_leftovers import dead
from harness.tests.scene import Scene

pytestmark = pytest.mark.fault

STREAMS: Mapping[str, tuple[str, Sequence[int], str]] = {  # a shell's words around the command
    "stdin closed": ('"$@" <&-', (0,), "good"),
    "stdout closed": ('"$@" >&-', (3,), "stdout"),
    "stderr closed": ('"$@" 2>&-', (0,), "good"),
    "all closed": ('"$@" <&- >&- 2>&-', (3,), ""),
    "a full disk behind stdout": ('"$@" >/dev/full', (3,), "No space left"),
    "a full disk behind stderr": ('"$@" 2>/dev/full', (0,), "good"),
    "a reader that ends at once": ('"$@" | true', (0,), ""),
    "ASCII": ('PYTHONIOENCODING=ascii "$@"', (0,), "good"),
    "LC_ALL=C without UTF-8": ('LC_ALL=C PYTHONCOERCECLOCALE=0 PYTHONUTF8=0 "$@"', (0,), "good"),
    "no HOME": ('unset HOME; "$@"', (0,), "good"),
    "an empty PATH": ('PATH= "$@"', (0,), "good"),
    "a folder that was removed": ('mkdir gone && cd gone && rmdir ../gone && "$@"', (0,), "good"),
    "32 open files": ('ulimit -n 32; "$@"', (0, 1, 3), ""),
    "200 MB of memory": ('ulimit -v 200000; "$@"', (0, 1), ""),
    "no TMPDIR": ('TMPDIR=/nonexistent "$@"', (0,), "good"),
}


@pytest.mark.parametrize("what", STREAMS)
def test_odd_surroundings_work_or_are_named_in_a_line(scene: Scene, what: str) -> None:
    script, statuses, says = STREAMS[what]
    scene.add("good")
    answer = scene.tfb("--list-tests", "--frameworks", str(scene.frameworks), before=("sh", "-c", script, "sh"))
    answer.ends(*statuses).says(says)


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "20"}, {"TERM": "dumb"}], ids=str)
def test_a_report_is_whole_on_every_terminal(recorded: Scene, environment: Mapping[str, str]) -> None:
    """Signs that an encoding lacks are spelled out, and a narrow terminal loses no row."""
    recorded.report(env=environment).ends(0).says("one", "two")


READERS: Mapping[str, tuple[str, int]] = {
    "never came": ('{ "$@"; echo $? >status; } 2>&1 | true; exit $(cat status)', 0),
    "is a full disk": ('"$@" >/dev/full 2>&1', 3),
}


@pytest.mark.parametrize("what", READERS)
def test_a_run_of_which_nobody_hears_is_made_all_the_same(scene: Scene, what: str) -> None:
    script, status = READERS[what]
    scene.add("good")
    scene.measure("--test", "good", "--type", "json", before=("sh", "-c", script, "sh")).ends(status)
    assert scene.records().info.status == "complete"
    assert scene.measured() == {"good"}


# ---- the launcher ----------------------------------------------------------------------------------------------------

INTERPRETERS: Mapping[str, Callable[[Path], object]] = {
    "gone": lambda path: path.symlink_to("/nonexistent/python3"),
    "no program": lambda path: path.write_text("no program", encoding="utf-8"),
    "missing": lambda _: None,
}


@pytest.mark.parametrize("what", INTERPRETERS)
def test_the_launcher_says_what_to_do_about_a_broken_environment(scene: Scene, what: str) -> None:
    """Exit status 3 and a line, where the virtual environment is broken and no Python can make another."""
    venv = scene.root / "venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("requirements.lock", "requirements-dev.lock"):
        shutil.copy(REPOSITORY / name, venv / name)
    INTERPRETERS[what](venv / "bin" / "python")
    environment = {"TFB_VENV": str(venv), "TFB_PYTHON": "/bin/false", "PATH": "/nonexistent"}
    scene.run(["/bin/sh", str(REPOSITORY / "tfb"), "--list-tests"], environment).ends(3).says("Python 3.11")


# ---- leftovers -------------------------------------------------------------------------------------------------------


@contextmanager
def leftovers(scene: Scene) -> Iterator[Callable[[], tuple[bool, bool]]]:
    """A process and a scratch folder of a harness that is dead; which of them are gone."""
    owner = dead()
    process = subprocess.Popen(
        ["sleep", "600"], env={**os.environ, MARK_VARIABLE: f"{owner}.1"}, start_new_session=True
    )
    folder = scene.scratch / "tfb-scratch-postgres-left"
    (folder / "data").mkdir(parents=True)
    (folder / ownership.OWNER_FILE).write_text(owner, encoding="ascii")

    def gone() -> tuple[bool, bool]:
        time.sleep(0.2)
        return process.poll() is not None, not folder.exists()

    try:
        yield gone
    finally:
        process.kill()
        process.wait()


FOUND = ("sleep (pid", "tfb-scratch-postgres-left")


def test_doctor_names_and_clean_removes_what_a_killed_run_has_left(scene: Scene) -> None:
    with leftovers(scene) as gone:
        scene.tfb("doctor").says("left by a killed run", *FOUND)
        scene.tfb("clean", "--leftovers", "--dry-run").ends(0).says(*FOUND)
        assert gone() == (False, False)
        scene.tfb("clean", "--leftovers", "--yes").ends(0).says(*FOUND)
        assert gone() == (True, True)


@pytest.mark.parametrize("consent", [True, False])
def test_the_next_run_names_what_a_killed_one_has_left(scene: Scene, *, consent: bool) -> None:
    scene.add("good")
    words = [word for word in scene.words("--test", "good", "--type", "json") if not consent or word != "--no-install"]
    with leftovers(scene) as gone:
        answer = scene.tfb(*words, *(["--yes"] if consent else [])).ends(0)
        answer.says("killed run" if consent else "Remove them with ./tfb clean")
        assert gone() == (consent, consent)


def test_what_a_living_harness_uses_is_nobody_s_leftover(scene: Scene) -> None:
    with subprocess.Popen(
        ["sleep", "600"], env={**os.environ, MARK_VARIABLE: f"{ownership.own_identity()}.1"}
    ) as process:
        try:
            scene.tfb("clean", "--leftovers", "--yes").ends(0)
            assert process.poll() is None
        finally:
            process.kill()


# ---- an engine of no use ---------------------------------------------------------------------------------------------

COMPOSE = 'case "$1 $2" in "compose version") echo 2.30; exit 0;; esac'
CLIENTS: Mapping[str, str] = {
    "running": "sleep 600",
    "Cannot connect": "echo Cannot connect; exit 1",
    "permission denied": "echo permission denied; exit 1",
}


@pytest.mark.parametrize("says", CLIENTS)
def test_an_engine_that_is_of_no_use_is_told_apart_before_a_run(scene: Scene, says: str) -> None:
    """Hanging, stopped or forbidden: exit status 3, and a line that says what to do; nothing is written."""
    scene.image("one")
    path = scene.program("docker", f"{COMPOSE}; {CLIENTS[says]}")
    scene.measure("--test", "one", env=path).ends(3).says(says, "docker-engine")
    assert list(scene.results.iterdir()) == []
