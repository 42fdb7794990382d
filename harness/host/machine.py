"""Describes a machine and grades how likely it is to disturb measurements. This does not require root.

A ``FileReader`` returns the text of kernel files on this machine or on a remote machine.
"""

import os
import platform
import re
import resource
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.errors import EnvironmentLacksError
from harness.records.run_info import Machine

CPU = Path("/sys/devices/system/cpu")
CPUINFO, STAT, PRESSURE = Path("/proc/cpuinfo"), Path("/proc/stat"), Path("/proc/pressure/cpu")
PRODUCT = Path("/sys/class/dmi/id/product_name")
GOVERNOR, SMT = CPU / "cpu0/cpufreq/scaling_governor", CPU / "smt/active"
NO_TURBO, BOOST = CPU / "intel_pstate/no_turbo", CPU / "cpufreq/boost"
# The files that ``add_kernel_facts`` reads. They have the same contents in a container as on the host.
FILES = (CPUINFO, STAT, PRESSURE, PRODUCT, GOVERNOR, SMT, NO_TURBO, BOOST)
CALLER_OPEN_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)  # (soft, hard) limits before tfb raises them
FileReader = Callable[[Path], str | None]  # returns the stripped text of a file, or None if it does not exist


def read_machine() -> Machine:
    """Return current facts about this machine, and a grade."""
    groups = ControlGroups()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    nofile_soft, nofile_hard = (None if limit == resource.RLIM_INFINITY else limit for limit in limits)
    machine = Machine(
        hostname=socket.gethostname(),
        os=_os_name(),
        kernel=platform.release(),
        cpu_model=platform.processor() or platform.machine(),
        cpus_online=os.cpu_count() or 1,
        cpus_usable=usable_cpus(),
        memory_bytes=min(psutil.virtual_memory().total, int(groups.memory_limit() or sys.maxsize)),
        nofile_soft=nofile_soft,
        nofile_hard=nofile_hard,
        load_average=os.getloadavg()[0],
        cpu_quota=groups.cpu_quota(),
    )
    return with_grade(add_kernel_facts(machine, _read))


def add_kernel_facts(machine: Machine, read_file: FileReader) -> Machine:
    """Return a copy of ``machine`` with the facts in ``FILES``."""
    cpuinfo, ticks = read_file(CPUINFO) or "", steal_ticks(read_file)
    model = re.search(r"^model name\s*: (.+)$", cpuinfo, re.MULTILINE)
    guest = re.search(r"^flags\b.* hypervisor\b", cpuinfo, re.MULTILINE)
    no_turbo, boost, smt = (read_file(path) for path in (NO_TURBO, BOOST, SMT))
    return machine.model_copy(
        update={
            "governor": read_file(GOVERNOR),
            "turbo": no_turbo != "1" if no_turbo else boost == "1" if boost else None,
            "smt": smt == "1" if smt else None,
            "virtualised": (read_file(PRODUCT) or "hypervisor") if guest else None,
            "pressure_cpu": cpu_pressure(read_file),
            "steal_share": ticks[0] / ticks[1] if ticks and ticks[1] else None,
            "cpu_model": model[1] if model else machine.cpu_model,
        }
    )


def with_grade(machine: Machine) -> Machine:
    """Return a copy of ``machine`` with concerns and a grade.

    Grade A means no concerns, B a single concern, and C several concerns. Grade D means that the machine is busy or has
    fewer than 4 CPUs.
    """
    cpus = len(machine.cpus_usable)
    concerns = (*_hardware_concerns(machine, cpus), *_load_concerns(machine, cpus))
    busy = (machine.pressure_cpu or 0) > 20 or (machine.load_average or 0) > cpus
    grade = "D" if busy or cpus < 4 else "ABC"[min(len(concerns), 2)]
    return machine.model_copy(update={"concerns": concerns, "grade": grade})


def usable_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may run on. Raises EnvironmentLacksError on systems other than Linux."""
    if not hasattr(os, "sched_getaffinity"):
        raise EnvironmentLacksError(
            "tfb measures on Linux only: run it on a Linux machine, virtual machine or container"
        )
    return tuple(sorted(os.sched_getaffinity(0)))


def free_memory() -> float:
    """Return the bytes of memory that are available without swapping and within the limits of the control groups."""
    within = ControlGroups().free_memory()
    available = float(psutil.virtual_memory().available)
    return available if within is None else min(available, within)


def steal_ticks(read: FileReader | None = None) -> tuple[float, float] | None:
    """Return (ticks stolen by the hypervisor, all CPU ticks) since boot, or None if /proc/stat is unreadable."""
    line = (read or _read)(STAT)
    if not line:
        return None
    ticks = [int(word) for word in line.splitlines()[0].split()[1:9]]
    return float(ticks[7]), float(sum(ticks))


def cpu_pressure(read: FileReader) -> float | None:
    """Return the percentage of the last ten seconds during which a task waited for a CPU, or None without PSI."""
    text = read(PRESSURE)
    return float(text.split("avg10=")[1].split()[0]) if text and "avg10=" in text else None


def raise_open_file_limit() -> int:
    """Raise the soft limit on open files to the hard limit for this process and all children. Return the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _hardware_concerns(machine: Machine, cpus: int) -> Iterator[str]:
    """Yield concerns about the CPUs and the hypervisor."""
    if machine.governor not in (None, "performance"):
        yield f"CPU governor is {machine.governor}, not performance: clock speed follows the load"
    if machine.turbo:
        yield "turbo is on: clock speed follows temperature and the number of busy cores"
    if machine.smt:
        yield "SMT is on: two busy threads share a core"
    if cpus < 4:
        yield f"only {cpus} CPUs: server, database and generator share them; compare CPU per request"
    if machine.virtualised:
        yield f"virtual machine ({machine.virtualised}): other virtual machines can take CPU time"


def _load_concerns(machine: Machine, cpus: int) -> Iterator[str]:
    """Yield concerns about CPU usage by other programs, and about limits on CPUs and open files."""
    if machine.load_average is not None and machine.load_average > 0.3 * cpus:
        yield f"load average {machine.load_average:.1f} before the run: other programs are running"
    if machine.pressure_cpu is not None and machine.pressure_cpu > 5:
        yield f"CPU pressure {machine.pressure_cpu:.0f} %: tasks wait for CPUs"
    if machine.steal_share is not None and machine.steal_share > 0.01:
        yield f"{machine.steal_share:.1%} of CPU time stolen by the hypervisor since boot"
    if machine.cpu_quota is not None and machine.cpu_quota < cpus:
        yield f"a cgroup quota of {machine.cpu_quota:.1f} CPUs throttles all programs"
    if machine.nofile_hard is not None and machine.nofile_hard < 18_000:
        yield f"at most {machine.nofile_hard} open files: not enough for 16,384 connections"


def _os_name() -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read(Path("/etc/os-release")) or "", re.MULTILINE)
    return match[1] if match else platform.system()


@dataclass(frozen=True, kw_only=True)
class ControlGroups:
    """A process's control groups. The lowest limit among a group and all ancestor groups applies."""

    proc: Path = Path("/proc/self")
    root: Path = Path("/sys/fs/cgroup")

    def cpu_quota(self) -> float | None:
        """Return the number of CPUs that the quotas allow, or None if there is no quota."""
        quotas = [*self._values("", _quota_v2), *self._values("cpu", _quota_v1)]
        return min(quotas, default=None)

    def throttled_seconds(self) -> float | None:
        """Return how long, in seconds, quotas have throttled the most affected group, or None if there is no quota."""
        return max((*self._values("", _throttled_v2), *self._values("cpu", _throttled_v1)), default=None)

    def memory_limit(self) -> float | None:
        """Return the memory limit in bytes, or None if there is no limit."""
        limits = [*self._values("", _limit("memory.max")), *self._values("memory", _limit("memory.limit_in_bytes"))]
        return min(limits, default=None)

    def free_memory(self) -> float | None:
        """Return the bytes of memory left within the limits, or None if there is no limit."""
        v2 = self._values("", _free("memory.max", "memory.current", "inactive_file"))
        v1 = self._values("memory", _free("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
        return min([*v2, *v1], default=None)

    def _values(self, controller: str, read: Callable[[Path], float | None]) -> Iterator[float]:
        """Yield ``read(folder)`` for each group of a controller. Skip None. For cgroup v2, ``controller`` is empty."""
        for folder in self._folders(controller):
            if (value := read(folder)) is not None:
                yield value

    def _folders(self, controller: str) -> Iterator[Path]:
        """Yield the folders of the process's group and of all ancestor groups."""
        mounts = [self.root / controller] if controller else [self.root, self.root / "unified"]
        for line in (_read(self.proc / "cgroup") or "").splitlines():
            _, controllers, path = line.split(":", 2)
            if controller not in controllers.split(","):
                continue
            mounts += [self.root / controllers] if controller else []
            group = Path(path.lstrip("/"))
            for mount in mounts:
                # In a container, ancestors of the mounted group are hidden, so some paths may not exist.
                yield from (mount / part for part in (group, *group.parents))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None  # "max" (v2) and "-1" (v1) mean no limit


def _quota_v2(folder: Path) -> float | None:
    words = (_read(folder / "cpu.max") or "").split()
    quota, period = map(_number, words) if len(words) == 2 else (None, None)
    return quota / period if quota and period else None


def _quota_v1(folder: Path) -> float | None:
    quota, period = (_number(_read(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
    return quota / period if quota and period else None


def _throttled_v2(folder: Path) -> float | None:
    return None if _quota_v2(folder) is None else _statistics(folder / "cpu.stat").get("throttled_usec", 0) / 1e6


def _throttled_v1(folder: Path) -> float | None:
    return None if _quota_v1(folder) is None else _statistics(folder / "cpu.stat").get("throttled_time", 0) / 1e9


def _statistics(path: Path) -> dict[str, int]:
    lines = (line.split() for line in (_read(path) or "").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2}


def _limit(name: str) -> Callable[[Path], float | None]:
    return lambda folder: _number(_read(folder / name))


def _free(limit: str, usage: str, reclaimable: str) -> Callable[[Path], float | None]:
    """Return a function that reads a group's free memory in bytes. Reclaimable memory (inactive files) is free."""

    def read(folder: Path) -> float | None:
        limit_bytes, used_bytes = _number(_read(folder / limit)), _number(_read(folder / usage))
        if limit_bytes is None or used_bytes is None:
            return None
        return float(max(0, limit_bytes - used_bytes + _statistics(folder / "memory.stat").get(reclaimable, 0)))

    return read
