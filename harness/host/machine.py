"""Facts of a machine, and its grade: what would disturb a measurement. Needs no root and demands no quiet.

What stands in files of the kernel is read by whoever can: ``FileReader`` is this machine's, or another's as it was sent.
"""

import os
import platform
import re
import resource
import socket
from collections.abc import Callable
from pathlib import Path

import psutil

from harness.errors import EnvironmentLacksError
from harness.records.machine_record import Machine

CPU = Path("/sys/devices/system/cpu")
CPUINFO, STAT, PRESSURE = Path("/proc/cpuinfo"), Path("/proc/stat"), Path("/proc/pressure/cpu")
PRODUCT = Path("/sys/class/dmi/id/product_name")
GOVERNOR, SMT = CPU / "cpu0/cpufreq/scaling_governor", CPU / "smt/active"
NO_TURBO, BOOST = CPU / "intel_pstate/no_turbo", CPU / "cpufreq/boost"
# What ``add_kernel_facts`` asks for: small files that say the same in a container.
FILES = (CPUINFO, STAT, PRESSURE, PRODUCT, GOVERNOR, SMT, NO_TURBO, BOOST)
FileReader = Callable[[Path], str | None]  # the text of a file, stripped; None where there is none


def read_machine() -> Machine:
    """The machine as it is now, graded."""
    known = Machine(
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
    return with_grade(add_kernel_facts(known, _read))


def add_kernel_facts(known: Machine, read: FileReader) -> Machine:
    """The machine with what its kernel's files tell."""
    cpuinfo, ticks = read(CPUINFO) or "", steal_ticks(read)
    model = re.search(r"^model name\s*: (.+)$", cpuinfo, re.MULTILINE)
    guest = re.search(r"^flags\b.* hypervisor\b", cpuinfo, re.MULTILINE)
    no_turbo, boost, smt = (read(path) for path in (NO_TURBO, BOOST, SMT))
    return known.model_copy(
        update={
            "governor": read(GOVERNOR),
            "turbo": no_turbo != "1" if no_turbo else boost == "1" if boost else None,
            "smt": smt == "1" if smt else None,
            "virtualised": (read(PRODUCT) or "hypervisor") if guest else None,
            "pressure_cpu": cpu_pressure(read),
            "steal_share": ticks[0] / ticks[1] if ticks and ticks[1] else None,
            "cpu_model": model[1] if model else known.cpu_model,
        }
    )


def with_grade(known: Machine) -> Machine:
    """The machine with what would disturb a measurement there, and its grade.

    ``A``: fixed clock, own cores, quiet; ``B``: one concern; ``C``: several; ``D``: too few CPUs, or busy.
    """
    concerns = _concerns(known)
    busy = (known.pressure_cpu or 0) > 20 or (known.load_average or 0) > len(known.cpus_usable)
    grade = "D" if busy or len(known.cpus_usable) < 4 else "ABC"[min(len(concerns), 2)]
    return known.model_copy(update={"concerns": concerns, "grade": grade})


def usable_cpus() -> tuple[int, ...]:
    """CPUs that this process may run on; raises EnvironmentLacksError on another system than Linux."""
    if not hasattr(os, "sched_getaffinity"):
        raise EnvironmentLacksError("measuring needs Linux: a machine, a virtual machine or a container with it")
    return tuple(sorted(os.sched_getaffinity(0)))


def free_memory() -> float:
    """Bytes that further processes may take without swapping (``MemAvailable``)."""
    return float(psutil.virtual_memory().available)


def steal_ticks(read: "FileReader | None" = None) -> tuple[float, float] | None:
    """(stolen, all) CPU ticks of the machine so far, from the first line of /proc/stat."""
    line = (read or _read)(STAT)
    if not line:
        return None
    ticks = [int(word) for word in line.splitlines()[0].split()[1:9]]
    return float(ticks[7]), float(sum(ticks))


def cpu_pressure(read: "FileReader | None" = None) -> float | None:
    """Share of the last ten seconds in which some task waited for a CPU, in per cent (PSI)."""
    text = (read or _read)(PRESSURE)
    return float(text.split("avg10=")[1].split()[0]) if text and "avg10=" in text else None


def raise_open_file_limit() -> int:
    """Raise the soft limit of open files to the hard one, for this process and its children; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _concerns(machine: Machine) -> tuple[str, ...]:
    """What would disturb a measurement, one sentence each with what mends it."""
    cpus = len(machine.cpus_usable)
    found = []
    if machine.governor not in (None, "performance"):
        found.append(f"CPU governor is {machine.governor}, not performance: clock speed follows the load")
    if machine.turbo:
        found.append("turbo is on: clock speed follows temperature and the number of busy cores")
    if machine.smt:
        found.append("SMT is on: two busy threads share a core")
    if cpus < 4:
        found.append(f"only {cpus} CPUs: server, database and generator share them; compare CPU per request")
    if machine.virtualised:
        found.append(f"virtual machine ({machine.virtualised}): neighbours can take CPU time unseen")
    if machine.load_average is not None and machine.load_average > 0.3 * cpus:
        found.append(f"load average {machine.load_average:.1f} before the run: something else is working")
    if machine.pressure_cpu is not None and machine.pressure_cpu > 5:
        found.append(f"CPU pressure {machine.pressure_cpu:.0f} %: tasks wait for CPUs")
    if machine.steal_share is not None and machine.steal_share > 0.01:
        found.append(f"{machine.steal_share:.1%} of CPU time stolen by the hypervisor since boot")
    if machine.cpu_quota is not None and machine.cpu_quota < cpus:
        found.append(f"a cgroup quota of {machine.cpu_quota:.1f} CPUs throttles what runs here")
    if machine.nofile_hard is not None and machine.nofile_hard < 18_000:
        found.append(f"at most {machine.nofile_hard} open files: not enough for 16,384 connections")
    return tuple(found)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _os_name() -> str:
    named = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read(Path("/etc/os-release")) or "", re.MULTILINE)
    return named[1] if named else platform.system()


def _cpu_quota() -> float | None:
    """CPUs that the cgroup's quota allows, v2 then v1; None without a limit."""
    v1 = Path("/sys/fs/cgroup/cpu")
    of_v1 = f"{_read(v1 / 'cpu.cfs_quota_us')} {_read(v1 / 'cpu.cfs_period_us')}"
    quota, period = (_read(Path("/sys/fs/cgroup/cpu.max")) or of_v1).split()
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else None
