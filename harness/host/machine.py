"""Describes a machine, and grades how much it could disturb measurements. No function requires root.

A ``FileReader`` returns the kernel's files, either of this machine or as sent by a remote machine.
"""

import os
import platform
import re
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from harness.errors import EnvironmentLacksError
from harness.records.machine_record import Machine

CPU = Path("/sys/devices/system/cpu")
CPUINFO, STAT, PRESSURE = Path("/proc/cpuinfo"), Path("/proc/stat"), Path("/proc/pressure/cpu")
PRODUCT = Path("/sys/class/dmi/id/product_name")
GOVERNOR, SMT = CPU / "cpu0/cpufreq/scaling_governor", CPU / "smt/active"
NO_TURBO, BOOST = CPU / "intel_pstate/no_turbo", CPU / "cpufreq/boost"
# The files that ``add_kernel_facts`` reads. Their content is the same inside a container.
FILES = (CPUINFO, STAT, PRESSURE, PRODUCT, GOVERNOR, SMT, NO_TURBO, BOOST)
FileReader = Callable[[Path], str | None]  # returns the stripped text of a file, or None if it does not exist


def read_machine() -> Machine:
    """Return current facts about this machine, and the grade."""
    machine = Machine(
        hostname=socket.gethostname(),
        os=_os_name(),
        kernel=platform.release(),
        cpu_model=platform.processor() or platform.machine(),
        cpus_online=os.cpu_count() or 1,
        cpus_usable=usable_cpus(),
        memory_bytes=psutil.virtual_memory().total,
        nofile_soft=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        nofile_hard=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        load_average=os.getloadavg()[0],
        cpu_quota=_cpu_quota(),
    )
    return with_grade(add_kernel_facts(machine, _read))


def add_kernel_facts(machine: Machine, read: FileReader) -> Machine:
    """Return ``machine`` with the facts from the kernel's files."""
    cpuinfo, ticks = read(CPUINFO) or "", steal_ticks(read)
    model = re.search(r"^model name\s*: (.+)$", cpuinfo, re.MULTILINE)
    guest = re.search(r"^flags\b.* hypervisor\b", cpuinfo, re.MULTILINE)
    no_turbo, boost, smt = (read(path) for path in (NO_TURBO, BOOST, SMT))
    return machine.model_copy(
        update={
            "governor": read(GOVERNOR),
            "turbo": no_turbo != "1" if no_turbo else boost == "1" if boost else None,
            "smt": smt == "1" if smt else None,
            "virtualised": (read(PRODUCT) or "hypervisor") if guest else None,
            "pressure_cpu": cpu_pressure(read),
            "steal_share": ticks[0] / ticks[1] if ticks and ticks[1] else None,
            "cpu_model": model[1] if model else machine.cpu_model,
        }
    )


def with_grade(machine: Machine) -> Machine:
    """Return ``machine`` with concerns and grade.

    The grades are A (no concern), B (1 concern), C (2 or more) and D (busy, or fewer than 4 CPUs).
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
    """Return the memory that is available without swapping (``MemAvailable``), in bytes."""
    return float(psutil.virtual_memory().available)


def steal_ticks(read: "FileReader | None" = None) -> tuple[float, float] | None:
    """Return the stolen and the total CPU ticks since boot, from the first line of /proc/stat."""
    line = (read or _read)(STAT)
    if not line:
        return None
    ticks = [int(word) for word in line.splitlines()[0].split()[1:9]]
    return float(ticks[7]), float(sum(ticks))


def cpu_pressure(read: "FileReader | None" = None) -> float | None:
    """Return the percentage of the last ten seconds during which a task waited for a CPU (PSI)."""
    text = (read or _read)(PRESSURE)
    return float(text.split("avg10=")[1].split()[0]) if text and "avg10=" in text else None


def raise_open_file_limit() -> int:
    """Raise the soft limit of open files to the hard limit for this process and all children. Return the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _hardware_concerns(machine: Machine, cpus: int) -> Iterator[str]:
    """Yield properties of CPUs and hypervisor that could disturb a measurement."""
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
    """Yield signs of other programs or limits that could disturb a measurement."""
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


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _os_name() -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read(Path("/etc/os-release")) or "", re.MULTILINE)
    return match[1] if match else platform.system()


def _cpu_quota() -> float | None:
    """Return the number of CPUs that the cgroup's quota (v2 or v1) allows, or None if there is no limit."""
    v1 = Path("/sys/fs/cgroup/cpu")
    v1_limits = f"{_read(v1 / 'cpu.cfs_quota_us')} {_read(v1 / 'cpu.cfs_period_us')}"
    quota, period = (_read(Path("/sys/fs/cgroup/cpu.max")) or v1_limits).split()
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else None
