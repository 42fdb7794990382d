"""On a terminal, a run asks at most one question, and asks it before the progress display appears."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from harness.paths import REPOSITORY
from harness.tests.scene import script

ROOT_QUESTION = "build implementations as root"
DRAWN = "\x1b["  # every control sequence of the progress display begins with this
PACKAGES = sysconfig.get_path("purelib")
NONE: Mapping[str, str] = {}


class Terminal:
    """A ``./tfb`` process on a pseudo-terminal, started in a fresh clone."""

    def __init__(
        self, clone: Path, words: tuple[str, ...], program: str, variables: Mapping[str, str], columns: int = 80
    ) -> None:
        self.text = ""
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (50, columns))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TFB_")}
        rust = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))  # cargo reads this variable
        environment |= {"PYTHONPATH": f"{clone}:{PACKAGES}", "TERM": "xterm", "HOME": str(clone.parent)}
        environment |= {"RUSTUP_HOME": rust, **variables}
        self.child = subprocess.Popen(
            [program, *words] if program else [sys.executable, "-m", "harness", *words],
            cwd=clone, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def read_until(self, complete: Callable[[str], bool], seconds: float = 60) -> str:
        """Return the new output as soon as it satisfies ``complete``, the program exits, or ``seconds`` have passed."""
        started_at, until = len(self.text), time.monotonic() + seconds
        while not complete(self.text[started_at:]) and time.monotonic() < until:
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self._master, 1 << 16).decode(errors="replace")
                except OSError:  # Linux raises EIO once the last process has exited
                    break
        return self.text[started_at:]

    def questions(self) -> int:
        return self.text.count("/N]") + self.text.count("/n]")

    def types(self, line: str) -> None:
        os.write(self._master, f"{line}\n".encode())

    def status(self, seconds: float = 60) -> int:
        self.read_until(lambda _: False, seconds)
        return self.child.wait(seconds)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        os.close(self._master)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    target = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{REPOSITORY}", str(target)], check=True)
    return target


@pytest.fixture
def started(clone: Path) -> Iterator[Callable[..., Terminal]]:
    """Yield a function that starts ``./tfb`` in a fresh clone. Kill any remaining processes after the test."""
    running: list[Terminal] = []

    def start(*words: str, program: str = "", more: Mapping[str, str] = NONE, columns: int = 80) -> Terminal:
        running.append(Terminal(clone, words, program, more, columns))
        return running[-1]

    yield start
    for terminal in running:
        terminal.close()


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not judged: root's questions are for root to answer")
LOCAL = ("run", "--runtime", "local")


@as_root
@pytest.mark.parametrize("mode", [LOCAL, ("run",), ("verify", "express", "--runtime", "local")])
def test_root_is_asked_before_the_progress_display(
    mode: tuple[str, ...], started: Callable[..., Terminal], tmp_path: Path
) -> None:
    """Without the compose plugin, tfb falls back to the local runtime, which also must ask before it builds as root."""
    script(tmp_path / "docker", '[ "$1" = version ] && echo 29.0')
    terminal = started(*mode, more={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    question = terminal.read_until(lambda text: "[y/N] " in text)
    assert ROOT_QUESTION in question
    assert DRAWN not in question
    terminal.types("n")
    assert terminal.status() == 3
    assert "builds would run as root: start ./tfb as an ordinary user" in terminal.text
    assert DRAWN not in terminal.text
    assert terminal.questions() == 1


@as_root
@pytest.mark.skipif(not shutil.which("apt-get"), reason="not judged: Debian's Python alone lacks venv")
@pytest.mark.parametrize("answer", ["y", "n"])
def test_the_launcher_asks_before_installing_venv(
    answer: str, clone: Path, tmp_path: Path, started: Callable[..., Terminal]
) -> None:
    """Python lacks ensurepip. The fake apt-get does not install it, so the command fails even after "y"."""
    programs = tmp_path / "bin"
    fails = 'case "$*" in *ensurepip* | *venv*) exit 1 ;; esac'
    script(programs / "python", f'{fails}; exec {sys.executable} "$@"')
    script(programs / "apt-get", f'echo "$*" >> {tmp_path}/installed')
    more = {"PATH": f"{programs}:{os.environ['PATH']}", "TFB_PYTHON": str(programs / "python")}
    terminal = started("run", program=str(clone / "tfb"), more=more)
    question = terminal.read_until(lambda text: "[y/N] " in text)
    assert "python3-venv" in question
    assert ROOT_QUESTION in question
    terminal.types(answer)
    assert terminal.status() == 3
    installed = (tmp_path / "installed").read_text() if (tmp_path / "installed").exists() else ""
    assert ("python3-venv" in installed) is (answer == "y")
    assert terminal.questions() == 1


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_the_terminal_and_keep_the_ratio(columns: int, started: Callable[..., Terminal]) -> None:
    terminal = started("report", "round-1", columns=columns)
    assert terminal.status() == 0
    assert DRAWN in terminal.text
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.text).splitlines()
    assert [line for line in lines if len(line) > columns] == []
    header = next(line for line in lines if line.lstrip().startswith("rank"))
    places = [header.find(name) for name in ("rank", "tie", "implementation", "µs CPU/req", "× resteasy", "req/s")]
    assert places == sorted(places)
    assert -1 not in places
    first_table = lines.index(header)
    assert [number for number, line in enumerate(lines) if line.startswith("! ")][
        -1
    ] < first_table  # caveats precede the tables
    assert any(line.startswith("Overall: vertx-web needs") for line in lines[-15:])  # below the tables


def test_no_color_is_respected_and_the_list_fits(started: Callable[..., Terminal]) -> None:
    terminal = started("list", more={"NO_COLOR": "1"})
    assert terminal.status() == 0
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in terminal.text.splitlines()]
    assert not re.search(r"\x1b\[(?:\d+;)*3[0-7]", terminal.text)
    assert [line for line in lines if len(line) > 80] == []
    languages = sorted(path.name for path in (REPOSITORY / "frameworks").iterdir())
    assert [line for line in lines if re.fullmatch(r"[A-Z][a-zA-Z]+", line)] == languages
    core = [line.split()[1] for line in lines if line.startswith("* ") and not line.startswith("*  core")]
    assert sorted(core) == ["es4x", "express", "resteasy", "vertx-web"]


@as_root
@pytest.mark.e2e
def test_consent_is_asked_for_only_once(
    started: Callable[..., Terminal],
) -> None:
    for answers in (1, 0):
        terminal = started(*LOCAL, "express", "--type", "json", "--profile", "smoke")
        if answers:
            terminal.read_until(lambda text: "[y/N] " in text)
            terminal.types("y")
        terminal.read_until(lambda text: "build" in text.partition(DRAWN)[2], seconds=120)
        assert "including builds)" in " ".join(terminal.text.split())
        terminal.child.send_signal(signal.SIGINT)
        assert (terminal.status(), terminal.questions()) == (130, answers), terminal.text[-800:]
        assert DRAWN not in terminal.text.rpartition("/N] ")[0]
