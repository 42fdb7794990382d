"""CPU, throttling and memory of a container's control group (v1 and v2), and the run-queue wait of its processes."""

import time
from pathlib import Path

from harness.errors import ServerDiedError
from harness.runtime import Reading
from harness.runtime.metering.proc import thread_times

ROOT = Path("/sys/fs/cgroup")


class CgroupMeter:
    """Reads the counters of the container whose first process is ``pid``; raises ServerDiedError when it is gone."""

    def __init__(self, pid: int, proc: Path = Path("/proc"), root: Path = ROOT) -> None:
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
        else:  # cpu and cpuacct share a hierarchy on many systems, not always with links
            mounted = {name: name if (root / name).exists() else "cpu,cpuacct" for name in ("cpu", "cpuacct")}
            self._cpu = root / mounted["cpu"] / groups["cpu"]
            self._accounts = root / mounted["cpuacct"] / groups["cpuacct"]
            self._memory = root / "memory" / groups["memory"]
        self._threads: dict[tuple[int, str], tuple[int, int]] = {}  # run and wait ns, kept when a thread ends

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
