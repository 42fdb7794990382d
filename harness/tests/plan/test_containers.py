"""What the Dockerfiles of our implementations say of their folders, without an engine: no build is needed to see it."""

import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path, PurePath

import pytest

from harness.paths import FRAMEWORKS
from harness.plan.discovery import Implementation, scan

KNOWN = scan().implementations
DOCKERFILES = sorted({one.dockerfile for one in KNOWN})


def instructions(dockerfile: Path, name: str) -> list[str]:
    """What follows each of this name."""
    lines = dockerfile.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]


def copied(dockerfile: Path) -> list[str]:
    """What it takes from its folder."""
    found = [line.split()[:-1] for line in instructions(dockerfile, "COPY") if "--from=" not in line]
    return [word.rstrip("/") for words in found for word in words if not word.startswith("--")]


def command(words: list[str]) -> list[str]:
    """The program's name wherever it stands, and its arguments."""
    return [PurePath(words[0]).name, *words[1:]]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.relative_to(FRAMEWORKS)))
def test_what_an_image_takes_from_its_folder_is_there_and_let_through(dockerfile: Path) -> None:
    taken = copied(dockerfile)
    assert [word for word in taken if not list(dockerfile.parent.glob(word))] == []
    ignore = dockerfile.with_name(f"{dockerfile.name}.dockerignore")
    lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.exists() else []
    if lines[:1] == ["*"]:
        through = [line[1:].rstrip("/") for line in lines if line.startswith("!")]
        let = [word for word in taken for one in through if fnmatch(word, one) or word.startswith(f"{one}/")]
        assert set(let) == set(taken)


@pytest.mark.parametrize("one", KNOWN, ids=lambda one: str(one.name))
def test_a_container_runs_what_is_run_without_one_built_of_the_same_profile(one: Implementation) -> None:
    assert one.local is not None
    said = instructions(one.dockerfile, "CMD")
    words = shlex.split(one.entry.docker_cmd) if one.entry.docker_cmd else json.loads(said[-1])
    assert command(words) == command(list(one.local.run))
    profiles = [words[1] for words in one.local.build if words[0] == "./build" and len(words) > 1]
    if profiles:
        assert re.findall(r"\./build ([\w-]+)", one.dockerfile.read_text(encoding="utf-8")) == profiles
