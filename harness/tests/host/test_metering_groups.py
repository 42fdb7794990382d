"""Counters of control groups, v1 and v2, from folders written as the kernel writes them."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.errors import ServerDiedError
from harness.host.metering import CgroupMeter

CONTAINER = "docker/4f2a"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Kernel:
    """/proc and /sys/fs/cgroup of a machine with one container; its process is this one, so that it has threads."""

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


def v1(folder: Path, *, shared: bool) -> Kernel:
    cpu, cpuacct = ("cpu,cpuacct", "cpu,cpuacct") if shared else ("cpu", "cpuacct")
    controllers = "3:cpu,cpuacct:" if shared else f"3:cpu:/{CONTAINER}\n2:cpuacct:"
    return Kernel(
        folder,
        f"5:memory:/{CONTAINER}\n{controllers}/{CONTAINER}\n1:name=systemd:/{CONTAINER}\n0::/{CONTAINER}\n",
        {
            f"{cpuacct}/{CONTAINER}/cgroup.procs": f"{os.getpid()}\n",
            f"{cpuacct}/{CONTAINER}/cpuacct.usage": "1500000000\n",
            f"{cpu}/{CONTAINER}/cpu.stat": "nr_periods 10\nnr_throttled 2\nthrottled_time 250000000\n",
            f"memory/{CONTAINER}/memory.stat": "cache 9000000\nrss 1\nmapped_file 1\n"
            "total_cache 9000000\ntotal_rss 1000000\ntotal_mapped_file 200000\n",
        },
    )


@pytest.fixture(params=["v2", "v1", "v1 with cpu and cpuacct in one hierarchy"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    return v2(tmp_path) if request.param == "v2" else v1(tmp_path, shared=request.param != "v1")


def test_cpu_throttling_and_memory_are_the_groups_own_in_seconds_and_bytes(kernel: Kernel) -> None:
    reading = kernel.meter().read()
    assert reading.cpu_seconds == 1.5
    assert reading.throttled_seconds == 0.25
    assert reading.rss == 1_200_000  # without the page cache
    assert reading.pids == (kernel.pid,)


def test_run_and_wait_times_are_those_of_its_processes_threads(kernel: Kernel) -> None:
    run, wait, _ = Path("/proc/self/schedstat").read_text().split()
    reading = kernel.meter().read()
    assert reading.run_seconds is not None
    assert reading.wait_seconds is not None
    assert int(run) / 1e9 <= reading.run_seconds < int(run) / 1e9 + 60
    assert int(wait) / 1e9 <= reading.wait_seconds


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text(""), "no process is left in the container of process"),
        (lambda path: path.unlink(), "the container of process .* is gone"),
    ],
    ids=["without processes", "gone"],
)
def test_a_group_without_processes_or_that_is_gone_is_a_server_that_died(
    spoil: Callable[[Path], object], said: str, kernel: Kernel
) -> None:
    meter = kernel.meter()
    for path in kernel.root.rglob("cgroup.procs"):
        spoil(path)
    with pytest.raises(ServerDiedError, match=said):
        meter.read()
    with pytest.raises(ServerDiedError, match="process 4000000 is gone"):
        CgroupMeter(4_000_000, kernel.proc, kernel.root)


def test_without_the_memory_controller_memory_is_unknown(kernel: Kernel) -> None:
    for path in kernel.root.rglob("memory.stat"):
        path.unlink()
    assert kernel.meter().read().rss is None


def test_without_the_cpu_controller_v2_still_counts_cpu_and_knows_of_no_throttling(tmp_path: Path) -> None:
    kernel = v2(tmp_path)
    write(kernel.root, {f"system.slice/{CONTAINER}/cpu.stat": "usage_usec 40000\nuser_usec 30000\nsystem_usec 10000\n"})
    reading = kernel.meter().read()
    assert (reading.cpu_seconds, reading.throttled_seconds) == (0.04, 0.0)
