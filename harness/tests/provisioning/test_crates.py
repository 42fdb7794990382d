"""The toolset's Rust programs are built once for each version of their sources."""

import shutil
from pathlib import Path

import pytest

from harness.errors import BuildError, EnvironmentLacksError
from harness.provisioning import crates, toolchain


def crate(folder: Path) -> Path:
    (folder / "src" / "part").mkdir(parents=True)
    (folder / "src" / "main.rs").write_text("fn main() {}")
    (folder / "src" / "part" / "a.rs").write_text("")
    (folder / "Cargo.toml").write_text('[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n')
    (folder / "Cargo.lock").write_text('version = 3\n\n[[package]]\nname = "tiny"\nversion = "0.1.0"\n')
    return folder


def test_digest_depends_on_sources_only(tmp_path: Path) -> None:
    source = crate(tmp_path / "tiny")
    before = crates.source_digest(source)
    (source / "README.md").write_text("x")
    assert crates.source_digest(source) == before
    (source / "src" / "part" / "a.rs").rename(source / "src" / "part" / "b.rs")
    assert crates.source_digest(source) != before


def test_missing_cargo_raises_an_error_with_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TFB_STATE", str(tmp_path))
    monkeypatch.setattr(toolchain, "find_tool", lambda *_: None)
    with pytest.raises(EnvironmentLacksError, match=r"cargo >=1\.85: not found on PATH; "):
        crates.loadgen_program()


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")
def test_crate_is_built_once_and_failure_shows_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crates, "TOOLSET", tmp_path)
    monkeypatch.setenv("TFB_STATE", str(tmp_path / "state"))
    source = crate(tmp_path / "tiny")
    built = crates.ensure_built("tiny", "tiny")
    made = built.stat().st_mtime_ns
    assert crates.ensure_built("tiny", "tiny").stat().st_mtime_ns == made
    (source / "src" / "main.rs").write_text("fn main() { 1 }")
    with pytest.raises(BuildError, match="mismatched types"):
        crates.ensure_built("tiny", "tiny")
    assert built.exists()
