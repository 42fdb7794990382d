"""Where a fault is produced: a folder of its own, and the real command line in a process of its own."""

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

MOST_MEMORY = 300 * 2**20  # bytes that a command may take
STATUSES = (0, 1, 2, 3, 4, 130)
READY_SECONDS = 6  # instead of a minute: what a server has until its first answer
MOST_PATIENCE = 5.0
GONE_SECONDS = 30.0  # after a kill, until everything is gone
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
# A shell starts what it puts in the background with SIGINT and SIGQUIT ignored, nohup with SIGHUP, and the harness
# keeps it so; as a terminal starts it, all have their defaults.
HEARS_INTERRUPTS = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); signal.signal(signal.SIGQUIT, signal.SIG_DFL)\n"
)
SERVER = REPOSITORY / "harness" / "tests" / "e2e" / "fake_server.pl"
DOCKERFILE = 'FROM debian:trixie-slim\nCOPY server.pl /\nUSER nobody\nENTRYPOINT ["perl", "/server.pl"]\n'
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def patience() -> float:
    """How much longer than alone on the machine everything may take: as many programs as want a CPU."""
    return min(MOST_PATIENCE, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


# The one thing that is not as users have it: the patience with a server that never answers.
PROGRAM = (
    f"{HEARS_INTERRUPTS}"
    "import runpy, harness.runtime.readiness as readiness\n"
    f"readiness.READY_SECONDS = {READY_SECONDS * patience()}\n"
    "runpy.run_module('harness', run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """How a command ended."""

    status: int  # negative: the signal
    stdout: str
    stderr: str
    peak_bytes: int = 0

    @property
    def text(self) -> str:
        """All that it printed."""
        return self.stdout + self.stderr

    def says(self, *words: str) -> "CommandResult":
        """Every word is in what it printed."""
        unwrapped = self.text.replace("\n", "")  # a console of 80 columns breaks lines anywhere
        missing = [word for word in words if word not in self.text and word not in unwrapped]
        assert not missing, f"does not say {missing}: {self.text.strip()[-600:]}"
        return self

    def ends(self, *statuses: int) -> "CommandResult":
        """Its exit status is one of these."""
        assert self.status in statuses, f"exit status {self.status}: {self.text.strip()[-600:]}"
        return self

    def judged(self) -> "CommandResult":
        """What no command may do, whatever it is given."""
        assert "Traceback" not in self.text, self.text.strip()[-900:]
        assert "internal error in tfb" not in self.text, self.text.strip()[-600:]
        assert self.status in STATUSES, f"exit status {self.status}: {self.text.strip()[-300:]}"
        assert _CONTROL.search(self.text) is None, f"control characters on the terminal: {self.text[-300:]!r}"
        assert self.peak_bytes < MOST_MEMORY, f"{self.peak_bytes / 2**20:.0f} MiB of memory"
        return self


@dataclass
class Scene:
    """A folder with implementations, results and a profile; ``root`` is open to PostgreSQL's account."""

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

    # ---- implementations ---------------------------------------------------------------------------------------------

    def add(self, name: str, behaviour: str = "good", **local: object) -> None:
        """An implementation that behaves so; ``local`` changes its local block."""
        run = [sys.executable, "-m", "harness.tests.doubles.fake", "--behaviour", behaviour]
        block = {"run": run, "env": {"PYTHONPATH": str(REPOSITORY)}, **local}
        urls = {"json_url": "/json", "plaintext_url": "/plaintext"}
        entry = {"language": "Python", **urls, "local": block}
        self.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}).encode())

    def image(self, name: str, behaviour: str = "good", dockerfile: str = DOCKERFILE) -> None:
        """An implementation with an image of its own, a few lines of Perl; the runtime is Docker from now on."""
        self.runtime = "docker"
        # Its local block says that it is written for this harness: without one it would run as TechEmpower runs it.
        entry = {"language": "Perl", "json_url": "/json", "docker_cmd": behaviour, "local": {"run": ["false"]}}
        path = self.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}).encode())
        (path.parent / f"{name}.dockerfile").write_text(dockerfile, encoding="utf-8")
        (path.parent / "server.pl").write_bytes(SERVER.read_bytes())

    def containers(self, *more: str) -> list[str]:
        """Ids of containers of the newest run here."""
        return docker("ps", "--all", "--quiet", "--filter", f"label=org.tfb.run={self.folder().name}", *more).split()

    def write(self, folder: str, data: bytes) -> Path:
        """A benchmark_config.json as it is; its path."""
        path = self.frameworks / "Python" / folder / "benchmark_config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def program(self, name: str, body: str) -> dict[str, str]:
        """A shell script first on PATH: the environment in which it is."""
        return {"PATH": f"{script(self.root / 'bin' / name, body).parent}:{os.environ['PATH']}"}

    # ---- commands ----------------------------------------------------------------------------------------------------

    def tfb(self, *words: str | bytes, before: Sequence[str] = (), **options: object) -> CommandResult:
        """Run a command to its end; ``before`` are words of a program that starts it."""
        return self.run([*before, sys.executable, "-c", PROGRAM, *words], **options)  # type: ignore[arg-type]

    def run(
        self, command: Sequence[str | bytes], env: Mapping[str, str] | None = None, seconds: float = 100
    ) -> CommandResult:
        """Any command to its end, held to what no command may do: hang, trace back, print control characters."""
        out, err = self.root / ".stdout", self.root / ".stderr"
        whole = {**self.environment, **(env or {})}
        with out.open("wb") as stdout, err.open("wb") as stderr:
            child = subprocess.Popen(
                command, cwd=self.root, env=whole, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
            status, peak = _wait(child, seconds)
        texts = [path.read_bytes()[: 1 << 22].decode(errors="replace") for path in (out, err)]
        return CommandResult(status=status, stdout=texts[0], stderr=texts[1], peak_bytes=peak).judged()

    def measure(self, *words: str, **options: object) -> CommandResult:
        """A whole run over this folder's implementations."""
        return self.tfb(*self.words(*words), **options)  # type: ignore[arg-type]

    def resume(self, **options: object) -> CommandResult:
        """Go on with the newest run here."""
        words = ("--resume", self.folder().name, "--results", str(self.results), "--no-install")
        return self.tfb(*words, **options)  # type: ignore[arg-type]

    def report(self, *words: str, **options: object) -> CommandResult:
        """Of the newest run here."""
        return self.tfb("report", "--results", str(self.results), *words, **options)  # type: ignore[arg-type]

    def words(self, *words: str) -> tuple[str, ...]:
        """The flags of a run here."""
        where = ("--frameworks", str(self.frameworks), "--rules", "tfb", "--results", str(self.results))
        return (*words, *where, "--runtime", self.runtime, "--profile", str(self.profile), "--no-install")

    def started(self, *words: str) -> "subprocess.Popen[bytes]":
        """A run that goes on beside this process, its output in ``log``."""
        with (self.root / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *self.words(*words)],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # of our session: the harness takes what is in another for a daemon, and ends it
            )

    def log(self) -> str:
        """What ``started`` has printed."""
        return (self.root / "log").read_bytes().decode(errors="replace")

    def struck(
        self, words: Sequence[str], when: Callable[[], bool], strike: "Callable[[subprocess.Popen[bytes]], object]",
        within: float = 60,
    ) -> CommandResult:  # fmt: skip
        """A run in which something happens at a moment, so many seconds after its start at most."""
        run = self.started(*words)
        try:
            self.until(lambda: when() or run.poll() is not None, "the moment", within)
            assert run.poll() is None, f"ended before the moment: {self.log()[-900:]}"
            strike(run)
            status = run.wait(100 * patience())
        finally:
            run.kill()
            run.wait()
        answer = CommandResult(status=status, stdout=self.log(), stderr="")
        assert "Traceback" not in answer.text, answer.text[-900:]
        assert not (left := self.left(run.pid)), f"left: {left}"
        return answer

    # ---- what a run does and leaves ----------------------------------------------------------------------------------

    def at(self, stage: str) -> Callable[[], bool]:
        """Whether the newest run here is at this stage."""
        return lambda: self.progress().get("stage") == stage

    def progress(self) -> dict[str, object]:
        """What the newest run here says that it is doing."""
        newest = max(self.results.glob("*/progress.json"), default=None)
        found: dict[str, object] = json.loads(newest.read_text(encoding="utf-8")) if newest else {}
        return found

    def until(self, when: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait for it."""
        end = time.monotonic() + seconds * patience()
        while not when():
            assert time.monotonic() < end, f"after {seconds:.0f} s still not: {what}; {self.log()[-600:]}"
            time.sleep(0.02)

    def left(self, pid: int) -> list[str]:
        """What a harness has left some seconds after its end: processes and scratch folders."""
        until = time.monotonic() + GONE_SECONDS * patience()
        while left := [p.info["name"] for p in started_by(pid)] + [path.name for path in self.scratch.glob("tfb-*")]:
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        return left

    def folder(self) -> Path:
        """The newest run."""
        return list_runs(self.results)[-1]

    def records(self) -> RunRecords:
        """What it holds."""
        return store.read_run(self.folder())

    def measured(self) -> set[str]:
        """Implementations of which there is a valid trial."""
        return {trial.implementation for trial in self.records().trials if trial.rankable}

    def why_failed(self, name: str) -> str:
        """Why an implementation's build or process failed."""
        records = self.records()
        build = next(each.build for each in records.info.implementations if each.name == name)
        if build.status != "ok":
            return f"{build.status}: {build.reason}"
        return next(f"{each.status}: {each.reason}" for each in records.processes if each.implementation == name)

    def failed(self, name: str, *words: str) -> None:
        """An implementation has failed, which the run tells with these words, and has no valid trial."""
        reason = self.why_failed(name)
        assert [word for word in words if word not in reason] == [], reason
        assert name not in self.measured()
        assert any(name in problem for problem in self.records().info.problems)


def script(path: Path, body: str) -> Path:
    """A program of the shell's, in a folder that it makes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def new_scene() -> Iterator[Scene]:
    """One of its own below the system's folder for temporary files, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="tfb-fault-", ignore_cleanup_errors=True) as root:
        Path(root).chmod(0o755)
        yield Scene(Path(root))


def docker(*words: str) -> str:
    """What a docker command prints."""
    done = subprocess.run(["docker", *words], check=False, capture_output=True, text=True, timeout=120)
    return done.stdout.strip()


def _wait(child: "subprocess.Popen[bytes]", seconds: float) -> tuple[int, int]:
    """Exit status and most resident bytes; a command that does not end in the time is killed."""
    until, peak = time.monotonic() + seconds * patience(), 0
    while child.poll() is None:
        peak = max(peak, _peak_bytes(child.pid))  # of it alone: the kernel's sum has its children in it
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
    """Most resident bytes of a living process so far; 0 for one that is gone."""
    found = None
    with suppress(OSError):
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def started_by(harness: int) -> list[psutil.Process]:
    """Living processes that a harness of this pid has started, daemons among them; ``info`` has their names."""
    left = []
    for candidate in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            mark = candidate.environ().get(MARK_VARIABLE, "")
            if mark.startswith(f"{harness}.") and candidate.status() != psutil.STATUS_ZOMBIE:
                left.append(candidate)
    return left
