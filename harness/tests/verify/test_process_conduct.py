"""Tests for the checks of an implementation's folder and of its server process."""

import json
import re
from pathlib import Path

import pytest

from harness import cli
from harness.paths import CONFIG_FILE
from harness.plan.discovery import read_config
from harness.plan.implementation import Implementation
from harness.tests.doubles.own import own_implementations
from harness.verify.checks.evidence import ConductFacts
from harness.verify.process_conduct import read_folder, verify_conduct

DOCKERFILE = 'FROM x\nCOPY . .\nUSER app\nCMD ["./server"]\n'
README = f"# Mine\n\n{'It shows what a server does. ' * 5}\n"


def judged(one: Implementation, conduct: ConductFacts) -> dict[str, str]:
    """Return the results by rule: "pass", or the message of the finding."""
    found = verify_conduct(one, conduct, 0.0)
    assert found is not None
    return {result.rule: result.message or result.outcome.value for result in found.results}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a complete implementation folder without code, in a minimal clone of the project."""
    for name in ("harness", "frameworks"):
        (tmp_path / name).mkdir()
    (tmp_path / "tfb").touch()
    words = ["new", "mine", "--blank", "--language", "Zig", "--frameworks", str(tmp_path / "frameworks")]
    assert cli.main(words) == 0
    path = tmp_path / "frameworks" / "Zig" / "mine"
    (path / "mine.dockerfile").write_text(DOCKERFILE)
    (path / "README.md").write_text(README)
    return path


def rules(folder: Path, *, strict: bool = False) -> dict[str, str]:
    """Return the results of the folder's checks by rule: "pass", or the message of the finding."""
    ((one,), *_) = read_config(folder / CONFIG_FILE)
    return judged(one, ConductFacts(folder=read_folder(one, strict=strict), strict=strict))


def test_a_finished_folder_has_no_violation(folder: Path) -> None:
    assert set(rules(folder).values()) == {"pass"}


def test_a_blank_folder_has_violations(folder: Path) -> None:
    (folder / "README.md").unlink()
    words = ["new", "other", "--blank", "--language", "Zig", "--frameworks", str(folder.parent.parent)]
    assert cli.main(words) == 0
    violations = rules(folder.parent / "other")
    assert violations["folder.1"] == violations["folder.2"] == "pass"  # COPY . . is accepted
    assert "unfilled lines from the template (Purpose: …" in violations["folder.3"]
    assert "README.md does not exist" in rules(folder)["folder.3"]


@pytest.mark.parametrize(
    ("dockerfile", "rule", "expected"),
    [
        (None, "folder.1", "mine.dockerfile does not exist"),
        (DOCKERFILE.replace("COPY . .", "COPY server lib* /app/"), "folder.1", "copies server, lib*, which the folder"),
        (DOCKERFILE.replace("COPY . .", "COPY ../x ."), "folder.1", "copies ../x"),
        (DOCKERFILE.replace("COPY . .", "COPY README.md ./ ./"), "folder.1", "pass"),
        # Only the container engine can expand this pattern.
        (DOCKERFILE.replace("COPY . .", "COPY [a**b] \\\n ."), "folder.1", "pass"),
        (DOCKERFILE.replace("USER app", "USER root"), "folder.1", "ends with USER root"),
        (DOCKERFILE.replace("USER app\n", ""), "folder.1", "has no USER"),
        (DOCKERFILE.replace("./server", "./other"), "folder.2", "differs from local.run in"),
        (DOCKERFILE.replace('["./server"]', "exec /app/server"), "folder.2", "pass"),
        (DOCKERFILE.replace('["./server"]', '["sh", "-c", "exec /app/server"]'), "folder.2", "pass"),
        (DOCKERFILE.replace('CMD ["./server"]', ""), "folder.2", ""),  # the base image provides the command
        ("\x00\xff", "folder.1", "has no USER"),
    ],
)
def test_dockerfile_mistakes_are_named(folder: Path, dockerfile: str | None, rule: str, expected: str) -> None:
    path = folder / "mine.dockerfile"
    path.unlink()
    if dockerfile is not None:
        path.write_text(dockerfile, encoding="latin-1")
    assert expected in rules(folder).get(rule, "")


@pytest.mark.parametrize(
    ("run", "dockerfile", "docker_cmd", "expected"),
    [
        (["./server"], DOCKERFILE, None, "does not set WORKERS=2, so the container does not start"),
        (["./server"], f"{DOCKERFILE}ENV WORKERS=3\n", None, "does not set WORKERS=2"),
        (["./server"], f"{DOCKERFILE}ENV OTHER=1 WORKERS=2\n", None, "pass"),
        (["./server"], f"{DOCKERFILE}ENV WORKERS 2\n", None, "pass"),
        (["./server"], f"FROM x AS build\nENV WORKERS=2\n{DOCKERFILE}", None, "does not set WORKERS=2"),
        (["./server"], f"FROM x AS base\nENV WORKERS=2\n{DOCKERFILE.replace('FROM x', 'FROM base')}", None, "pass"),
        (["./server"], DOCKERFILE, "env WORKERS=2 ./server", "pass"),
        (["./server"], DOCKERFILE, "sh -c 'WORKERS=2 exec ./server'", "pass"),
        (["sh", "-c", "THREADS=4 exec ./server"], f"{DOCKERFILE}ENV WORKERS=2\n", None, "does not set THREADS=4"),
    ],
)
def test_variables_missing_in_the_container_are_named(
    folder: Path, run: list[str], dockerfile: str, docker_cmd: str | None, expected: str
) -> None:
    (folder / "mine.dockerfile").write_text(dockerfile)
    document = json.loads((folder / CONFIG_FILE).read_text())
    entry = document["tests"][0]["default"]
    entry |= {"local": {"run": run, "env": {"WORKERS": "2"}}} | ({"docker_cmd": docker_cmd} if docker_cmd else {})
    (folder / CONFIG_FILE).write_text(json.dumps(document))
    assert expected in rules(folder)["folder.2"]


def test_a_different_command_is_shown_as_written(folder: Path) -> None:
    (folder / "mine.dockerfile").write_text(DOCKERFILE.replace("./server", "./other"))
    ((one,), *_) = read_config(folder / CONFIG_FILE)
    found = verify_conduct(one, ConductFacts(folder=read_folder(one, strict=True)), 0.0)
    assert found is not None
    (result,) = [each for each in found.results if each.rule == "folder.2"]
    assert (result.expected, result.actual) == ('CMD ["./server"]', 'CMD ["./other"]')


def test_files_excluded_by_dockerignore_are_named(folder: Path) -> None:
    (folder / "mine.dockerfile").write_text(DOCKERFILE.replace("COPY . .", "COPY README.md src ./"))
    (folder / "src").mkdir()
    ignore = folder / "mine.dockerfile.dockerignore"
    ignore.write_text("*\n!src/**\n")
    assert "copies README.md, which mine.dockerfile.dockerignore excludes" in rules(folder)["folder.1"]
    ignore.write_text("*\n!src\n!README.md\n")
    assert rules(folder)["folder.1"] == "pass"


@pytest.mark.parametrize(
    ("conduct", "rule", "outcome"),
    [
        (ConductFacts(database_mistakes=("queries database a, but DBNAME is b",)), "process.1", "fail"),
        (ConductFacts(stop_requested=True, stop_seconds=None), "process.2", "warn"),
        (ConductFacts(stop_requested=True, stop_seconds=None, strict=True), "process.2", "fail"),
        (ConductFacts(stop_requested=True, stop_seconds=1.0), "process.2", "pass"),
        (ConductFacts(root_processes=("node",)), "process.3", "fail"),
        (ConductFacts(root_processes=()), "process.3", "pass"),
    ],
)
def test_process_rules_have_the_expected_outcome(folder: Path, conduct: ConductFacts, rule: str, outcome: str) -> None:
    ((one,), *_) = read_config(folder / CONFIG_FILE)
    found = verify_conduct(one, conduct, 0.0)
    assert {result.rule: result.outcome.value for result in found.results}[rule] == outcome


def test_other_trees_are_judged_only_by_process_rules(folder: Path) -> None:
    (folder.parent.parent.parent / "tfb").unlink()
    (folder / "README.md").unlink()
    assert set(rules(folder)) == {"process.1"}
    assert "folder.3" in rules(folder, strict=True)
    document = json.loads((folder / CONFIG_FILE).read_text())
    del document["tests"][0]["default"]["local"]
    (folder / CONFIG_FILE).write_text(json.dumps(document))
    ((upstream,), *_) = read_config(folder / CONFIG_FILE, lenient=True)
    assert verify_conduct(upstream, ConductFacts(database_mistakes=("x",), strict=True), 0.0) is None


OWN = own_implementations()


@pytest.mark.parametrize("one", OWN, ids=lambda one: str(one.name))
def test_the_project_s_folders_are_complete(one: Implementation) -> None:
    found = judged(one, ConductFacts(folder=read_folder(one, strict=True), strict=True))
    assert {"folder.1", "folder.2", "folder.3"} <= found.keys()
    assert set(found.values()) == {"pass"}
    assert one.local is not None
    profiles = [words[1] for words in one.local.build if words[0] == "./build" and len(words) > 1]
    if profiles:  # the image must use the same build profile
        assert re.findall(r"\./build ([\w-]+)", one.dockerfile.read_text(encoding="utf-8")) == profiles
