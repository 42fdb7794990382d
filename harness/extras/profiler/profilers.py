"""The sampling profilers of this machine: which one fits a process tree, and the stacks that it saw."""

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, LoadError
from harness.host import process

HERTZ = 499  # samples a second of each CPU; no divisor of timers that tick in round milliseconds
SLACK_SECONDS = 60.0
ATTEMPTS = 5
NONE = (
    "no profiler is here: perf (apt-get install linux-perf, or linux-tools of your kernel) sees every process; for the "
    "JVM also async-profiler (asprof on PATH). perf needs root or kernel.perf_event_paranoid of 1 or less"
)
# Variables by which runtimes say where their compiled code is; without them its frames have no names.
NAMED_FRAMES: Mapping[str, str] = {
    "JAVA_TOOL_OPTIONS": "-XX:+PreserveFramePointer",
    "NODE_OPTIONS": "--perf-basic-prof --interpreted-frames-native-stack",
    "PYTHONPERFSUPPORT": "1",
    "DOTNET_PerfMapEnabled": "1",
}

Stacks = dict[tuple[str, ...], int]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Stacks from the outermost frame in -> samples, and what took them."""

    tool: str
    stacks: Stacks


def chosen() -> str:
    """``perf``, where it may look at other processes; raises EnvironmentLacksError with what would mend it."""
    agent = shutil.which("asprof")
    if shutil.which("perf") is None and not agent:
        raise EnvironmentLacksError(NONE)
    if shutil.which("perf") is not None:
        tried = process.run(["perf", "record", "-e", "cpu-clock", "-o", "/dev/null", "true"], seconds=20)
        if tried.status == 0:
            return "perf"
    if agent:
        return "asprof"
    raise EnvironmentLacksError(f"perf may not look at processes here: {tried.stdout.strip()[-200:]}\n{NONE}")


def record(pids: Sequence[int], seconds: float, folder: Path) -> Profile:
    """Sample the processes for that long; raises EnvironmentLacksError and LoadError."""
    virtual_machines = [pid for pid in pids if _name(pid) == "java"]
    if virtual_machines and shutil.which("asprof"):
        return _async_profiler(virtual_machines[0], seconds)
    if chosen() != "perf":
        raise EnvironmentLacksError(f"async-profiler sees the JVM only, and this server is none. {NONE}")
    data = folder / "perf.data"
    done = _perf(pids, seconds, data)
    if done.status != 0:
        raise LoadError(f"perf record ended ({process.describe_status(done.status)}): {done.stdout.strip()[-300:]}")
    for pid in virtual_machines:
        if program := shutil.which("jcmd"):
            process.run([program, str(pid), "Compiler.perfmap"], seconds=SLACK_SECONDS)  # names of compiled methods
    text = process.run(
        ["perf", "script", "-i", str(data), "-F", "comm,pid,tid,time,ip,sym,dso"], seconds=SLACK_SECONDS * 3
    )
    data.unlink(missing_ok=True)
    if text.status != 0:
        raise LoadError(f"perf script failed: {text.stdout.strip()[-300:]}")
    return Profile(tool=f"perf, cpu-clock at {HERTZ} Hz", stacks=parse_perf(text.stdout))


def _perf(pids: Sequence[int], seconds: float, data: Path) -> process.Completed:
    """Have perf follow the processes; tried again without those that have ended meanwhile."""
    for _ in range(ATTEMPTS):
        alive = [pid for pid in pids if _name(pid)]
        command = ["perf", "record", "-e", "cpu-clock", "-F", str(HERTZ), "-g", "-o", str(data)]
        command += ["-p", ",".join(map(str, alive)), "--", "sleep", f"{seconds:.0f}"]
        done = process.run(command, seconds=seconds + SLACK_SECONDS)
        if "No such process" not in done.stdout:
            break
    return done


def parse_perf(text: str) -> Stacks:
    """The stacks of ``perf script``: a head line, frames from the innermost out, an empty line."""
    found: Counter[tuple[str, ...]] = Counter()
    name = ""
    frames: list[str] = []
    for line in (*text.splitlines(), ""):
        if not line.strip():
            if name:
                found[name, *reversed(frames)] += 1
            name, frames = "", []
        elif not name and not line.startswith("\t"):
            name = re.split(r"\s+\d+/\d+\s", line.strip(), maxsplit=1)[0] or "?"
        elif match := re.match(r"\s*[0-9a-f]+\s+(.+?)(?:\+0x[0-9a-f]+)?\s+\((.*)\)\s*$", line):
            symbol, library = match[1], match[2]
            if symbol == "[unknown]":
                symbol = f"[{Path(library).name}]"
            kernel = library.startswith(("[kernel", "[guest.kernel"))
            frames.append(f"{symbol} [k]" if kernel else symbol)
    return dict(found)


def parse_folded(text: str) -> Stacks:
    """The stacks of a folded file: ``outer;inner count``."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        if frames and count.isdigit():
            found[tuple(re.sub(r"_\[k\]$", " [k]", frame) for frame in frames.split(";"))] += int(count)
    return dict(found)


def _async_profiler(pid: int, seconds: float) -> Profile:
    """It prints the stacks: the virtual machine's account need not be able to write to a folder of ours."""
    command = ["asprof", "-d", f"{seconds:.0f}", "-e", "cpu", "-o", "collapsed", str(pid)]
    done = process.run(command, seconds=seconds + SLACK_SECONDS)
    if done.status != 0:
        raise LoadError(f"async-profiler failed: {done.stdout.strip()[-300:]}")
    return Profile(tool="async-profiler, cpu", stacks=parse_folded(done.stdout))


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
