"""``./tfb new`` creates a valid implementation folder, copied or blank."""

import io
import re
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit
from harness.paths import CONFIG_FILE
from harness.plan.discovery import read_config, scan_folders
from harness.plan.testtypes.registry import TEST_TYPES


def create(frameworks: Path, *words: str) -> Path:
    """Run ``./tfb new`` and return the new folder."""
    assert cli.main(["new", *words, "--frameworks", str(frameworks)]) == 0
    (config,) = frameworks.glob(f"*/{words[0]}/{CONFIG_FILE}")
    return config.parent


@pytest.mark.parametrize(
    ("words", "language", "source"),
    [
        ("--language go", "Go", None),  # any implementation in this language
        ("--language Rust", "Rust", None),
        ("--language java", "Java", None),
        ("--from axum", "Rust", "axum"),
        ("", "JavaScript", "express"),
    ],
)
def test_a_copy_has_the_new_name(words: str, language: str, source: str | None, tmp_path: Path) -> None:
    folder = create(tmp_path, "mine", *words.split())
    assert folder == tmp_path / language / "mine"
    (source_name,) = re.findall(r"^Created from `(.+)`\.$", (folder / "README.md").read_text(), re.MULTILINE)
    assert source in (None, source_name)
    origin = next(one for one in scan_folders().implementations if one.name == source_name)
    copied = [path for path in folder.iterdir() if path.is_file() and path.name not in (CONFIG_FILE, "README.md")]
    same = [path for path in copied if not path.name.startswith("mine.dockerfile")]
    assert same
    assert [path.name for path in same if path.read_bytes() != (origin.folder / path.name).read_bytes()] == []
    ((implementation,), *_) = read_config(folder / CONFIG_FILE)
    assert (implementation.name, implementation.framework) == ("mine", "mine")
    assert (implementation.dockerfile.name, implementation.dockerfile.is_file()) == ("mine.dockerfile", True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mine --from express --language Go", "there is no implementation in 'Go' to copy; choose from JavaScript"),
        ("mine --language No-such-language", "there is no implementation in 'No-such-language' to copy"),
        ("mine --language Pyton", "did you mean Python"),
        ("mine --from expres", "did you mean express"),
        ("mine --type jsn", "did you mean json"),
        pytest.param(
            *("mine --from gin --type protocols", "none of gin offers all of json-items"),
            marks=pytest.mark.needs_extra("protocols"),
        ),
        ("Mine --from express", "'Mine' is not a valid name"),
        ("all --from express", "'all' is not a valid name"),
        ("express --language Go", "'express' already exists"),
        ("mine --blank", "specify --language LANG"),
        ("mine --blank --language ../x", "'../x' is not a valid name"),
        ("", "'' is not a valid name"),  # the user answers the prompt with an empty line
    ],
)
def test_invalid_arguments_of_new_write_nothing(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert cli.main(["new", *words.split(), "--frameworks", str(tmp_path)]) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("language", "spelled"), [("go", "Go"), ("New-language", "New-language")])
def test_a_blank_folder_lacks_only_code(
    language: str, spelled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = create(tmp_path, "mine", "--blank", "--language", language)
    assert capsys.readouterr().out.endswith(
        f"\nNext: ./tfb verify mine --frameworks {tmp_path} --runtime local --watch\n"
    )
    ((implementation,), *_) = read_config(folder / CONFIG_FILE)
    assert (folder.parent.name, implementation.entry.language) == (spelled, spelled)
    assert tuple(implementation.urls) == tuple(kind for kind, known in TEST_TYPES.items() if known.scored)
    assert "USER" in (folder / "mine.dockerfile").read_text()


@pytest.mark.needs_extra("protocols")
@pytest.mark.parametrize(
    ("words", "kept", "absent"),
    [
        ("--language go", ("json", "fortune"), ("json-items", "websocket")),
        ("--type db upload", ("db", "upload"), ("json", "static")),
        ("--language rust --type json protocols", ("json", "http2", "websocket"), ("db",)),
        ("--blank --language Zig", ("json", "update"), ("static", "cached-query")),
        ("--blank --language Zig --type protocols", ("static", "upload", "websocket"), ("json",)),
    ],
)
def test_type_selects_the_urls_of_a_new_folder(
    words: str, kept: tuple[str, ...], absent: tuple[str, ...], tmp_path: Path
) -> None:
    ((implementation,), *_) = read_config(create(tmp_path, "mine", *words.split()) / CONFIG_FILE)
    assert {*kept} <= implementation.urls.keys()
    assert implementation.urls.keys().isdisjoint(absent)


def test_a_copy_has_one_variant_without_tags(tmp_path: Path) -> None:
    ((variant,), *_) = read_config(create(tmp_path, "mine", "--from", "net-http-chi") / CONFIG_FILE)
    assert (variant.dockerfile.name, variant.dockerfile.is_file()) == ("mine.dockerfile", True)
    quarkus = create(tmp_path, "quick", "--from", "quarkus-orm")
    assert [path.name for path in quarkus.glob("*.dockerfile")] == ["quick.dockerfile"]
    ((of_core,), *_) = read_config(create(tmp_path, "other", "--from", "express") / CONFIG_FILE)
    assert (of_core.entry.tags, of_core.is_core) == ((), False)
