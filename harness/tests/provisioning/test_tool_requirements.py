"""Missing tools are named, and installed only with the user's consent."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.host import process
from harness.host.process import CompletedCommand
from harness.provisioning import advice, crates, requirements, toolchain
from harness.provisioning.requirements import ToolRequirement
from harness.tests.doubles.implementations import implementation

WRK = ToolRequirement(kind="wrk", condition=">=4.1", required_by=(), tool=None)
JAVA = ToolRequirement(kind="java", condition=">=25", required_by=("vertx",), tool=None)


VERSIONS: dict[str, str] = {
    "wrk": "4.1.0-3+b2",
    "nginx": "1.22.1-9",
    "golang-go": "2:1.19~1",
    "openjdk-25-jdk-headless": "25.0.1+8-1",
}
GO = ToolRequirement(kind="go", condition=">=1.25", required_by=("chi",), tool=None)
BUN = ToolRequirement(kind="bun", condition=">=1.2", required_by=("elysia",), tool=None)


def policy(package: str, version: str | None) -> str:
    """Return the output of ``apt-cache policy``, which is empty for an unknown package (``version`` None)."""
    return f"{package}:\n  Installed: (none)\n  Candidate: {version}\n  Version table:\n" if version else ""


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record commands instead of running them. The installation of Java 25 fails."""
    recorded: list[str] = []

    def run(command: Sequence[str], **_: object) -> CompletedCommand:
        if command[:2] == ["apt-cache", "policy"]:
            return CompletedCommand(status=0, stdout=policy(command[-1], VERSIONS.get(command[-1])))
        recorded.append(" ".join(command[1:]))
        return CompletedCommand(status=100 if "openjdk-25" in recorded[-1] else 0, stdout="")

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(toolchain, "find_tool", lambda *_: None)
    advice.apt_version.cache_clear()
    monkeypatch.setattr("harness.provisioning.requirements.shutil.which", lambda _name: "/usr/bin/apt-get")
    monkeypatch.setattr("harness.provisioning.requirements.os.geteuid", lambda: 1000)
    return recorded


def test_requirements_include_tools_of_tfb_and_implementations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "find_tool", lambda _kind, _condition: None)
    monkeypatch.setattr(crates, "find_built", lambda *_: None)
    implementations = [
        implementation(name="vertx", local={"run": ["x"], "requires": requires})
        for requires in ({"java": ">=25"}, {"java": ">=25", "maven": ">=3.6"})
    ]
    needs = requirements.tool_requirements(implementations, own_database=True)
    assert [(n.description, n.required_by) for n in needs] == [
        ("wrk >=4.1", ()),
        ("cargo >=1.85", ()),
        ("postgres >=12", ()),
        ("java >=25", ("vertx", "vertx")),
        ("maven >=3.6", ("vertx",)),
    ]
    assert requirements.tool_requirements([], own_database=False, wrk=False, loads=False) == ()


def test_nothing_is_installed_without_consent(commands: list[str], tmp_path: Path) -> None:
    notes = requirements.install_missing([WRK, JAVA], "no", tmp_path / "log")
    assert notes == ("To install: sudo apt-get install openjdk-25-jdk-headless wrk",)
    assert commands == []


def test_only_missing_packages_are_installed_with_consent(commands: list[str], tmp_path: Path) -> None:
    notes = requirements.install_missing([WRK, JAVA], "yes", tmp_path / "log")
    assert commands == [
        f"-n /usr/bin/apt-get {words}"
        for words in (
            "update",
            "install -y --no-install-recommends --no-remove -- openjdk-25-jdk-headless",
            "install -y --no-install-recommends --no-remove -- wrk",
        )
    ]
    assert notes == (f"apt-get install openjdk-25-jdk-headless failed; see {tmp_path}/log", "installed wrk")


def test_remedy_without_apt_is_manual_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    toolchain.forget_tools()  # an earlier test may have found wrk
    monkeypatch.setattr("harness.provisioning.requirements.shutil.which", lambda _name: None)
    (note,) = requirements.install_missing([WRK], "yes", tmp_path / "log")
    toolchain.forget_tools()
    assert note.startswith("wrk >=4.1: not found on PATH; install it with this system's package manager")


def test_packages_missing_in_apt_are_not_installed(commands: list[str], tmp_path: Path) -> None:
    notes = requirements.install_missing([WRK, GO, BUN], "no", tmp_path / "log")
    assert notes[0] == "To install: sudo apt-get install wrk"
    assert "go >=1.25: found /usr/bin/apt-get, which prints no version" in notes[1]
    assert notes[1].endswith("; apt has only golang-go 2:1.19~1: install it from https://go.dev/dl")
    assert notes[2].endswith("; apt has no package bun: install it from https://bun.sh")
    assert requirements.missing_packages([GO, BUN]) == ()
    requirements.install_missing([GO, BUN], "yes", tmp_path / "log")
    assert [command for command in commands if "install" in command] == []


@pytest.mark.parametrize("service_manager", [False, True])
def test_packages_that_start_servers_are_not_installed(
    commands: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, service_manager: bool
) -> None:
    monkeypatch.setattr(requirements, "SERVICE_MANAGER", tmp_path / ("" if service_manager else "missing"))
    nginx = ToolRequirement(kind="nginx", condition=">=1.18", required_by=("php",), tool=None)
    notes = requirements.install_missing([nginx], "yes", tmp_path / "log")
    assert any("install -y" in command for command in commands) is not service_manager
    assert ("also starts a server" in str(notes)) is service_manager
