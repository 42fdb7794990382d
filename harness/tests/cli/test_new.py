"""A new implementation begins from one of its own language, or blank, and can be read."""

import io
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit
from harness.paths import CONFIG_FILE, FRAMEWORKS
from harness.plan.discovery import read
from harness.plan.testtypes.registry import TEST_TYPES


def made(frameworks: Path, *words: str) -> Path:
    """The folder that ``./tfb new`` made."""
    assert cli.main(["new", *words, "--frameworks", str(frameworks)]) == 0
    (config,) = frameworks.glob(f"*/{words[0]}/{CONFIG_FILE}")
    return config.parent


@pytest.mark.parametrize(
    ("words", "source", "manifest"),
    [
        ("--language go", "Go/net-http", "go.mod"),
        ("--language Rust", "Rust/axum", "Cargo.toml"),
        ("--language java", "Java/resteasy", "pom.xml"),
        ("--from axum", "Rust/axum", "Cargo.toml"),
        ("", "JavaScript/express", "package.json"),
    ],
)
def test_a_copy_has_the_new_name_and_a_dockerfile_that_is_there(
    words: str, source: str, manifest: str, tmp_path: Path
) -> None:
    folder = made(tmp_path, "mine", *words.split())
    assert folder == tmp_path / source.split("/")[0] / "mine"
    assert (folder / manifest).read_bytes() == (FRAMEWORKS / source / manifest).read_bytes()
    ((implementation,), *_) = read(folder / CONFIG_FILE)
    assert (implementation.name, implementation.framework) == ("mine", "mine")
    assert (implementation.dockerfile.name, implementation.dockerfile.is_file()) == ("mine.dockerfile", True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mine --from express --language Go", "nothing in 'Go' to begin from; allowed are JavaScript"),
        ("mine --language Elixir", "nothing in 'Elixir' to begin from"),
        ("mine --language Pyton", "did you mean Python"),
        ("mine --from expres", "did you mean express"),
        ("Mine --from express", "'Mine' is not a valid name"),
        ("all --from express", "'all' is not a valid name"),
        ("express --language Go", "'express' exists"),
        ("mine --blank", "give --language LANG"),
        ("mine --blank --language ../x", "'../x' is not a valid name"),
        ("", "'' is not a valid name"),  # asked for, and nobody there
    ],
)
def test_what_does_not_fit_is_said_and_nothing_is_written(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert cli.main(["new", *words.split(), "--frameworks", str(tmp_path)]) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("language", "spelled"), [("go", "Go"), ("Zig", "Zig")])
def test_a_blank_folder_is_whole_but_for_the_code(
    language: str, spelled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(tmp_path, "mine", "--blank", "--language", language)
    assert capsys.readouterr().out.endswith(
        f"\nNext: ./tfb verify mine --frameworks {tmp_path} --runtime local --watch\n"
    )
    ((implementation,), *_) = read(folder / CONFIG_FILE)
    assert (folder.parent.name, implementation.entry.language) == (spelled, spelled)
    assert tuple(implementation.urls) == tuple(kind for kind, known in TEST_TYPES.items() if known.scored)
    assert "USER" in (folder / "mine.dockerfile").read_text()


def test_a_copy_is_of_one_variant_under_the_new_name_without_the_tags_of_its_source(tmp_path: Path) -> None:
    ((variant,), *_) = read(made(tmp_path, "mine", "--from", "net-http-chi") / CONFIG_FILE)
    assert (variant.dockerfile.name, variant.dockerfile.is_file()) == ("mine.dockerfile", True)
    ((of_core,), *_) = read(made(tmp_path, "other", "--from", "express") / CONFIG_FILE)
    assert (of_core.entry.tags, of_core.core) == ((), False)
