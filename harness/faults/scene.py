"""Where a fault is produced: a folder of its own, and the real command line in a process of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from harness.faults.promises import BrokenPromise, hold
from harness.host.process import MARK
from harness.paths import REPOSITORY
from harness.records import store
from harness.records.models import RunRecords

MOST_MEMORY = 300 * 2**20  # bytes that a command may take
STATUSES = (0, 1, 2, 3, 130)
READY_SECONDS = 6  # instead of a minute: what a server has until its first answer
MOST_PATIENCE = 5.0
PROFILE = """
description = "Faults: as short as wrk allows"
duration_seconds = 1.0
[levels]
concurrency = [8]
pipeline_concurrency = [8]
query = [1]
cached_query = [1]
query_concurrency = 8
[warm_up]
primer_seconds = 0.0
minimum_seconds = 0.0
cap_seconds = 1.0
jit_cap_seconds = 1.0
[gates]
repeats = 0
[replication]
minimum = 1
maximum = 1
"""
# A shell starts what it puts in the background with SIGINT and SIGQUIT ignored, nohup with SIGHUP, and the harness
# keeps it so; as a terminal starts it, all have their defaults.
HEARS_INTERRUPTS = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); signal.signal(signal.SIGQUIT, signal.SIG_DFL)\n"
)


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
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a command ended."""

    status: int  # negative: the signal
    stdout: str
    stderr: str
    seconds: float
    peak_bytes: int

    @property
    def text(self) -> str:
        """All that it printed."""
        return self.stdout + self.stderr

    def says(self, *words: str) -> "Answer":
        """Every word is in what it printed."""
        unwrapped = self.text.replace("\n", "")  # a console of 80 columns breaks lines anywhere
        for word in words:
            hold(word in self.text or word in unwrapped, else_=f"does not say {word!r}: {self.text.strip()[-400:]!r}")
        return self

    def ends(self, *statuses: int) -> "Answer":
        """Its exit status is one of these."""
        hold(self.status in statuses, else_=f"exit status {self.status}: {self.text.strip()[-400:]!r}")
        return self


@dataclass
class Scene:
    """A folder with implementations, results and a profile; everything in it is removed at the end."""

    root: Path
    runtime: str = "local"
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.frameworks, self.results = self.root / "frameworks", self.root / "results"
        self.scratch, self.profile = self.root / "scratch", self.root / "tiny.toml"
        # What makes the tree one of this project's own, which is read strictly.
        ours = self.root / "harness" / "request"
        for folder in (self.frameworks, self.results, self.scratch, ours):
            folder.mkdir(parents=True, exist_ok=True)
        self.scratch.chmod(0o1777)
        self.profile.write_text(PROFILE, encoding="utf-8")
        self.environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(self.scratch)}

    # ---- implementations ---------------------------------------------------------------------------------------------

    def entry(self, behaviour: str = "good", **changes: object) -> dict[str, object]:
        """The test of an implementation that behaves so; ``changes`` win."""
        run = [sys.executable, "-m", "harness.tests.doubles.fake", "--behaviour", behaviour]
        local = {"run": run, "env": {"PYTHONPATH": str(REPOSITORY)}}
        urls = {"json_url": "/json", "plaintext_url": "/plaintext"}
        return {"language": "Python", **urls, "local": local, **changes}

    def add(self, name: str, behaviour: str = "good", **local: object) -> None:
        """An implementation; ``local`` changes its local block."""
        entry = self.entry(behaviour)
        block = entry["local"]
        assert isinstance(block, dict)  # noqa: S101 - made above
        document = {"framework": name, "tests": [{"default": {**entry, "local": {**block, **local}}}]}
        self.write(name, json.dumps(document).encode())

    def write(self, folder: str, data: bytes) -> Path:
        """A benchmark_config.json as it is; its path."""
        path = self.frameworks / "Python" / folder / "benchmark_config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    # ---- commands ----------------------------------------------------------------------------------------------------

    def tfb(
        self,
        *words: str | bytes,
        env: Mapping[str, str] | None = None,
        seconds: float = 60,
        before: Sequence[str] = (),
        stdin: bytes = b"",
        judged: bool = True,
    ) -> Answer:
        """Run a command to its end; ``before`` are words of a program that starts it.

        Raises BrokenPromise for what no command may do: hang, print a traceback or control characters, take memory.
        """
        return self.run([*before, sys.executable, "-c", PROGRAM, *words], env, seconds, stdin, judged=judged)

    def run(
        self,
        command: Sequence[str | bytes],
        env: Mapping[str, str] | None = None,
        seconds: float = 60,
        stdin: bytes = b"",
        *,
        judged: bool = True,
    ) -> Answer:
        """As ``tfb``, for any command."""
        began = time.monotonic()
        out, err = self.root / ".stdout", self.root / ".stderr"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            child = subprocess.Popen(
                command,
                cwd=self.root,
                env={**self.environment, **(env or {})},
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
            )
            assert child.stdin is not None  # noqa: S101 - asked for above
            child.stdin.write(stdin)
            child.stdin.close()
            status, usage = _wait(child, seconds)
        answer = Answer(
            status=status,
            stdout=out.read_bytes()[: 1 << 22].decode(errors="replace"),
            stderr=err.read_bytes()[: 1 << 22].decode(errors="replace"),
            seconds=time.monotonic() - began,
            peak_bytes=usage,
        )
        if judged:
            judge(answer)
        return answer

    def measure(self, *words: str, seconds: float = 150, **options: object) -> Answer:
        """A whole run over this folder's implementations."""
        return self.tfb(*self.words(*words), seconds=seconds, **options)  # type: ignore[arg-type]

    def words(self, *words: str) -> tuple[str, ...]:
        """The flags of a run here."""
        where = ("--frameworks", str(self.frameworks), "--results", str(self.results), "--runtime", self.runtime)
        return (*words, *where, "--profile", str(self.profile), "--no-install")

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

    # ---- what a run does and leaves ----------------------------------------------------------------------------------

    def stage(self) -> str:
        """Where the newest run here says that it is."""
        for path in sorted(self.results.glob("*/progress.json"), reverse=True):
            try:
                return str(json.loads(path.read_text(encoding="utf-8"))["stage"])
            except (ValueError, KeyError, OSError):
                break
        return ""

    def until(self, when: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait for it; raises BrokenPromise when it does not come."""
        end = time.monotonic() + seconds * patience()
        while not when():
            if time.monotonic() > end:
                raise BrokenPromise(f"after {seconds:.0f} s still not: {what}; {self.log()[-400:]!r}")
            time.sleep(0.02)

    def folder(self) -> Path:
        """The newest run."""
        return store.runs(self.results)[-1]

    def records(self) -> RunRecords:
        """What it holds."""
        return store.read(self.folder())


def _wait(child: "subprocess.Popen[bytes]", seconds: float) -> tuple[int, int]:
    """Exit status and most resident bytes; raises BrokenPromise, and kills it, after the time."""
    until, peak = time.monotonic() + seconds * patience(), 0
    while True:
        peak = max(peak, _peak_bytes(child.pid))  # of it alone: the kernel's sum has its children in it
        if child.poll() is not None:
            return child.returncode, peak
        if time.monotonic() > until:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            raise BrokenPromise(f"did not end within {seconds:.0f} s")
        time.sleep(0.01)


def _peak_bytes(pid: int) -> int:
    """Most resident bytes of a living process so far; 0 for one that is gone."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def judge(answer: Answer) -> None:
    """What no command may do, whatever it is given."""
    hold("Traceback" not in answer.text, else_=f"a traceback: {answer.text.strip()[-600:]!r}")
    hold("a mistake of the harness" not in answer.text, else_=f"not foreseen: {answer.text.strip()[-400:]!r}")
    hold(answer.status in STATUSES, else_=f"exit status {answer.status}: {answer.text.strip()[-300:]!r}")
    found = _CONTROL.search(answer.text)
    hold(found is None, else_=f"control characters on the terminal: {found!r}")
    hold(answer.peak_bytes < MOST_MEMORY, else_=f"{answer.peak_bytes / 2**20:.0f} MiB of memory")


def of(harness: int) -> list[psutil.Process]:
    """Living processes that a harness of this pid has started, daemons among them."""
    left = []
    for candidate in psutil.process_iter():
        try:
            mark = candidate.environ().get(MARK, "")
            if mark.startswith(f"{harness}.") and candidate.status() != psutil.STATUS_ZOMBIE:
                left.append(candidate)
        except psutil.Error:
            continue
    return left


def scene(runtime: str = "local") -> Scene:
    """A new one below the system's folder for temporary files, open to PostgreSQL's account."""
    root = Path(tempfile.mkdtemp(prefix="tfb-fault-"))
    root.chmod(0o755)
    return Scene(root, runtime)


def strike(place: Scene) -> None:
    """Remove it."""
    shutil.rmtree(place.root, ignore_errors=True)
