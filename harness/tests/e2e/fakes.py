"""A folder of fake implementations and the real command line on it, in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.faults.scene import PROFILE, PROGRAM
from harness.host import process
from harness.paths import REPOSITORY
from harness.records import store
from harness.records.models import RunRecords


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str
    seconds: float  # from the signal, where there was one


class Place:
    """Implementations, results and scratch folders of one test; ``root`` is open to PostgreSQL's account."""

    def __init__(self, root: Path) -> None:
        self.frameworks = root / "frameworks"
        self.results = root / "results"
        self.scratch = root / "scratch"
        self.profile = root / "tiny.toml"
        self.stdout = root / "stdout"
        for folder in (self.frameworks, self.scratch):
            folder.mkdir(parents=True)
        self.profile.write_text(PROFILE)
        self.environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(self.scratch)}

    def add(self, name: str, behaviour: str = "good", **local: object) -> None:
        """An implementation that behaves like that; ``local`` changes its local block."""
        command = [sys.executable, "-m", "harness.tests.doubles.fake", "--behaviour", behaviour]
        block = {"run": command, "env": {"PYTHONPATH": str(REPOSITORY)}, **local}
        entry = {"language": "Python", "json_url": "/json", "plaintext_url": "/plaintext", "local": block}
        self.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}))

    def write(self, name: str, text: str) -> None:
        """A benchmark_config.json as it is."""
        folder = self.frameworks / "Python" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "benchmark_config.json").write_text(text)

    def command(self, *arguments: str) -> list[str]:
        """The command line of a run here."""
        where = ["--frameworks", str(self.frameworks), "--rules", "tfb", "--results", str(self.results)]
        where += ["--runtime", "local"]
        return [sys.executable, "-c", PROGRAM, *arguments, *where, "--profile", str(self.profile), "--no-install"]

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None, seconds: float = 240) -> Finished:
        """Run to the end."""
        began = time.monotonic()
        done = subprocess.run(
            self.command(*arguments),
            env={**self.environment, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Finished(
            status=done.returncode, stdout=done.stdout, stderr=done.stderr, seconds=time.monotonic() - began
        )

    def interrupt(
        self,
        when: Callable[[], bool],
        number: signal.Signals,
        *arguments: str,
        later: Sequence[tuple[float, signal.Signals]] = (),
    ) -> tuple[Finished, list[str]]:
        """Run until ``when`` holds, send a signal (and more of them), wait; also which processes are left."""
        with self.stdout.open("wb") as stdout:
            run = subprocess.Popen(
                self.command(*arguments), env=self.environment, stdout=stdout, stderr=subprocess.PIPE, text=True
            )
        try:
            until = time.monotonic() + 60
            while not when():
                assert run.poll() is None, f"ended too early: {run.communicate()}"
                assert time.monotonic() < until, f"never got there; {self.progress()}"
                time.sleep(0.02)
            began = time.monotonic()
            run.send_signal(number)
            for pause, another in later:
                time.sleep(pause)
                run.send_signal(another)
            _, stderr = run.communicate(timeout=30)
            seconds = time.monotonic() - began
        finally:
            run.kill()
            run.wait()
        done = Finished(status=run.returncode, stdout=self.stdout.read_text(), stderr=stderr, seconds=seconds)
        return done, started_by(run.pid)

    def progress(self) -> dict[str, object]:
        """What the run says it is doing."""
        for path in sorted(self.results.glob("*/progress.json")):
            found: dict[str, object] = json.loads(path.read_text())
            return found
        return {}

    def at(self, stage: str) -> Callable[[], bool]:
        """Whether the run is at this stage."""
        return lambda: self.progress().get("stage") == stage

    def records(self) -> RunRecords:
        """What the only run here has left on disk."""
        (folder,) = store.runs(self.results)
        return store.read(folder)

    def log(self) -> str:
        """The harness's own log of that run."""
        (folder,) = store.runs(self.results)
        return (folder / "logs" / "harness.log").read_text()


def started_by(harness: int) -> list[str]:
    """Command lines of living processes that this harness started, daemons among them."""
    left = []
    for candidate in psutil.process_iter():
        try:
            mark = candidate.environ().get(process.MARK, "")
            if mark.startswith(f"{harness}.") and candidate.status() != psutil.STATUS_ZOMBIE:
                left.append(" ".join(candidate.cmdline()))
        except psutil.Error:
            continue
    return left
