"""Attack: files in the current folder try to change the behaviour of programs that tfb starts."""

import shutil
from pathlib import Path

import pytest

from harness.extras.deployments import connected_machine
from harness.host import process
from harness.provisioning import crates


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder. Its cargo settings run a wrapper that creates the file ``proof``."""
    folder = tmp_path / "current"
    (folder / ".cargo").mkdir(parents=True)
    wrapper = folder / "wrapper"
    wrapper.write_text(f'#!/bin/sh\ntouch "{tmp_path / "proof"}"\nexec "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    (folder / ".cargo" / "config.toml").write_text(f'[build]\nrustc-wrapper = "{wrapper}"\n', encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("hostile")
def test_helpers_start_outside_the_current_folder() -> None:
    assert process.run(["pwd"], seconds=10).stdout == "/\n"


def test_a_program_starts_where_it_is_told(hostile: Path) -> None:
    (hostile / "below").mkdir()
    assert process.run(["pwd"], seconds=10, cwd=Path("below")).stdout == f"{hostile / 'below'}\n"


@pytest.mark.usefixtures("hostile")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")
def test_cargo_ignores_the_current_folders_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crates, "TOOLSET", tmp_path)
    monkeypatch.setenv("TFB_STATE", str(tmp_path / "state"))
    source = tmp_path / "tiny"
    (source / "src").mkdir(parents=True)
    (source / "src" / "main.rs").write_text("fn main() {}", encoding="utf-8")
    (source / "Cargo.toml").write_text('[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n')
    (source / "Cargo.lock").write_text('version = 3\n\n[[package]]\nname = "tiny"\nversion = "0.1.0"\n')
    assert crates.ensure_built("tiny", "tiny").is_file()
    assert not (tmp_path / "proof").exists()


def test_ssh_reads_the_users_configuration_only(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFB_SSH_CONFIG", "mine")
    assert connected_machine.configuration() == ("-F", str(hostile / "mine"))
