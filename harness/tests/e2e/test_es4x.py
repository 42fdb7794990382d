"""ES4X runs on the optimising compiler: its second tier compiles, and nothing fails to compile."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from harness.host import toolchain
from harness.plan.discovery import scan
from harness.runtime.local import LocalRuntime

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LOAD_SECONDS = 150  # at most; a few seconds suffice where a CPU is free


def compiled(log: Path, how: str, tier: int | None = None) -> list[str]:
    """The trace's lines of compilations that ended so."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if f"opt {how}" in line]
    return lines if tier is None else [line for line in lines if re.search(rf"Tier {tier}\b", line)]


def test_the_second_tier_compiles_and_no_compilation_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under load on every path, with compilations traced, until the second tier has begun."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dpolyglot.engine.TraceCompilation=true")
    implementation = next(i for i in scan().implementations if i.name == "es4x")
    runtime = LocalRuntime(work=tmp_path)
    build = runtime.build(implementation, tmp_path / "build.log")
    assert build.status == "ok", build.reason
    log = tmp_path / "es4x.log"
    until = time.monotonic() + LOAD_SECONDS
    with (
        runtime.database() as database,
        runtime.start(implementation, database.address, log, ready_path=implementation.ready_path) as server,
    ):
        while time.monotonic() < until and not compiled(log, "done", tier=2):
            for name, url in implementation.urls.items():
                target = server.endpoint.url(f"{url}20" if name in ("query", "update") else url)
                subprocess.run(["wrk", "-d", "3", "-c", "32", "-t", "1", target], check=True, capture_output=True)
        server.meter.require_alive()
    assert compiled(log, "done", tier=2)
    assert compiled(log, "failed") == []


def test_it_refuses_to_start_on_the_interpreter(tmp_path: Path) -> None:
    implementation = next(i for i in scan().implementations if i.name == "es4x")
    assert implementation.local is not None
    LocalRuntime(work=tmp_path).build(implementation, tmp_path / "build.log")
    wanted = implementation.local.requires["java"]
    assert not toolchain.satisfies((26,), wanted)  # nothing but JDK 25 goes with this Graal
    java = toolchain.find("java", wanted)
    assert java is not None
    arguments = (implementation.folder / "java.args").read_text()
    without = tmp_path / "java.args"
    without.write_text(arguments.replace("-XX:+EnableJVMCI", "-XX:-EnableJVMCI"))
    assert without.read_text() != arguments
    command, environment = [str(java.program), f"@{without}"], {**os.environ, "PORT": "0"}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=implementation.folder, env=environment, timeout=120
    )
    assert done.returncode not in (0, None)
    assert "interpreted" in (done.stdout + done.stderr).lower()
