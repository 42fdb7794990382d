"""Runs the real command line as a process, with implementations and results in a temporary folder."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from harness.host.process import MARK_VARIABLE
from harness.paths import REPOSITORY
from harness.records import store
from harness.records.run_folders import list_runs
from harness.records.run_records import RunRecords

MAX_MEMORY = 300 * 2**20  # bytes of memory that a command may use
STATUSES = (0, 1, 2, 3, 4, 130)
READY_SECONDS = 6  # time limit for the start of a server, instead of a minute
MAX_PATIENCE = 5.0
GONE_SECONDS = 30.0  # seconds until processes and folders must be gone after tfb was killed
PROFILE = """
description = "Faults: as short as a load can be"
duration_seconds = 1.0
[levels]
concurrency = [8]
pipeline_concurrency = [8]
query = [1]
cached_query = [1]
query_concurrency = 8
[warm_up]
cap_seconds = 1.0
jit_cap_seconds = 1.0
[processes]
minimum = 1
maximum = 1
[interleaved]
rounds = 1
witness = false
"""
# Shells start background jobs with SIGINT and SIGQUIT ignored, and nohup ignores SIGHUP. Child processes inherit these
# settings. Restore the defaults, as on a terminal.
HEARS_INTERRUPTS = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); signal.signal(signal.SIGQUIT, signal.SIG_DFL)\n"
)
SERVER = REPOSITORY / "harness" / "tests" / "e2e" / "fake_server.pl"
DOCKERFILE = 'FROM debian:trixie-slim\nCOPY server.pl /\nUSER nobody\nENTRYPOINT ["perl", "/server.pl"]\n'
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def patience() -> float:
    """Return a factor for time limits on a busy machine: the load average per CPU, from 1 to MAX_PATIENCE."""
    return min(MAX_PATIENCE, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


# Runs tfb as a user would, but with a shorter time limit for servers that do not respond.
PROGRAM = (
    f"{HEARS_INTERRUPTS}"
    "import runpy, harness.runtime.readiness as readiness\n"
    f"readiness.READY_SECONDS = {READY_SECONDS * patience()}\n"
    "runpy.run_module('harness', run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """Exit status, output and peak memory of a finished command."""

    status: int  # negative if a signal ended the command
    stdout: str
    stderr: str
    peak_bytes: int = 0

    @property
    def text(self) -> str:
        """Everything that the command printed."""
        return self.stdout + self.stderr

    def says(self, *words: str) -> "CommandResult":
        """Assert that the command printed all of these texts."""
        unwrapped = self.text.replace("\n", "")  # an 80-column console may break lines anywhere
        missing = [word for word in words if word not in self.text and word not in unwrapped]
        assert not missing, f"does not say {missing}: {self.text.strip()[-600:]}"
        return self

    def ends(self, *statuses: int) -> "CommandResult":
        """Assert that the exit status is one of ``statuses``."""
        assert self.status in statuses, f"exit status {self.status}: {self.text.strip()[-600:]}"
        return self

    def judged(self) -> "CommandResult":
        """Assert that there is no traceback or control character, and that the memory stayed below MAX_MEMORY."""
        assert "Traceback" not in self.text, self.text.strip()[-900:]
        assert "internal error in tfb" not in self.text, self.text.strip()[-600:]
        assert self.status in STATUSES, f"exit status {self.status}: {self.text.strip()[-300:]}"
        assert _CONTROL.search(self.text) is None, f"control characters on the terminal: {self.text[-300:]!r}"
        assert self.peak_bytes < MAX_MEMORY, f"{self.peak_bytes / 2**20:.0f} MiB of memory"
        return self


@dataclass
class Scene:
    """A folder with implementations, results and a profile. PostgreSQL's account can enter ``root``."""

    root: Path
    runtime: str = "local"
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = ("frameworks", "results", "scratch", "tiny.toml")
        self.frameworks, self.results, self.scratch, self.profile = (self.root / name for name in names)
        for folder in (self.frameworks, self.results, self.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        self.scratch.chmod(0o1777)
        self.profile.write_text(PROFILE, encoding="utf-8")
        self.environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(self.scratch)}

    def add(self, name: str, behaviour: str = "good", **local: object) -> None:
        """Add an implementation with a behaviour from ``doubles.fake``. ``local`` adds keys to its ``local`` block."""
        run = [sys.executable, "-m", "harness.tests.doubles.fake", "--behaviour", behaviour]
        block = {"run": run, "env": {"PYTHONPATH": str(REPOSITORY)}, **local}
        urls = {"json_url": "/json", "plaintext_url": "/plaintext"}
        entry = {"language": "Python", **urls, "local": block}
        self.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}).encode())

    def image(self, name: str, behaviour: str = "good", dockerfile: str = DOCKERFILE) -> None:
        """Add a Perl implementation with a Dockerfile. From then on, all runs use Docker."""
        self.runtime = "docker"
        # Without a ``local`` block, tfb would use TechEmpower's settings.
        entry = {"language": "Perl", "json_url": "/json", "docker_cmd": behaviour, "local": {"run": ["false"]}}
        path = self.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}).encode())
        (path.parent / f"{name}.dockerfile").write_text(dockerfile, encoding="utf-8")
        (path.parent / "server.pl").write_bytes(SERVER.read_bytes())

    def containers(self, *more: str) -> list[str]:
        """Return the ids of the latest run's containers."""
        return docker("ps", "--all", "--quiet", "--filter", f"label=org.tfb.run={self.folder().name}", *more).split()

    def write(self, folder: str, data: bytes) -> Path:
        """Write a benchmark_config.json and return its path."""
        path = self.frameworks / "Python" / folder / "benchmark_config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def program(self, name: str, body: str) -> dict[str, str]:
        """Write a shell script. Return an environment in which it comes first on PATH."""
        return {"PATH": f"{script(self.root / 'bin' / name, body).parent}:{os.environ['PATH']}"}

    def tfb(self, *words: str | bytes, before: Sequence[str] = (), **options: object) -> CommandResult:
        """Run ``./tfb`` until it exits. ``before`` is a command prefix, such as a wrapper program."""
        return self.run([*before, sys.executable, "-c", PROGRAM, *words], **options)  # type: ignore[arg-type]

    def run(
        self, command: Sequence[str | bytes], env: Mapping[str, str] | None = None, seconds: float = 100
    ) -> CommandResult:
        """Run a command until it exits. Assert what must be true for every command (``judged``)."""
        out, err = self.root / ".stdout", self.root / ".stderr"
        environment = {**self.environment, **(env or {})}
        with out.open("wb") as stdout, err.open("wb") as stderr:
            child = subprocess.Popen(
                command, cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
            status, peak = _wait(child, seconds)
        texts = [path.read_bytes()[: 1 << 22].decode(errors="replace") for path in (out, err)]
        return CommandResult(status=status, stdout=texts[0], stderr=texts[1], peak_bytes=peak).judged()

    def measure(self, *words: str, **options: object) -> CommandResult:
        """Measure the implementations of this scene."""
        return self.tfb(*self.words(*words), **options)  # type: ignore[arg-type]

    def resume(self, **options: object) -> CommandResult:
        """Resume the latest run."""
        words = ("--resume", self.folder().name, "--results", str(self.results), "--no-install")
        return self.tfb(*words, **options)  # type: ignore[arg-type]

    def report(self, *words: str, **options: object) -> CommandResult:
        """Print a report of the latest run."""
        return self.tfb("report", "--results", str(self.results), *words, **options)  # type: ignore[arg-type]

    def words(self, *words: str) -> tuple[str, ...]:
        """Return the arguments of a run in this scene."""
        where = ("--frameworks", str(self.frameworks), "--rules", "tfb", "--results", str(self.results))
        return (*words, *where, "--runtime", self.runtime, "--profile", str(self.profile), "--no-install")

    def started(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a run in the background. Its output goes to ``log``."""
        with (self.root / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *self.words(*words)],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # stay in this session, because tfb stops processes that are in other sessions
            )

    def log(self) -> str:
        """Return the output of the run that ``started`` began."""
        return (self.root / "log").read_bytes().decode(errors="replace")

    def struck(
        self, words: Sequence[str], when: Callable[[], bool], strike: "Callable[[subprocess.Popen[bytes]], object]",
        within: float = 60,
    ) -> CommandResult:  # fmt: skip
        """Start a run, call ``strike`` as soon as ``when`` returns True, and wait until the run exits."""
        run = self.started(*words)
        try:
            self.until(lambda: when() or run.poll() is not None, "the moment", within)
            assert run.poll() is None, f"ended before the moment: {self.log()[-900:]}"
            strike(run)
            status = run.wait(100 * patience())
        finally:
            run.kill()
            run.wait()
        result = CommandResult(status=status, stdout=self.log(), stderr="")
        assert "Traceback" not in result.text, result.text[-900:]
        assert not (left := self.left(run.pid)), f"left: {left}"
        return result

    def at(self, stage: str) -> Callable[[], bool]:
        """Return a function that tests whether the latest run has reached this stage."""
        return lambda: self.progress().get("stage") == stage

    def progress(self) -> dict[str, object]:
        """Return the latest run's progress.json."""
        newest = max(self.results.glob("*/progress.json"), default=None)
        document: dict[str, object] = json.loads(newest.read_text(encoding="utf-8")) if newest else {}
        return document

    def until(self, when: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait up to ``seconds`` until ``when`` returns True. ``what`` describes the condition in the error message."""
        end = time.monotonic() + seconds * patience()
        while not when():
            assert time.monotonic() < end, f"after {seconds:.0f} s still not: {what}; {self.log()[-600:]}"
            time.sleep(0.02)

    def left(self, pid: int) -> list[str]:
        """Return the processes and scratch folders that are left GONE_SECONDS after tfb (``pid``) exited."""
        until = time.monotonic() + GONE_SECONDS * patience()
        while leftovers := [p.info["name"] for p in started_by(pid)] + [
            path.name for path in self.scratch.glob("tfb-*")
        ]:
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        return leftovers

    def folder(self) -> Path:
        """Return the latest run's folder."""
        return list_runs(self.results)[-1]

    def records(self) -> RunRecords:
        """Return the latest run's records."""
        return store.read_run(self.folder())

    def measured(self) -> set[str]:
        """Return the implementations that have a valid trial."""
        return {trial.implementation for trial in self.records().trials if trial.rankable}

    def why_failed(self, name: str) -> str:
        """Return the status of an implementation's build or process, and the reason for it."""
        records = self.records()
        build = next(each.build for each in records.info.implementations if each.name == name)
        if build.status != "ok":
            return f"{build.status}: {build.reason}"
        return next(f"{each.status}: {each.reason}" for each in records.processes if each.implementation == name)

    def failed(self, name: str, *words: str) -> None:
        """Assert that an implementation has no valid trial, and that the reason contains all ``words``."""
        reason = self.why_failed(name)
        assert [word for word in words if word not in reason] == [], reason
        assert name not in self.measured()
        assert any(name in problem for problem in self.records().info.problems)


def script(path: Path, body: str) -> Path:
    """Write an executable shell script. Create its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def new_scene() -> Iterator[Scene]:
    """Create a scene in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tfb-fault-", ignore_cleanup_errors=True) as root:
        Path(root).chmod(0o755)
        yield Scene(Path(root))


def docker(*words: str) -> str:
    """Run ``docker`` and return its output."""
    completed = subprocess.run(["docker", *words], check=False, capture_output=True, text=True, timeout=120)
    return completed.stdout.strip()


def _wait(child: "subprocess.Popen[bytes]", seconds: float) -> tuple[int, int]:
    """Wait until a command exits. Return its exit status and peak memory in bytes.

    After ``seconds``, stop the command and raise AssertionError.
    """
    until, peak = time.monotonic() + seconds * patience(), 0
    while child.poll() is None:
        peak = max(peak, _peak_bytes(child.pid))  # wait4(2) would include child processes
        if time.monotonic() > until:
            child.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                child.wait(15)
            child.kill()
            child.wait()
            raise AssertionError(f"did not end within {seconds:.0f} s")
        time.sleep(0.01)
    return child.returncode, peak


def _peak_bytes(pid: int) -> int:
    """Return the peak memory of a process in bytes, or 0 if the process has exited."""
    peak = None
    with suppress(OSError):
        peak = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(peak[1]) * 1024 if peak else 0


def started_by(harness: int) -> list[psutil.Process]:
    """Return the live processes that a tfb process started, including daemons. ``info`` contains their names."""
    processes = []
    for candidate in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            mark = candidate.environ().get(MARK_VARIABLE, "")
            if mark.startswith(f"{harness}.") and candidate.status() != psutil.STATUS_ZOMBIE:
                processes.append(candidate)
    return processes
