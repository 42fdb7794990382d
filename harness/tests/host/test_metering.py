"""Tests for meters of process trees and control groups (v1 and v2)."""

import ctypes
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import ServerDiedError
from harness.host import metering
from harness.host.metering import TICKS, CgroupMeter, ProcessTreeMeter, Reading, idle_seconds
from harness.host.process import Child, running

# A program that uses the given number of CPU seconds.
BURN = "import time; t = time.process_time()\nwhile time.process_time() - t < {}: pass\n"


# Prints a line and waits until stdin is closed.
SAYS = "\nprint(1, flush=True); import sys; sys.stdin.read()"


@contextmanager
def program(code: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        yield started
        started.kill()


def line(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def goes_on(process: "subprocess.Popen[bytes]") -> None:
    """Let the program go on until it prints its next line."""
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    line(process)


def reading_of(code: str) -> tuple[int, Reading]:
    """Run a program until it prints a line. Return its PID and the meter's reading."""
    with program(code) as process:
        line(process)
        return process.pid, ProcessTreeMeter(process.pid).read()


def test_cpu_time_of_child_is_counted() -> None:
    pid, reading = reading_of(BURN.format(0.4) + SAYS)
    assert 0.3999 < reading.cpu_seconds < 2
    assert reading.run_seconds == pytest.approx(reading.cpu_seconds, abs=0.1)
    assert reading.wait_seconds is not None
    assert reading.pids == (pid,)


# A program that burns CPU time in a named thread. It prints a line while the thread exists, and one after its exit.
NAMED = """
import ctypes, threading, time
def compile():
    ctypes.CDLL(None).prctl(15, b"{}")
    until = time.thread_time() + {}
    while time.thread_time() < until: pass
    print(1, flush=True); sys.stdin.readline()
import sys
thread = threading.Thread(target=compile); thread.start(); thread.join(); print(1, flush=True); sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["C2 CompilerThread0", "C1 CompilerThread0", "TruffleCompilerThread-1"])
def test_time_of_compiler_threads_is_read(name: str) -> None:
    with program(NAMED.format(name, 0.2)) as process:
        line(process)
        meter = ProcessTreeMeter(process.pid)
        first = meter.read()
        goes_on(process)
        last = meter.read()
    assert first.compiler_seconds == pytest.approx(0.2, abs=0.1)
    assert first.compiler_seconds < (first.run_seconds or 0)
    assert (last.compiler_seconds or 0.0) >= first.compiler_seconds  # includes exited threads


def test_without_compiler_threads_their_time_is_unknown() -> None:
    with program(NAMED.format("worker", 0.05)) as process:
        line(process)
        assert ProcessTreeMeter(process.pid).read().compiler_seconds is None


def test_idle_time_covers_the_allowed_cpus(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    allowed = os.sched_getaffinity(0)
    rows = "".join(f"cpu{number} 1 1 1 {3 * TICKS} {TICKS} 9 9 9\n" for number in range(max(allowed) + 2))
    stat.write_text(f"cpu  9 9 9 9 9 9 9 9\n{rows}intr 5 5\n", encoding="ascii")
    assert idle_seconds(os.getpid(), stat) == 4.0 * len(allowed)
    assert idle_seconds(os.getpid(), tmp_path / "missing") is None
    assert idle_seconds(2**22 + 1, stat) is None  # no such process
    stat.write_text("cpu0 text\n", encoding="ascii")
    assert idle_seconds(os.getpid(), stat) is None


def test_memory_includes_the_whole_tree() -> None:
    _, reading = reading_of("x = bytearray(80_000_000)" + SAYS)
    assert 80e6 < (reading.rss or 0) < 200e6


def test_shared_pages_are_counted_once() -> None:
    code = (
        "import mmap, os\nshared = mmap.mmap(-1, 80_000_000)\n"
        "for at in range(0, 80_000_000, 4096): shared[at] = 1\n"
        "if os.fork() == 0:\n  sum(shared[::4096]); print(1, flush=True)\nimport sys; sys.stdin.read()"
    )
    assert 80e6 < (reading_of(code)[1].rss or 0) < 140e6


def test_threads_of_all_processes_are_counted() -> None:
    code = (
        "import subprocess, sys, threading\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SAYS!r}], stdin=-1, stdout=-1)\n"
        "child.stdout.readline()\n"
        "threads = [threading.Thread(target=sys.stdin.read, daemon=True) for _ in range(2)]\n"
        "[thread.start() for thread in threads]\n"
        "print(1, flush=True); child.wait()"
    )
    assert reading_of(code)[1].threads == 4  # the main thread, two other threads, and the child's thread


def test_cpu_time_of_exited_child_remains_counted() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); sys.stdin.readline()\n"
        "child.kill(); child.wait(); print('ended', flush=True); sys.stdin.read()"
    )
    with program(code, BURN.format(0.4) + SAYS) as parent:
        child = int(line(parent))
        meter = ProcessTreeMeter(parent.pid)
        before = meter.read()
        goes_on(parent)
        after = meter.read()
    assert before.pids == tuple(sorted((parent.pid, child)))
    assert after.pids == (parent.pid,)
    assert before.cpu_seconds > 0.3999
    assert after.cpu_seconds >= before.cpu_seconds


def test_children_between_two_readings_are_counted() -> None:
    code = (
        "import subprocess, sys\nprint(1, flush=True); sys.stdin.readline()\n"
        "for _ in range(5): subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
        "print('ended', flush=True); sys.stdin.read()"
    )
    with program(code, BURN.format(0.1)) as parent:
        line(parent)
        meter = ProcessTreeMeter(parent.pid)
        before = meter.read()
        goes_on(parent)
        after = meter.read()
    assert 0.4 < after.cpu_seconds - before.cpu_seconds < 3


def test_exited_root_raises_an_error() -> None:
    with running(Child(["true"])) as child:
        child.wait(10)
        meter = ProcessTreeMeter(child.pid)
        with pytest.raises(ServerDiedError, match=f"process {child.pid} has exited"):
            meter.read()


THREADS_THAT_END = """
import sys, threading, time
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
first = threading.Thread(target=work, args=(0.5,)); first.start(); first.join(0.4)
print("begun", flush=True); sys.stdin.readline()
first.join(); work(0.2)
print("worked", flush=True); sys.stdin.readline()
"""


def test_times_of_exited_threads_remain_counted() -> None:
    """Compiler threads of a JIT runtime may exit, so a sum over live threads could decrease."""
    with program(THREADS_THAT_END) as process:
        meter = ProcessTreeMeter(process.pid)
        line(process)
        before = meter.read()
        goes_on(process)
        after = meter.read()
    assert (after.run_seconds or 0) - (before.run_seconds or 0) >= 0.15


CONTAINER = "docker/4f2a"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Kernel:
    """A fake /proc and /sys/fs/cgroup, in which this process is the first process of a container."""

    def __init__(self, folder: Path, membership: str, cgroup: Mapping[str, str]) -> None:
        self.proc, self.root = folder / "proc", folder / "cgroup"
        self.pid = os.getpid()
        write(self.proc, {f"{self.pid}/cgroup": membership})
        write(self.root, cgroup)

    def meter(self) -> CgroupMeter:
        return CgroupMeter(self.pid, self.proc, self.root)


def v2(folder: Path) -> Kernel:
    return Kernel(
        folder,
        f"0::/system.slice/{CONTAINER}\n",
        {
            f"system.slice/{CONTAINER}/cgroup.procs": f"{os.getpid()}\n",
            f"system.slice/{CONTAINER}/cpu.stat": "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"
            "nr_periods 10\nnr_throttled 2\nthrottled_usec 250000\n",
            f"system.slice/{CONTAINER}/memory.stat": "anon 1000000\nfile 9000000\nkernel 1\nfile_mapped 200000\n",
        },
    )


def v1(folder: Path) -> Kernel:
    return Kernel(
        folder,
        f"5:memory:/{CONTAINER}\n3:cpu,cpuacct:/{CONTAINER}\n1:name=systemd:/{CONTAINER}\n0::/{CONTAINER}\n",
        {
            f"cpuacct/{CONTAINER}/cgroup.procs": f"{os.getpid()}\n",
            f"cpuacct/{CONTAINER}/cpuacct.usage": "1500000000\n",
            f"cpu/{CONTAINER}/cpu.stat": "nr_periods 10\nnr_throttled 2\nthrottled_time 250000000\n",
            f"memory/{CONTAINER}/memory.stat": "cache 9000000\nrss 1\nmapped_file 1\n"
            "total_cache 9000000\ntotal_rss 1000000\ntotal_mapped_file 200000\n",
        },
    )


@pytest.fixture(params=[v2, v1])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    made: Kernel = request.param(tmp_path)
    return made


def test_control_group_readings_have_si_units(kernel: Kernel) -> None:
    run, wait, _ = Path("/proc/self/schedstat").read_text().split()
    reading = kernel.meter().read()
    assert reading.cpu_seconds == 1.5
    assert reading.throttled_seconds == 0.25
    assert reading.rss == 1_200_000  # excludes the page cache
    assert reading.pids == (kernel.pid,)
    assert 0 <= reading.run_seconds - int(run) / 1e9 < 60  # sum over all threads
    assert reading.wait_seconds >= int(wait) / 1e9


def test_compiler_threads_of_a_container_are_found(kernel: Kernel) -> None:
    burned, read = threading.Event(), threading.Event()

    def compile_code() -> None:
        ctypes.CDLL(None).prctl(15, b"C2 CompilerThread0")
        while time.thread_time() < 0.05:
            pass
        burned.set()
        read.wait(60)

    thread = threading.Thread(target=compile_code)
    thread.start()
    burned.wait(60)
    seconds = kernel.meter().read().compiler_seconds
    read.set()
    thread.join()
    assert 0.05 <= (seconds or 0.0) < 0.5


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_text(""), "all processes in the container of process"),
        (lambda path: path.unlink(), "the container of process .* has exited"),
    ],
    ids=["without processes", "gone"],
)
def test_empty_or_removed_group_means_dead_server(
    spoil: Callable[[Path], object], message: str, kernel: Kernel
) -> None:
    meter = kernel.meter()
    for path in kernel.root.rglob("cgroup.procs"):
        spoil(path)
    with pytest.raises(ServerDiedError, match=message):
        meter.read()
    with pytest.raises(ServerDiedError, match="process 4000000 has exited"):
        CgroupMeter(4_000_000, kernel.proc, kernel.root)


def test_memory_is_unknown_without_memory_controller(kernel: Kernel) -> None:
    for path in kernel.root.rglob("memory.stat"):
        path.unlink()
    assert kernel.meter().read().rss is None


def test_v2_counts_cpu_time_without_cpu_controller(tmp_path: Path) -> None:
    kernel = v2(tmp_path)
    write(kernel.root, {f"system.slice/{CONTAINER}/cpu.stat": "usage_usec 40000\nuser_usec 30000\nsystem_usec 10000\n"})
    reading = kernel.meter().read()
    assert (reading.cpu_seconds, reading.throttled_seconds) == (0.04, 0.0)


@pytest.mark.parametrize(
    "membership",
    [
        "3:cpu,cpuacct:/{group}\n0::/{group}\n",
        "2:cpuacct:/{group}\n1:name=systemd:/{group}\n",
        "3:cpu,cpuacct:/{group}\n",
        "7:memory:/\n3:cpu,cpuacct:/{group}\n",
    ],
    ids=["no memory", "no memory and cpu", "no v2", "memory of the root group"],
)
def test_v1_controllers_are_optional(membership: str, tmp_path: Path) -> None:
    kernel = v1(tmp_path)
    write(kernel.proc, {f"{kernel.pid}/cgroup": membership.format(group=CONTAINER)})
    reading = kernel.meter().read()
    assert (reading.cpu_seconds, reading.rss) == (1.5, None)
    assert reading.throttled_seconds in (0.0, 0.25)


def test_v1_controllers_may_be_mounted_together(tmp_path: Path) -> None:
    kernel = v1(tmp_path)
    for name in ("cpu", "cpuacct"):
        for path in (kernel.root / name / CONTAINER).iterdir():
            write(kernel.root, {f"cpu,cpuacct/{CONTAINER}/{path.name}": path.read_text()})
        (kernel.root / name).rename(tmp_path / name)
    assert kernel.meter().read().cpu_seconds == 1.5


@pytest.mark.parametrize("missing", ["schedstat", "children", "both", "zeros"])
def test_children_are_counted_without_optional_files(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(path: object, *arguments: object, **named: object) -> object:
        name = str(path).rpartition("/")[2]
        if name in ("schedstat", "children") and missing in (name, "both"):
            raise FileNotFoundError(path)
        if name == "schedstat" and missing == "zeros":
            return io.BytesIO(b"0 0 0\n")
        return io.open(path, *arguments, **named)  # type: ignore[call-overload]  # noqa: UP020

    monkeypatch.setattr(metering, "open", without, raising=False)
    monkeypatch.setattr(metering, "LISTS_CHILDREN", missing not in ("children", "both"))
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as parent:
        until = time.monotonic() + 20
        while len(pids := ProcessTreeMeter(parent.pid).read().pids) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        reading = ProcessTreeMeter(parent.pid).read()
        for pid in (*pids[1:], parent.pid):
            os.kill(pid, signal.SIGKILL)
    assert len(pids) == 2
    if missing == "children":
        assert reading.run_seconds is not None
    else:
        assert (reading.run_seconds, reading.wait_seconds) == (None, None)
