"""The validity check "saturated" flags a real server limited by a lock, but not one limited by a CPU quota."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.cli.scans import NOT_JUDGED
from harness.records.verification_record import Outcome
from harness.tests.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ROOT = Path("/sys/fs/cgroup")
MIN_IDLE_SHARE = 0.5  # with fewer idle CPUs on average, a busy machine looks like a lock
ARGUMENTS = ("--test", "x", "--type", "json", "--concurrency-levels", "256", "--duration", "3")


@pytest.fixture
def quota_group() -> Iterator[Path]:
    """Yield a control group with a quota of 0.2 CPUs."""
    is_v2 = (ROOT / "cgroup.controllers").exists()
    group = ROOT / ("" if is_v2 else "cpu") / f"tfb-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("cpu.max" if is_v2 else "cpu.cfs_quota_us")).write_text("20000 100000" if is_v2 else "20000")
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"{NOT_JUDGED}no control group with a CPU quota can be created: {error}")
    (group / "cgroup.procs").chmod(0o666)  # the server may run under a different account
    yield group
    group.rmdir()


def outcomes(scene: Scene) -> tuple[Outcome, Outcome]:
    """Measure the implementation. Return the outcomes of the validity checks "saturated" and "throttled"."""
    scene.measure(*ARGUMENTS).ends(0)
    (trial,) = [trial for trial in scene.records().trials if trial.purpose == "measure"]
    checks = {check.name: check.outcome for check in trial.validity}
    if (trial.server.idle_seconds or 0.0) < MIN_IDLE_SHARE * trial.duration:
        pytest.skip(f"{NOT_JUDGED}other programs use all CPUs, so no server can leave one idle")
    return checks["saturated"], checks["throttled"]


def test_a_lock_is_flagged_as_not_saturated(scene: Scene) -> None:
    scene.add("x", "sleeps-in-a-lock")
    assert outcomes(scene) == (Outcome.WARN, Outcome.PASS)


def test_a_cpu_quota_counts_as_throttled(scene: Scene, quota_group: Path) -> None:
    scene.add("x")
    path = scene.frameworks / "Python" / "x" / "benchmark_config.json"
    move = f"echo $$ > {quota_group}/cgroup.procs; exec"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"run": [', f'"run": ["sh", "-c", "{move} \\"$@\\"", "sh", '), encoding="utf-8")
    assert outcomes(scene) == (Outcome.PASS, Outcome.WARN)
