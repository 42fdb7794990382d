"""Measures the CPU time, memory and run-queue wait of a process tree or of a container's control group.

``toolset/meter`` copies this module into an image without third-party packages.
"""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ServerDiedError

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# Name prefixes of JIT compiler threads in HotSpot, GraalVM, GraalJS and .NET. V8 does not name these threads.
COMPILER_THREADS = (b"C1 CompilerThre", b"C2 CompilerThre", b"JVMCI", b"Truffle", b".NET Tiered Com")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The counters of a process tree or control group. Usage is the difference between two readings."""

    read_at: float  # time.monotonic()
    cpu_seconds: float
    rss: float | None  # bytes
    run_seconds: float | None  # time spent on a CPU, summed over threads (schedstat)
    wait_seconds: float | None  # time spent waiting for a CPU, summed over threads (schedstat)
    compiler_seconds: float | None = None  # compiler threads' part of ``run_seconds``; None without such threads
    throttled_seconds: float | None = None
    pids: tuple[int, ...] = ()
    threads: int | None = None  # total number of threads
    idle_seconds: float | None = None  # idle time, summed over the CPUs that the processes may use


# False if the kernel was built without CONFIG_PROC_CHILDREN.
LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


def children_in_table(parent: int) -> list[int]:
    """Return a process's children. Find them by reading the parent pid of every process."""
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):  # the process has exited
            if int(stat.read_bytes().rpartition(b")")[2].split()[1]) == parent:
                children.append(int(stat.parent.name))
    return children


def idle_seconds(pid: int, stat: Path = Path("/proc/stat")) -> float | None:
    """Return the total idle seconds of the CPUs that a process may use, or None if unknown."""
    try:
        allowed = {f"cpu{number}" for number in os.sched_getaffinity(pid)}
        lines = (line.split() for line in stat.read_text(encoding="ascii").splitlines())
        # proc(5): the fourth number counts idle ticks, and the fifth counts ticks spent waiting for I/O.
        return sum(int(words[4]) + int(words[5]) for words in lines if words[:1] and words[0] in allowed) / TICKS
    except (OSError, ValueError, IndexError):
        return None


class _ThreadTimes:
    """Run and wait times of all threads, including threads that have exited (for example a JVM's compiler threads)."""

    def __init__(self) -> None:
        self._times: dict[tuple[int, str], tuple[int, int]] = {}  # (pid, tid) -> (run, wait) in ns
        self._is_compiler: dict[tuple[int, str], bool] = {}

    def update(self, pid: int) -> tuple[int, list[int]]:
        """Read the times of a process's threads. Return the number of threads, and the pids of child processes."""
        children: list[int] = []
        count = 0
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - hot
                count += 1
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has exited
                    self._update_thread(pid, tid)
                    with open(f"/proc/{pid}/task/{tid}/children", "rb", buffering=0) as file:  # noqa: PTH123 - hot
                        children += map(int, file.read().split())
        return count, children if LISTS_CHILDREN else children_in_table(pid)

    def _update_thread(self, pid: int, tid: str) -> None:
        """Read a thread's run and wait times. Without CONFIG_SCHED_INFO, schedstat is missing or contains zeros."""
        with (
            contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError),
            open(f"/proc/{pid}/task/{tid}/schedstat", "rb", buffering=0) as file,  # noqa: PTH123 - hot
        ):
            run, wait, _ = map(int, file.read(128).split())
            if run:
                self._times[pid, tid] = (run, wait)
                if (pid, tid) not in self._is_compiler:
                    name = Path(f"/proc/{pid}/task/{tid}/comm").read_bytes()
                    self._is_compiler[pid, tid] = name.startswith(COMPILER_THREADS)

    def seconds(self) -> tuple[float | None, float | None]:
        """Return the total (run time, wait time) in seconds. Both are None if the kernel does not record them."""
        if not self._times:
            return None, None
        return sum(run for run, _ in self._times.values()) / 1e9, sum(wait for _, wait in self._times.values()) / 1e9

    def compiler_seconds(self) -> float | None:
        """Return the run time of the compiler threads in seconds, or None if there are no compiler threads."""
        times = [self._times[thread][0] for thread, is_compiler in self._is_compiler.items() if is_compiler]
        return sum(times) / 1e9 if times else None


class ProcessTreeMeter:
    """A meter that sums the counters of a root process and all descendants.

    The sums include the last values of exited processes and threads, so they never decrease. A process may start and
    exit between two readings. The meter then finds the CPU time of this process in the parent's ``cutime``.
    """

    def __init__(self, root: int, adopted: Callable[[], Sequence[int]] = tuple) -> None:
        self.root = root
        self._adopted = adopted  # returns pids of server processes that do not descend from root
        self._cpu_by_process: dict[tuple[int, bytes], float] = {}  # (pid, start time) -> CPU seconds
        self._threads = _ThreadTimes()
        self._reaped_before: float | None = None  # CPU seconds of children that exited before the first reading
        self._cpu = 0.0

    def read(self) -> Reading:
        """Return the counters. Raises ServerDiedError if the root process has exited."""
        read_at = time.monotonic()
        private, shared_total, threads = 0, 0, 0  # memory in pages; shared pages are counted once
        reaped, running_seconds = 0.0, 0.0
        alive: list[int] = []
        queue = [self.root, *self._adopted()]
        while queue:
            pid = queue.pop()
            try:
                fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
                resident_pages, shared_pages = map(int, Path(f"/proc/{pid}/statm").read_bytes().split()[1:3])
                cpu = time.clock_gettime(~pid << 3 | 2)  # the clock id that clock_getcpuclockid(3) returns
            except OSError:
                continue
            count, children = self._threads.update(pid)
            queue.extend(children)
            if fields[0] in b"ZX" or pid in alive:
                continue
            alive.append(pid)
            # fields[0] is field 3 of proc(5), so cutime (16) is fields[13], and starttime (22) is fields[19].
            reaped += (int(fields[13]) + int(fields[14])) / TICKS
            running_seconds += cpu
            private += resident_pages - shared_pages
            shared_total = max(shared_total, shared_pages)
            threads += count
            self._cpu_by_process[pid, fields[19]] = cpu
        if self.root not in alive:
            raise ServerDiedError(f"process {self.root} has exited")
        if self._reaped_before is None:
            self._reaped_before = reaped
        # CPU time of exited processes: the sum of their last readings may be too low, and ``cutime`` lacks processes
        # that their parents have not reaped yet. Use the larger value.
        exited = sum(self._cpu_by_process.values()) - running_seconds
        run, wait = self._threads.seconds()
        self._cpu = max(self._cpu, running_seconds + max(exited, reaped - self._reaped_before))
        return Reading(
            read_at=read_at,
            cpu_seconds=self._cpu,
            rss=float((private + shared_total) * PAGE),
            run_seconds=run,
            wait_seconds=wait,
            compiler_seconds=self._threads.compiler_seconds(),
            pids=tuple(sorted(alive)),
            threads=threads,
            idle_seconds=idle_seconds(self.root),
        )


class CgroupMeter:
    """A meter for a container's control group.

    ``pid`` is the container's main process. The constructor raises ServerDiedError if that process has exited.
    """

    def __init__(self, pid: int, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self.pid = pid
        try:
            lines = (proc / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ServerDiedError(f"process {pid} has exited, so its control group cannot be read") from error
        groups = {}
        for _, controllers, path in (line.split(":", 2) for line in lines):
            for controller in controllers.split(","):
                mount = root / controller if (root / controller).is_dir() else root / controllers
                groups[controller] = mount, path.lstrip("/")
        self._unified = "cpuacct" not in groups  # v2 has a common folder for all controllers, v1 a folder for each
        if self._unified:
            mount = root / "unified" if (root / "unified").is_dir() else root
            self._cpu = self._cpuacct = self._memory = mount / groups.get("", (root, ""))[1]
        else:  # the kernel may lack some controllers
            missing = root / "missing", ""
            folders = (mount / path for mount, path in (groups.get(n, missing) for n in ("cpu", "cpuacct", "memory")))
            self._cpu, self._cpuacct, self._memory = folders
        self._threads = _ThreadTimes()

    def read(self) -> Reading:
        """Return the counters. Raises ServerDiedError if the control group no longer exists."""
        read_at = time.monotonic()
        try:
            pids = tuple(int(pid) for pid in (self._cpuacct / "cgroup.procs").read_text().split())
            cpu, throttled = self._cpu_seconds()
            rss = self._resident_bytes()
        except OSError as error:
            raise ServerDiedError(f"the container of process {self.pid} has exited") from error
        if not pids:
            raise ServerDiedError(f"all processes in the container of process {self.pid} have exited")
        threads = sum(self._threads.update(pid)[0] for pid in pids)
        run, wait = self._threads.seconds()
        return Reading(
            read_at=read_at,
            cpu_seconds=cpu,
            rss=rss,
            run_seconds=run,
            wait_seconds=wait,
            compiler_seconds=self._threads.compiler_seconds(),
            throttled_seconds=throttled,
            pids=pids,
            threads=threads,
            idle_seconds=idle_seconds(pids[0]),
        )

    def _cpu_seconds(self) -> tuple[float, float]:
        """Return (CPU seconds used, seconds throttled by the quota)."""
        stat = _fields(self._cpu / "cpu.stat") if self._unified or (self._cpu / "cpu.stat").exists() else {}
        if self._unified:
            return stat["usage_usec"] / 1e6, stat.get("throttled_usec", 0) / 1e6
        usage = int((self._cpuacct / "cpuacct.usage").read_text())
        return usage / 1e9, stat.get("throttled_time", 0) / 1e9

    def _resident_bytes(self) -> float | None:
        """Return the bytes of anonymous memory and mapped files, or None if the memory controller is off."""
        if not (self._memory / "memory.stat").exists():
            return None
        stat = _fields(self._memory / "memory.stat")
        if self._unified:
            return float(stat["anon"] + stat.get("file_mapped", 0))
        return float(stat.get("total_rss", stat.get("rss", 0)) + stat.get("total_mapped_file", 0))


def _fields(path: Path) -> dict[str, int]:
    """Parse a file with a name and a number on each line."""
    pairs = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {name: int(value) for name, value in pairs}
