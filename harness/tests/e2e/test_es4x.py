"""ES4X must refuse to start without the optimising compiler."""

from pathlib import Path

import pytest

from harness.errors import ServerDiedError, StartError
from harness.plan.discovery import scan_folders
from harness.runtime import NO_DATABASE
from harness.runtime.local import LocalRuntime

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_it_refuses_to_start_on_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the server listens, it checks that the second-tier compiler can compile a function."""
    implementation = next(i for i in scan_folders().implementations if i.name == "es4x")
    runtime = LocalRuntime(work=tmp_path)
    build = runtime.build(implementation, tmp_path / "build.log")
    assert build.status == "ok", build.reason
    monkeypatch.setenv("TFB_PASS_ENV", "_JAVA_OPTIONS")
    monkeypatch.setenv("_JAVA_OPTIONS", "-XX:-EnableJVMCI")  # this variable overrides java.args
    start = runtime.start(implementation, NO_DATABASE, tmp_path / "log", ready_path="/json")
    with pytest.raises((StartError, ServerDiedError), match="would only be interpreted"), start:
        pass
