"""What a server used: CPU, memory and run-queue wait of a process tree, or of a container's control group.

Also within the image of ``toolset/meter``, where there is the standard library alone.
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
    """Counters of a process tree or cgroup at one moment; differences of two readings are what was used between."""

    at: float  # time.monotonic()
    cpu_seconds: float
    rss: float | None  # bytes
    run_seconds: float | None  # time on a CPU, summed over threads (schedstat)
    wait_seconds: float | None  # time runnable but waiting for a CPU, summed over threads (schedstat)
    throttled_seconds: float | None = None
    pids: tuple[int, ...] = ()
    threads: int | None = None  # of all its processes


class _Threads:
    """Run and wait times of every thread ever seen: a JVM's compilers come and go, and what they had stays."""

    def __init__(self) -> None:
        self._times: dict[tuple[int, str], tuple[int, int]] = {}  # nanoseconds

    def look(self, pid: int) -> tuple[int, list[int]]:
        """How many threads a process has now, and the processes that they started; nothing of one that is gone."""
        children: list[int] = []
        count = 0
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - hot
                count += 1
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ends while it is read
                    with open(f"/proc/{pid}/task/{tid}/schedstat", "rb", buffering=0) as file:  # noqa: PTH123 - hot
                        run, wait, _ = map(int, file.read(128).split())
                    if run:
                        self._times[pid, tid] = (run, wait)
                    with open(f"/proc/{pid}/task/{tid}/children", "rb", buffering=0) as file:  # noqa: PTH123 - hot
                        children += map(int, file.read().split())
        return count, children

    def seconds(self) -> tuple[float, float]:
        """Run and wait seconds of all."""
        return sum(run for run, _ in self._times.values()) / 1e9, sum(wait for _, wait in self._times.values()) / 1e9


class ProcessTreeMeter:
    """Sums the counters of a root process and all its descendants.

    One walk over the threads serves three purposes: their run and wait times (``schedstat``) and the children that they
    started. Processes and threads that ended keep what they had used at the last reading: sums never fall. The CPU of
    those that came and went between two readings is in the times of ended children of their parents (``cutime``).
    """

    def __init__(self, root: int, adopted: Callable[[], Sequence[int]] = tuple) -> None:
        self.root = root
        self._adopted = adopted  # processes that left the tree: what they use is the server's, too
        self._seen: dict[tuple[int, bytes], float] = {}  # (pid, start time) -> CPU seconds
        self._threads = _Threads()
        self._reaped_before: float | None = None  # CPU of children that had ended before the first reading
        self._cpu = 0.0

    def read(self) -> Reading:
        """The counters now; raises ServerDiedError when the root process is gone."""
        at = time.monotonic()
        private, shared, threads = 0, 0, 0  # pages, once for all processes that share them
        reaped, living = 0.0, 0.0
        alive: list[int] = []
        queue = [self.root, *self._adopted()]
        while queue:
            pid = queue.pop()
            try:
                fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
                resident, with_others = map(int, Path(f"/proc/{pid}/statm").read_bytes().split()[1:3])
                cpu = time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3) makes it: in nanoseconds
            except OSError:
                continue
            count, children = self._threads.look(pid)
            queue.extend(children)
            if fields[0] in b"ZX" or pid in alive:
                continue
            alive.append(pid)
            # Of proc(5)'s numbering: cutime is field 16, starttime 22; fields[0] is field 3.
            reaped += (int(fields[13]) + int(fields[14])) / TICKS
            living += cpu
            private += resident - with_others
            shared = max(shared, with_others)
            threads += count
            self._seen[pid, fields[19]] = cpu
        if self.root not in alive:
            raise ServerDiedError(f"process {self.root} is gone")
        if self._reaped_before is None:
            self._reaped_before = reaped
        # What ended is in what was seen of it or, once its parent has waited for it, wholly in the parent's times.
        ended = sum(self._seen.values()) - living
        run, wait = self._threads.seconds()
        self._cpu = max(self._cpu, living + max(ended, reaped - self._reaped_before))
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
    """Reads the control group (v1 or v2) of the container whose first process is ``pid``.

    Raises ServerDiedError when it is gone.
    """

    def __init__(self, pid: int, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self.pid = pid
        try:
            lines = (proc / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ServerDiedError(f"process {pid} is gone: its control group cannot be read") from error
        groups = {
            controller: path.lstrip("/")
            for _, controllers, path in (line.split(":", 2) for line in lines)
            for controller in controllers.split(",")
        }
        self._unified = "cpuacct" not in groups  # v2 has one folder, v1 one for each controller
        if self._unified:
            self._cpu = self._accounts = self._memory = root / groups[""]
        else:
            folders = (root / name / groups[name] for name in ("cpu", "cpuacct", "memory"))
            self._cpu, self._accounts, self._memory = folders
        self._threads = _Threads()

    def read(self) -> Reading:
        """The counters now; raises ServerDiedError when the control group is gone."""
        at = time.monotonic()
        try:
            pids = tuple(int(pid) for pid in (self._accounts / "cgroup.procs").read_text().split())
            cpu, throttled = self._used()
            rss = self._held()
        except OSError as error:
            raise ServerDiedError(f"the container of process {self.pid} is gone") from error
        if not pids:
            raise ServerDiedError(f"no process is left in the container of process {self.pid}")
        threads = sum(self._threads.look(pid)[0] for pid in pids)
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

    def _used(self) -> tuple[float, float]:
        """CPU seconds and throttled seconds so far."""
        stat = _fields(self._cpu / "cpu.stat")
        if self._unified:
            return stat["usage_usec"] / 1e6, stat.get("throttled_usec", 0) / 1e6
        usage = int((self._accounts / "cpuacct.usage").read_text())
        return usage / 1e9, stat.get("throttled_time", 0) / 1e9

    def _held(self) -> float | None:
        """Bytes that the processes themselves hold: anonymous memory and mapped files, not the page cache.

        None where the memory controller is off, as on some small boards.
        """
        if not (self._memory / "memory.stat").exists():
            return None
        stat = _fields(self._memory / "memory.stat")
        if self._unified:
            return float(stat["anon"] + stat["file_mapped"])
        return float(stat["total_rss"] + stat["total_mapped_file"])


def _fields(path: Path) -> dict[str, int]:
    """A file of ``name number`` lines."""
    pairs = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {name: int(value) for name, value in pairs}
