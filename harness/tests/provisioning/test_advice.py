"""Messages about missing tools name the installed version and a remedy."""

from pathlib import Path

import pytest

from harness.cli import doctor
from harness.host import process
from harness.host.process import CompletedCommand
from harness.provisioning import advice, toolchain
from harness.provisioning.requirements import ToolRequirement
from harness.provisioning.toolchain import Tool
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.implementations import implementation

OLD = Tool(kind="go", version=(1, 19, 8), program=Path("/usr/bin/go"))


@pytest.fixture
def old_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine that has Go 1.19 and whose distribution offers Go 1.24."""

    def policy(*_: object, **__: object) -> CompletedCommand:
        return CompletedCommand(status=0, stdout="golang-go:\n  Installed: (none)\n  Candidate: 2:1.24~2\n")

    monkeypatch.delenv("COLUMNS", raising=False)  # do not wrap lines
    monkeypatch.setattr(
        toolchain, "find_tool", lambda _, condition=">=0", **_more: OLD if condition in (">=0", ">=1.19") else None
    )
    monkeypatch.setattr(process, "run", policy)
    monkeypatch.setattr("harness.provisioning.advice.shutil.which", lambda name: f"/usr/bin/{name}")
    advice.apt_version.cache_clear()


@pytest.mark.parametrize(
    ("condition", "remedy"),
    [
        (">=1.24", "install it: apt-get install golang-go"),
        (">=1.25", "apt has only golang-go 2:1.24~2: install it from https://go.dev/dl"),
        ("==1.23", "apt has only golang-go 2:1.24~2: install it from https://go.dev/dl"),
    ],
)
def test_doctor_and_skipped_build_give_same_advice(
    old_go: None, condition: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    advice_text = f"found 1.19.8 (/usr/bin/go); {remedy}"
    one = implementation(tmp_path, local={"run": ["x"], "requires": {"go": condition}})
    build = LocalRuntime(work=tmp_path).build(one, tmp_path / "log")
    assert build.reason == f"needs go {condition}: {advice_text} (benchmark_config.json: local.requires)"
    doctor.show_tools([ToolRequirement(kind="go", condition=condition, required_by=("chi",), tool=None)])
    assert f"missing: {advice_text}" in capsys.readouterr().out


def test_installed_tool_gets_no_advice(old_go: None, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.show_tools([ToolRequirement(kind="go", condition=">=1.19", required_by=("chi",), tool=OLD)])
    assert "missing" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("2:1.19~1", (1, 19)),
        ("15+248", (15,)),
        ("25.0.1+8-1", (25, 0, 1)),
        ("1.14.0.dfsg-2", (1, 14, 0)),
        ("20.19.2+dfsg-1+deb13u3", (20, 19, 2)),
        ("x", None),
    ],
)
def test_upstream_version_is_parsed_from_package_version(version: str, numbers: tuple[int, ...] | None) -> None:
    assert advice.parse_upstream_version(version) == numbers


def test_unknown_package_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    policy_output = "golang-go-doc:\n  Candidate: 1\ngone:\n  Installed: (none)\n  Candidate: (none)\n"
    monkeypatch.setattr(process, "run", lambda *_, **__: CompletedCommand(status=0, stdout=policy_output))
    advice.apt_version.cache_clear()
    assert [advice.apt_version(name) for name in ("golang-go", "gone", "golang.go-doc")] == [None, None, None]
    advice.apt_version.cache_clear()
