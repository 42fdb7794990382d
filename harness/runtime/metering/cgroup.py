"""CPU, throttling and memory of a container's control group (v1 and v2), and the run-queue wait of its processes."""

import time
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ServerDiedError
from harness.runtime import Reading
from harness.runtime.metering.proc import thread_times

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Where one container's counters are; v2 has one folder, v1 one for each controller."""

    cpu: Path
    cpuacct: Path
    memory: Path
    unified: bool


def paths(pid: int, proc: Path = Path("/proc"), root: Path = ROOT) -> Paths:
    """The folders of a process's control groups; raises ServerDiedError when it is gone."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ServerDiedError(f"process {pid} is gone: its control group cannot be read") from error
    groups = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path.lstrip("/")
    if "cpuacct" in groups:
        return Paths(
            cpu=_hierarchy(root, "cpu") / groups["cpu"],
            cpuacct=_hierarchy(root, "cpuacct") / groups["cpuacct"],
            memory=root / "memory" / groups["memory"],
            unified=False,
        )
    folder = root / groups[""]
    return Paths(cpu=folder, cpuacct=folder, memory=folder, unified=True)


def _hierarchy(root: Path, controller: str) -> Path:
    """Where a v1 controller is mounted: cpu and cpuacct share a hierarchy on many systems, not always with links."""
    alone = root / controller
    return alone if alone.exists() else root / "cpu,cpuacct"


class CgroupMeter:
    """Reads the counters of the container whose first process is ``pid``."""

    def __init__(self, pid: int, proc: Path = Path("/proc"), root: Path = ROOT) -> None:
        self.pid = pid
        self._paths = paths(pid, proc, root)
        self._threads: dict[tuple[int, str], tuple[int, int]] = {}  # run and wait ns, kept when a thread ends

    def read(self) -> Reading:
        """The counters now; raises ServerDiedError when the control group is gone."""
        at = time.monotonic()
        where = self._paths
        try:
            pids = tuple(int(pid) for pid in (where.cpuacct / "cgroup.procs").read_text().split())
            cpu, throttled = self._cpu()
            rss = self._memory()
        except OSError as error:
            raise ServerDiedError(f"the container of process {self.pid} is gone") from error
        if not pids:
            raise ServerDiedError(f"no process is left in the container of process {self.pid}")
        threads = 0
        for pid in pids:
            times = thread_times(pid)
            threads += len(times)
            self._threads |= {(pid, tid): (run, wait) for tid, run, wait in times if run}
        return Reading(
            at=at,
            cpu_seconds=cpu,
            rss=rss,
            run_seconds=sum(run for run, _ in self._threads.values()) / 1e9,
            wait_seconds=sum(wait for _, wait in self._threads.values()) / 1e9,
            throttled_seconds=throttled,
            pids=pids,
            threads=threads,
        )

    def _cpu(self) -> tuple[float, float]:
        """CPU seconds and throttled seconds so far."""
        stat = _fields(self._paths.cpu / "cpu.stat")
        if self._paths.unified:
            return stat["usage_usec"] / 1e6, stat.get("throttled_usec", 0) / 1e6
        usage = int((self._paths.cpuacct / "cpuacct.usage").read_text())
        return usage / 1e9, stat.get("throttled_time", 0) / 1e9

    def _memory(self) -> float | None:
        """Bytes that the processes themselves hold: anonymous memory and mapped files, not the page cache.

        None where the memory controller is off, as on some small boards.
        """
        if not (self._paths.memory / "memory.stat").exists():
            return None
        stat = _fields(self._paths.memory / "memory.stat")
        if self._paths.unified:
            return float(stat["anon"] + stat["file_mapped"])
        return float(stat["total_rss"] + stat["total_mapped_file"])


def _fields(path: Path) -> dict[str, int]:
    """A file of ``name number`` lines."""
    pairs = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {name: int(value) for name, value in pairs}
