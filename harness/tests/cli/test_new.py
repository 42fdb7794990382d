"""A new implementation begins from one of its own language, and passes as a configuration at once."""

from pathlib import Path

import pytest

from harness.cli import new
from harness.errors import UsageError
from harness.paths import FRAMEWORKS
from harness.request.discovery import CONFIG_FILE, read


def made(frameworks: Path, *words: str) -> Path:
    """The folder that ``./tfb new`` made."""
    assert new.main([*words, "--frameworks", str(frameworks)]) == 0
    (config,) = frameworks.glob(f"*/{words[0]}/{CONFIG_FILE}")
    return config.parent


@pytest.mark.parametrize(
    ("language", "source", "manifest"),
    [
        ("go", "Go/net-http", "go.mod"),
        ("Rust", "Rust/axum", "Cargo.toml"),
        ("python", "Python/starlette", "requirements.in"),
        ("JavaScript", "JavaScript/express", "package.json"),
        ("java", "Java/resteasy", "pom.xml"),
    ],
)
def test_a_language_begins_from_its_own_implementation(
    language: str, source: str, manifest: str, tmp_path: Path
) -> None:
    folder = made(tmp_path, "mine", "--language", language)
    assert folder == tmp_path / source.split("/")[0] / "mine"
    assert (folder / manifest).read_bytes() == (FRAMEWORKS / source / manifest).read_bytes()


def test_its_configuration_has_the_new_name_and_a_dockerfile_that_is_there(tmp_path: Path) -> None:
    folder = made(tmp_path, "my-go", "--language", "Go")
    (implementation,) = read(folder / CONFIG_FILE)
    assert (implementation.name, implementation.framework, implementation.entry.language) == ("my-go", "my-go", "Go")
    assert implementation.dockerfile == folder / "my-go.dockerfile"
    assert implementation.dockerfile.is_file()


def test_without_a_language_it_is_that_of_the_source(tmp_path: Path) -> None:
    assert made(tmp_path, "mine", "--from", "axum").parent.name == "Rust"
    assert made(tmp_path, "another").parent.name == "JavaScript"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--from express --language Go", "--from express is JavaScript, --language says Go: leave one of them out"),
        ("--language Elixir", "no implementation in 'Elixir' to begin from"),
        ("--language Pyton", "did you mean Python"),
        ("--from expres", "did you mean express"),
    ],
)
def test_another_language_than_the_source_writes_nothing(words: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        new.main(["mine", *words.split(), "--frameworks", str(tmp_path)])
    assert not list(tmp_path.iterdir())
