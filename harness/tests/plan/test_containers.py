"""What Dockerfiles say, without an engine: of our implementations' folders, and of the images that they build upon."""

import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path, PurePath

import pytest

from harness.paths import FRAMEWORKS
from harness.plan.discovery import Implementation, scan
from harness.plan.dockerfile import base_images

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
    said = instructions(one.dockerfile, "CMD")
    words = shlex.split(one.entry.docker_cmd) if one.entry.docker_cmd else json.loads(said[-1])
    assert command(words) == command(list(one.local.run))
    profiles = [words[1] for words in one.local.build if words[0] == "./build" and len(words) > 1]
    if profiles:
        assert re.findall(r"\./build ([\w-]+)", one.dockerfile.read_text(encoding="utf-8")) == profiles


@pytest.mark.parametrize(
    ("text", "images"),
    [
        ("FROM golang:1.24\nRUN x\n", ("golang:1.24",)),
        ("from --platform=linux/amd64 a/b:1 as build\nFROM build\nFROM scratch\n", ("a/b:1",)),
        ('ARG V=22.04\nFROM ubuntu:${V} AS a\nFROM "debian:$V"\n', ("ubuntu:22.04", "debian:22.04")),
        ("ARG V\nFROM x:${V:-3}\n", ("x:3",)),
        ('ARG A="1"\nARG B=x/y:${A}-z$A\nARG C="$B"\nFROM $C\n', ("x/y:1-z1",)),
        ("FROM a AS x\nFROM b\nCOPY --from=x /x /x\nCOPY --from=c:1 /y /y\nCOPY --from=0 /z /z\n", ("a", "b", "c:1")),
        ("FROM a\nRUN --mount=type=bind,from=d,target=/d ls\n", ("a", "d")),
        ("# FROM not\n", ()),
    ],
)
def test_images_are_found_under_the_names_asked_for(text: str, images: tuple[str, ...]) -> None:
    assert base_images(text) == images
