"""Unusual streams, encodings and virtual environments, and leftovers of killed runs."""

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

STREAMS: Mapping[str, tuple[str, Sequence[int], str]] = {  # (shell script in which "$@" is tfb, exit codes, output)
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
def test_unusual_environment_works_or_is_reported(scene: Scene, what: str) -> None:
    script, statuses, says = STREAMS[what]
    scene.add("good")
    answer = scene.tfb("--list-tests", "--frameworks", str(scene.frameworks), before=("sh", "-c", script, "sh"))
    answer.ends(*statuses).says(says)


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "20"}, {"TERM": "dumb"}], ids=str)
def test_report_is_complete_on_every_terminal(recorded: Scene, environment: Mapping[str, str]) -> None:
    """Characters that the encoding lacks are replaced. Even a narrow terminal shows all rows."""
    recorded.report(env=environment).ends(0).says("one", "two")


READERS: Mapping[str, tuple[str, int]] = {
    "never came": ('{ "$@"; echo $? >status; } 2>&1 | true; exit $(cat status)', 0),
    "is a full disk": ('"$@" >/dev/full 2>&1', 3),
}


@pytest.mark.parametrize("what", READERS)
def test_run_completes_without_a_reader_of_its_output(scene: Scene, what: str) -> None:
    script, status = READERS[what]
    scene.add("good")
    scene.measure("--test", "good", "--type", "json", before=("sh", "-c", script, "sh")).ends(status)
    assert scene.records().info.status == "complete"
    assert scene.measured() == {"good"}


INTERPRETERS: Mapping[str, Callable[[Path], object]] = {
    "gone": lambda path: path.symlink_to("/nonexistent/python3"),
    "no program": lambda path: path.write_text("no program", encoding="utf-8"),
    "missing": lambda _: None,
}


@pytest.mark.parametrize("what", INTERPRETERS)
def test_launcher_reports_a_broken_environment(scene: Scene, what: str) -> None:
    """The virtual environment is broken, and no Python can create a new one."""
    venv = scene.root / "venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("requirements.lock", "requirements-dev.lock"):
        shutil.copy(REPOSITORY / name, venv / name)
    INTERPRETERS[what](venv / "bin" / "python")
    environment = {"TFB_VENV": str(venv), "TFB_PYTHON": "/bin/false", "PATH": "/nonexistent"}
    scene.run(["/bin/sh", str(REPOSITORY / "tfb"), "--list-tests"], environment).ends(3).says("Python 3.11")


@contextmanager
def leftovers(scene: Scene) -> Iterator[Callable[[], tuple[bool, bool]]]:
    """Create leftovers of an exited owner.

    Yield a function that returns whether the process and the folder are gone.
    """
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


def test_clean_removes_leftovers_that_doctor_reports(scene: Scene) -> None:
    with leftovers(scene) as gone:
        scene.tfb("doctor").says("left by a killed run", *FOUND)
        scene.tfb("clean", "--leftovers", "--dry-run").ends(0).says(*FOUND)
        assert gone() == (False, False)
        scene.tfb("clean", "--leftovers", "--yes").ends(0).says(*FOUND)
        assert gone() == (True, True)


@pytest.mark.parametrize("consent", [True, False])
def test_next_run_reports_leftovers(scene: Scene, *, consent: bool) -> None:
    scene.add("good")
    words = [word for word in scene.words("--test", "good", "--type", "json") if not consent or word != "--no-install"]
    with leftovers(scene) as gone:
        answer = scene.tfb(*words, *(["--yes"] if consent else [])).ends(0)
        answer.says("killed run" if consent else "Remove them with ./tfb clean")
        assert gone() == (consent, consent)


def test_resources_of_a_living_run_are_not_leftovers(scene: Scene) -> None:
    with subprocess.Popen(
        ["sleep", "600"], env={**os.environ, MARK_VARIABLE: f"{ownership.own_identity()}.1"}
    ) as process:
        try:
            scene.tfb("clean", "--leftovers", "--yes").ends(0)
            assert process.poll() is None
        finally:
            process.kill()


COMPOSE = 'case "$1 $2" in "compose version") echo 2.30; exit 0;; esac'
CLIENTS: Mapping[str, str] = {
    "exceeded 20 s": "sleep 600",
    "Cannot connect": "echo Cannot connect; exit 1",
    "permission denied": "echo permission denied; exit 1",
}


@pytest.mark.parametrize("says", CLIENTS)
def test_unusable_container_engine_is_reported_before_a_run(scene: Scene, says: str) -> None:
    """If the engine hangs, is stopped or denies access, the command fails before it writes anything."""
    scene.image("one")
    path = scene.program("docker", f"{COMPOSE}; {CLIENTS[says]}")
    scene.measure("--test", "one", env=path).ends(3).says(says, "docker-engine")
    assert list(scene.results.iterdir()) == []
