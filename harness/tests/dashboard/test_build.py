"""Builds of the dashboard page, with and without Node.js."""

import os
import shutil
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness.dashboard import build
from harness.errors import BuildError, EnvironmentLacksError
from harness.host.process import CompletedCommand
from harness.paths import DOCKER


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """Return a folder with the source files of a page."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.tsx").write_text("1")
    (tmp_path / "package-lock.json").write_text("{}")
    return tmp_path


def test_page_is_rebuilt_when_sources_or_lock_change(
    web: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(command: list[str], **_: object) -> CompletedCommand:
        ran.append(" ".join(command))
        (web / "dist").mkdir(exist_ok=True)
        (web / "node_modules").mkdir(exist_ok=True)
        if "npm ci" in ran[-1]:
            (web / "node_modules" / ".package-lock.json").touch()
        return CompletedCommand(status=0, stdout="v22.1.0\n")

    monkeypatch.setattr(build, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")

    def built() -> list[str]:
        ran.clear()
        assert build.ensure_built(web) == web / "dist"
        return ran

    assert built() == ["node --version", "npm ci --no-fund --no-audit", "npm run build"]
    assert built() == []
    (web / "src" / "main.tsx").write_text("2")
    assert built() == ["node --version", "npm run build"]
    (web / "package-lock.json").write_text("{ }")
    os.utime(web / "package-lock.json", (time.time() + 60, time.time() + 60))
    assert "npm ci --no-fund --no-audit" in built()
    assert capsys.readouterr().out == ""  # builds print to stderr only


def test_failed_build_leaves_no_stamp(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "build_commands", lambda _: [["npm", "run", "build"]])
    monkeypatch.setattr(build, "run", lambda *_, **__: CompletedCommand(status=2, stdout="TS2322: no"))
    with pytest.raises(BuildError, match="TS2322: no"):
        build.ensure_built(web)
    assert not (web / "dist" / build.STAMP).exists()


def test_docker_builds_without_node(
    web: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/docker" if name == "docker" else None)
    base, command = build.build_commands(web)
    assert base == [str(DOCKER / "bootstrap-base")]
    assert (command[:2], command[-2:]) == (["docker", "build"], [str(web / "dist"), str(web)])
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(EnvironmentLacksError, match=r"Node\.js 20\.19 or newer .*, or Docker: n(ode|pm)"):
        build.build_commands(web)


def test_web_address_of_a_remote_has_no_credentials() -> None:
    addresses: dict[str, str | None] = {
        "https://github.com/o/r.git": "https://github.com/o/r",
        "https://user:token@host.example/o/r": "https://host.example/o/r",
        "git@github.com:o/r.git": "https://github.com/o/r",
        "ssh://git@host.example/o/r.git": "https://host.example/o/r",
        **dict.fromkeys(("/srv/git/r.git", "file:///srv/git/r.git", "javascript:alert(1)", "")),
    }
    assert {remote: build.web_address(remote) for remote in addresses} == addresses


def test_build_reports_commands_and_duration(
    web: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], **_: object) -> CompletedCommand:
        (web / "dist").mkdir(exist_ok=True)
        return CompletedCommand(status=0, stdout="")

    monkeypatch.setattr(build, "build_commands", lambda _: [["npm", "ci"], ["npm", "run", "build"]])
    monkeypatch.setattr(build, "run", run)
    monkeypatch.setattr(build, "heartbeat", lambda tell, interval: nullcontext(tell(interval)))
    assert not build.is_built(web)
    build.ensure_built(web)
    assert build.is_built(web)
    lines = capsys.readouterr().err.splitlines()
    assert "one to two minutes (npm ci; npm run build)" in lines[0]
    assert lines[1:] == ["tfb: npm ci: 10 s", "tfb: npm run build: 10 s"]
    build.ensure_built(web)
    assert capsys.readouterr().err == ""
