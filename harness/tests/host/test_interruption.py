"""On a signal, a command cleans up and exits with status 130, without a traceback."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.paths import REPOSITORY
from harness.tests.scene import script

HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
RUNS = 'import runpy; runpy.run_module("harness", run_name="__main__", alter_sys=True)'


def started(*arguments: str, cwd: Path = REPOSITORY) -> "subprocess.Popen[bytes]":
    command, environment = [sys.executable, *arguments], {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def changed(code: str) -> "subprocess.Popen[bytes]":
    """Start tfb's command line, but execute ``code`` first."""
    return started("-c", f"{HEARS}\n{code}\n{RUNS}")


END = """
import os, signal
from harness import cli
from harness.host import process
def stop_all():
    os.kill(os.getpid(), signal.SIGTERM)
    print("stopped", flush=True)
process.stop_all = stop_all
def main():
    print("done", flush=True)
    return 0
cli.main = main
import atexit
atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
"""


def test_signal_during_exit_interrupts_nothing() -> None:
    child = changed(END)
    assert (*child.communicate(timeout=60), child.returncode) == (b"done\nstopped\n", b"", 0)


def test_interrupt_during_python_startup_is_delivered(tmp_path: Path) -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    script(tmp_path / "bin" / "python", f'[ "$1" = -c ] || kill -INT $$\nexec {sys.executable} "$@"')
    arguments = ["/bin/sh", str(REPOSITORY / "tfb"), "--version"]
    completed = subprocess.run(
        arguments, env={**os.environ, "TFB_VENV": str(tmp_path)}, capture_output=True, check=False
    )
    assert (completed.returncode, completed.stdout, completed.stderr) == (130, b"", b"")


def of(folder: Path) -> list[list[str]]:
    """Return the command lines of all running processes that mention ``folder``."""
    command_lines = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return [arguments for arguments in command_lines if any(str(folder) in argument for argument in arguments)]


def test_terminated_launcher_stops_its_installation(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    environment = {**os.environ, "TFB_VENV": str(venv), "TFB_PYTHON": sys.executable}
    with subprocess.Popen(["/bin/sh", str(REPOSITORY / "tfb"), "--version"], env=environment) as child:
        until = time.monotonic() + 60
        while not any("ensurepip" in arguments for arguments in of(venv)) and time.monotonic() < until:
            time.sleep(0.01)
        begun = of(venv)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 130
    assert any("ensurepip" in arguments for arguments in begun)
    while of(venv) and time.monotonic() < until:
        time.sleep(0.01)
    assert of(venv) == []


STEPS = """
import sys, time
from pydantic import BaseModel, field_serializer
from harness import cli
from harness.host import interruption
class Record(BaseModel):
    values: list[int]
    @field_serializer("values")
    def slow(self, values: list[int]) -> list[int]:
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass
        return values
def command():
    with interruption.deferred():
        print("ready", flush=True)
        while True:
            print(Record(values=[1]).model_dump_json(), flush=True)
            STEP
main = cli.main
cli.main = lambda: cli.guarded(command)
"""


def interrupted(child: "subprocess.Popen[bytes]", number: signal.Signals = signal.SIGTERM, moment: float = 0) -> bytes:
    """Send a signal after the first line of output. Return the remaining output."""
    child.stdout.readline()
    time.sleep(moment)
    started_at = time.monotonic()
    child.send_signal(number)
    out, errors = child.communicate(timeout=60)
    assert time.monotonic() - started_at < 2
    assert (child.returncode, errors) == (130, b"tfb: interrupted; all started processes have been stopped\n")
    return out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("step", "moment"), [("interruption.raise_if_pending()", 0.02), ("interruption.sleep(5)", 0.07)]
)
def test_interrupt_between_steps_does_not_reach_libraries(number: signal.Signals, step: str, moment: float) -> None:
    out = interrupted(changed(STEPS.replace("STEP", step)), number, moment)
    assert set(out.splitlines()) <= {b'{"values":[1]}'}


def test_interrupt_during_exec_exits_with_status_130(tmp_path: Path) -> None:
    """Without tfb's signal handler, SIGINT would kill the process."""
    waits = r"exec('print(flush=True)\nwhile True: time.sleep(0.1)')"  # Python handles signals after each sleep
    code = f"import time\nfrom harness import cli\ncli.main = lambda: cli.guarded(lambda: {waits})"
    (tmp_path / "changed.py").write_text(f"{HEARS}\n{code}\n{RUNS}\n", encoding="ascii")
    interrupted(started(str(tmp_path / "changed.py"), cwd=tmp_path))


def test_endless_step_is_interrupted() -> None:
    patience = "from harness.host import interruption\ninterruption.KILL_DELAY_SECONDS = 0.2\n"
    interrupted(changed(patience + STEPS.replace("STEP", "time.sleep(60)")))
