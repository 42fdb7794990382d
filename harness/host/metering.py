"""Measures CPU time, memory and run-queue wait of a process tree or of a container's control group.

The image of ``toolset/meter`` contains this module without third-party packages.
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


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Counters of a process tree or cgroup. The difference of two readings is the usage between them."""

    at: float  # time.monotonic()
    cpu_seconds: float
    rss: float | None  # bytes
    run_seconds: float | None  # time on a CPU, summed over threads (schedstat)
    wait_seconds: float | None  # time in the run queue, summed over threads (schedstat)
    throttled_seconds: float | None = None
    pids: tuple[int, ...] = ()
    threads: int | None = None  # number of threads of all processes


class _ThreadTimes:
    """Run and wait times of all threads, including exited threads (for example a JVM's compiler threads)."""

    def __init__(self) -> None:
        self._times: dict[tuple[int, str], tuple[int, int]] = {}  # nanoseconds

    def update(self, pid: int) -> tuple[int, list[int]]:
        """Read the times of a process's threads. Return the number of threads, and the pids of child processes."""
        children: list[int] = []
        count = 0
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - hot
                count += 1
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has exited
                    with open(f"/proc/{pid}/task/{tid}/schedstat", "rb", buffering=0) as file:  # noqa: PTH123 - hot
                        run, wait, _ = map(int, file.read(128).split())
                    if run:
                        self._times[pid, tid] = (run, wait)
                    with open(f"/proc/{pid}/task/{tid}/children", "rb", buffering=0) as file:  # noqa: PTH123 - hot
                        children += map(int, file.read().split())
        return count, children

    def seconds(self) -> tuple[float, float]:
        """Return the total run and wait times in seconds."""
        return sum(run for run, _ in self._times.values()) / 1e9, sum(wait for _, wait in self._times.values()) / 1e9


class ProcessTreeMeter:
    """Sums the counters of a root process and all descendants.

    Processes and threads that have exited count with their last values, so sums never decrease. If a process starts and
    exits between two readings, the parent's ``cutime`` contains the CPU time.
    """

    def __init__(self, root: int, adopted: Callable[[], Sequence[int]] = tuple) -> None:
        self.root = root
        self._adopted = adopted  # returns processes that have left the tree but belong to the server
        self._seen: dict[tuple[int, bytes], float] = {}  # (pid, start time) -> CPU seconds
        self._threads = _ThreadTimes()
        self._reaped_before: float | None = None  # CPU seconds of children that exited before the first reading
        self._cpu = 0.0

    def read(self) -> Reading:
        """Return the counters. Raises ServerDiedError if the root process has exited."""
        at = time.monotonic()
        private, shared, threads = 0, 0, 0  # memory pages; shared pages count once
        reaped, living = 0.0, 0.0
        alive: list[int] = []
        queue = [self.root, *self._adopted()]
        while queue:
            pid = queue.pop()
            try:
                fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
                resident, with_others = map(int, Path(f"/proc/{pid}/statm").read_bytes().split()[1:3])
                cpu = time.clock_gettime(~pid << 3 | 2)  # the clock id that clock_getcpuclockid(3) returns
            except OSError:
                continue
            count, children = self._threads.update(pid)
            queue.extend(children)
            if fields[0] in b"ZX" or pid in alive:
                continue
            alive.append(pid)
            # proc(5) counts from 1, and fields[0] is field 3 there: cutime is field 16, and starttime field 22.
            reaped += (int(fields[13]) + int(fields[14])) / TICKS
            living += cpu
            private += resident - with_others
            shared = max(shared, with_others)
            threads += count
            self._seen[pid, fields[19]] = cpu
        if self.root not in alive:
            raise ServerDiedError(f"process {self.root} has exited")
        if self._reaped_before is None:
            self._reaped_before = reaped
        # CPU time of exited processes is the sum of their last readings. If their parents have reaped more, that sum is
        # used.
        exited = sum(self._seen.values()) - living
        run, wait = self._threads.seconds()
        self._cpu = max(self._cpu, living + max(exited, reaped - self._reaped_before))
        return Reading(
            at=at,
            cpu_seconds=self._cpu,
            rss=float((private + shared) * PAGE),
            run_seconds=run,
            wait_seconds=wait,
            pids=tuple(sorted(alive)),
            threads=threads,
        )


class CgroupMeter:
    """Reads the control group (v1 or v2) of a container. ``pid`` is the container's first process.

    Raises ServerDiedError if the process has exited.
    """

    def __init__(self, pid: int, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self.pid = pid
        try:
            lines = (proc / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ServerDiedError(f"process {pid} has exited: the control group cannot be read") from error
        groups = {
            controller: path.lstrip("/")
            for _, controllers, path in (line.split(":", 2) for line in lines)
            for controller in controllers.split(",")
        }
        self._unified = "cpuacct" not in groups  # v2 has a single folder, v1 has a folder for each controller
        if self._unified:
            self._cpu = self._cpuacct = self._memory = root / groups[""]
        else:
            folders = (root / name / groups[name] for name in ("cpu", "cpuacct", "memory"))
            self._cpu, self._cpuacct, self._memory = folders
        self._threads = _ThreadTimes()

    def read(self) -> Reading:
        """Return the counters. Raises ServerDiedError if the control group no longer exists."""
        at = time.monotonic()
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
            at=at,
            cpu_seconds=cpu,
            rss=rss,
            run_seconds=run,
            wait_seconds=wait,
            throttled_seconds=throttled,
            pids=pids,
            threads=threads,
        )

    def _cpu_seconds(self) -> tuple[float, float]:
        """Return the CPU seconds and the throttled seconds."""
        stat = _fields(self._cpu / "cpu.stat")
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
            return float(stat["anon"] + stat["file_mapped"])
        return float(stat["total_rss"] + stat["total_mapped_file"])


def _fields(path: Path) -> dict[str, int]:
    """Parse a file that contains a name and a number in each line."""
    pairs = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {name: int(value) for name, value in pairs}
