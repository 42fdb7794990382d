"""A new implementation begins from one of its own language, and passes as a configuration at once."""

import re
from pathlib import Path

import pytest

from harness.cli import blank, new
from harness.errors import UsageError
from harness.paths import FRAMEWORKS
from harness.plan.discovery import CONFIG_FILE, read
from harness.plan.testtypes.registry import TEST_TYPES
from harness.verify.checks.registry import CHECKS


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


@pytest.mark.parametrize("language", [*blank.STARTS, "c#", "Zig"])
def test_a_blank_folder_is_whole_but_for_the_code(language: str, tmp_path: Path) -> None:
    folder = made(tmp_path, "mine", "--blank", "--language", language)
    assert folder.parent.name == blank.language_of(language)
    (implementation,) = read(folder / CONFIG_FILE)
    assert tuple(implementation.urls) == tuple(kind for kind, known in TEST_TYPES.items() if known.scored)
    assert implementation.local is not None
    assert "USER nobody" in (folder / "mine.dockerfile").read_text()
    source = (folder / blank.STARTS.get(blank.language_of(language), blank.ANY).source).read_text()
    for path in blank.PATHS.values():
        assert f"---- GET {path}" in source
    assert "{name}" not in "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def test_an_edit_of_a_blank_go_program_fetches_no_module_again_under_docker(tmp_path: Path) -> None:
    lines = (made(tmp_path, "mine", "--blank", "--language", "Go") / "mine.dockerfile").read_text().splitlines()
    fetch = next(line for line in lines if line.startswith("RUN ") and line.endswith("go mod download"))
    manifests, fetched, source = map(lines.index, ("COPY go.* ./", fetch, "COPY . ."))
    assert manifests < fetched < source


@pytest.mark.parametrize("language", ["Go", "Rust"])
def test_what_runs_without_its_compiler_has_an_image_without_it(language: str, tmp_path: Path) -> None:
    folder = made(tmp_path, "mine", "--blank", "--language", language)
    build, _, run = (folder / "mine.dockerfile").read_text().partition("\n\n")
    (implementation,) = read(folder / CONFIG_FILE)
    assert implementation.local is not None
    (program,) = implementation.local.run
    assert "apt-get install" in build
    assert "apt-get" not in run
    assert f"COPY --from=build /app/{program} {program}" in run
    assert f'CMD ["{program}"]' in run
    assert "benchmark_config.json" in (folder / ".dockerignore").read_text().splitlines()


def test_each_route_has_the_paragraphs_that_its_verification_checks(tmp_path: Path) -> None:
    routes = (made(tmp_path, "mine", "--blank", "--language", "Go") / "main.go").read_text().split("---- GET ")
    of = {part.partition("\n")[0]: part for part in routes}
    assert "json.2: The json test answers" in of["/json"]
    assert "count.1" not in of["/db"]
    assert {"rows.4", "count.1", "update.3", "statements.6"} <= set(
        re.findall(r"[a-z]+\.\d+", of["/updates?queries=N"])
    )
    assert "fortune.3" in of["/fortunes"]


def test_the_paragraphs_are_those_of_the_page() -> None:
    assert {check.rule for check in CHECKS.values()} <= set(dict(blank.paragraphs()))


@pytest.mark.parametrize("words", ["--blank", "--blank --from express --language Go", "--blank --language ../x"])
def test_a_blank_folder_needs_a_language_alone(words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        new.main(["mine", *words.split(), "--frameworks", str(tmp_path)])
    assert not list(tmp_path.iterdir())
