"""Limits of nested control groups (v1 and v2)."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.host.machine import ControlGroups

MIB = 1 << 20


def groups(folder: Path, membership: str, files: Mapping[str, str]) -> ControlGroups:
    """Create fake control groups.

    ``membership`` is the text of /proc/self/cgroup; ``files`` go below /sys/fs/cgroup.
    """
    for name, text in {"proc/cgroup": membership, **{f"cgroup/{name}": text for name, text in files.items()}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return ControlGroups(proc=folder / "proc", root=folder / "cgroup")


V2 = "0::/a/b/c\n"
V1 = "4:memory:/a/b\n2:cpu,cpuacct:/a/b\n0::/\n"


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        (V2, {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000", "a/b/c/cpu.max": "max 100000"}, 2.0),
        (V2, {"a/cpu.max": "200000 100000", "a/b/c/cpu.max": "50000 100000"}, 0.5),
        (V2, {"cpu.max": "150000 100000"}, 1.5),
        (V2, {"a/cpu.max": "max 100000"}, None),
        ("0::/\n", {"cpu.max": "100000 100000"}, 1.0),
        ("0::/../../elsewhere\n", {"cpu.max": "100000 100000"}, 1.0),
        (V1, {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"}, 3.0),
        (V1, {"cpu,cpuacct/a/b/cpu.cfs_quota_us": "50000", "cpu,cpuacct/a/b/cpu.cfs_period_us": "100000"}, 0.5),
        (V1, {"cpu/a/b/cpu.cfs_quota_us": "-1", "cpu/a/b/cpu.cfs_period_us": "100000"}, None),
        ("", {}, None),
    ],
)
def test_smallest_quota_on_the_path_applies(
    membership: str, files: Mapping[str, str], quota: float | None, tmp_path: Path
) -> None:
    assert groups(tmp_path, membership, files).cpu_quota() == quota


@pytest.mark.parametrize(
    ("membership", "files", "limit"),
    [
        (V2, {"a/memory.max": f"{512 * MIB}", "a/b/c/memory.max": "max"}, 512 * MIB),
        (V2, {"a/memory.max": f"{512 * MIB}", "a/b/memory.max": f"{64 * MIB}"}, 64 * MIB),
        (V2, {"memory.max": f"{100 * MIB}"}, 100 * MIB),
        (V1, {"memory/memory.limit_in_bytes": "9" * 18, "memory/a/memory.limit_in_bytes": f"{MIB}"}, MIB),
        ("2:cpu,cpuacct:/a\n", {"memory/memory.limit_in_bytes": f"{MIB}"}, None),
        ("0::/\n", {}, None),
    ],
)
def test_smallest_memory_limit_on_the_path_applies(
    membership: str, files: Mapping[str, str], limit: float | None, tmp_path: Path
) -> None:
    assert groups(tmp_path, membership, files).memory_limit() == limit


def test_free_memory_is_that_of_the_fullest_group(tmp_path: Path) -> None:
    files = {
        "a/memory.max": f"{512 * MIB}",
        "a/memory.current": f"{500 * MIB}",
        "a/memory.stat": f"anon 1\ninactive_file {20 * MIB}\n",
        "a/b/memory.max": f"{100 * MIB}",
        "a/b/memory.current": f"{MIB}",
    }
    assert groups(tmp_path, V2, files).free_memory() == 32 * MIB
    v1 = {
        "memory/a/memory.limit_in_bytes": f"{64 * MIB}",
        "memory/a/memory.usage_in_bytes": f"{60 * MIB}",
        "memory/a/memory.stat": f"total_inactive_file {MIB}\n",
    }
    assert groups(tmp_path / "v1", V1, v1).free_memory() == 5 * MIB
    assert groups(tmp_path / "none", V1, {}).free_memory() is None


QUOTA_V1 = {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize(
    ("membership", "files", "throttled"),
    [
        (V2, {"a/cpu.max": "200000 100000", "a/cpu.stat": "usage_usec 5\nthrottled_usec 1500000"}, 1.5),
        (V2, {"a/cpu.max": "200000 100000"}, 0.0),
        (V2, {"a/b/c/cpu.max": "max 100000", "a/b/c/cpu.stat": "throttled_usec 1500000"}, None),
        (V1, QUOTA_V1 | {"cpu/a/cpu.stat": "nr_periods 3\nthrottled_time 250000000"}, 0.25),
        (V1, QUOTA_V1 | {"cpu/a/cpu.cfs_quota_us": "-1"}, None),
    ],
)
def test_only_groups_with_a_quota_are_throttled(
    membership: str, files: Mapping[str, str], throttled: float | None, tmp_path: Path
) -> None:
    assert groups(tmp_path, membership, files).throttled_seconds() == throttled
