"""Facts that tfb collects about remote machines, and the resulting grades."""

from harness.extras.deployments.survey import facts

INFO: dict[str, object] = {
    "Name": "app", "OperatingSystem": "Debian GNU/Linux 13", "KernelVersion": "6.12", "NCPU": 8, "MemTotal": 16 << 30,
}  # fmt: skip
FILES = {
    "/proc/cpuinfo": "processor : 0\nmodel name\t: Fast CPU\nflags\t\t: fpu",
    "/proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0",
    "/proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "/sys/devices/system/cpu/smt/active": "0",
}


def found(files: dict[str, str | None], load: str = "0.10 0.1 0.1 1/9 9") -> dict[str, object]:
    return {"nofile": 100_000, "cpus": list(range(8)), "load": load, "files": files}


def test_remote_machines_are_graded_like_this_machine() -> None:
    quiet = facts(INFO, found({**FILES, "/sys/class/dmi/id/product_name": None}))
    assert (quiet.hostname, quiet.cpu_model, quiet.cpus_usable) == ("app", "Fast CPU", tuple(range(8)))
    assert (quiet.governor, quiet.turbo, quiet.smt, quiet.virtualised) == ("performance", False, False, None)
    assert (quiet.grade, quiet.concerns) == ("A", ())
    guest = FILES | {"/proc/cpuinfo": "model name : Fast CPU\nflags : fpu hypervisor"}
    busy = facts(INFO, found({**guest, "/sys/class/dmi/id/product_name": "KVM"}, load="20.0 1 1"))
    assert (busy.virtualised, busy.grade) == ("KVM", "D")
    assert any("load average 20.0" in concern for concern in busy.concerns)
