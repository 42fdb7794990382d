"""Tests for the folders that --frameworks accepts: a checkout, a tree, a language, an implementation."""

import json
from pathlib import Path

import pytest

from harness.plan.discovery import scan_folders

ENTRY = {"language": "Go", "json_url": "/json", "local": {"run": ["./x"]}}
TEMPLATE = {"framework": "$NAME", "tests": [{"default": {"json_url": "/json", "port": 8080, "language": "$LANGUAGE"}}]}


def write(folder: Path, document: object) -> None:
    folder.mkdir(parents=True)
    (folder / "benchmark_config.json").write_text(json.dumps(document))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with the folders of TechEmpower's repository."""
    root = tmp_path / "FrameworkBenchmarks"
    for language, name in (("C++", "ffead-cpp"), ("Go", "gin"), ("Go", "fiber"), ("JavaScript", "express")):
        write(root / "frameworks" / language / name, {"framework": name, "tests": [{"default": ENTRY}]})
        (root / "frameworks" / language / name / "benchmark_config_old.json").write_text("{")
    write(root / "frameworks" / "Go" / "gin" / "deploy", TEMPLATE)
    write(root / "toolset" / "scaffolding", TEMPLATE)
    (root / "toolset" / "test_types" / "json").mkdir(parents=True)
    (root / "tfb").write_text("#!/bin/sh\n")
    return root


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("", ["express", "ffead-cpp", "fiber", "gin"]),
        ("frameworks", ["express", "ffead-cpp", "fiber", "gin"]),
        ("frameworks/Go", ["fiber", "gin"]),
        ("frameworks/Go/gin", ["gin"]),
        ("frameworks/C++/ffead-cpp", ["ffead-cpp"]),
    ],
)
def test_any_level_of_a_checkout_can_be_named(checkout: Path, part: str, names: list[str]) -> None:
    scan = scan_folders(checkout / part)
    assert ([i.name for i in scan.implementations], scan.problems) == (names, ())
    assert {i.info().folder.count("/") for i in scan.implementations} == {1}  # relative to the tree, for example Go/gin


def test_overlapping_folders_are_read_once(checkout: Path) -> None:
    scan = scan_folders(checkout / "frameworks" / "Go", checkout, checkout / "frameworks" / "Go" / "gin")
    assert [i.name for i in scan.implementations] == ["express", "ffead-cpp", "fiber", "gin"]
    assert scan.problems == ()


def test_checkout_with_an_empty_tree_has_no_implementations(tmp_path: Path) -> None:
    (tmp_path / "frameworks").mkdir()
    write(tmp_path / "toolset" / "scaffolding", TEMPLATE)
    assert scan_folders(tmp_path).implementations == ()


def test_language_called_frameworks_is_a_language(tmp_path: Path) -> None:
    write(tmp_path / "frameworks" / "one", {"framework": "one", "tests": [{"default": ENTRY}]})
    write(tmp_path / "Go" / "two", {"framework": "two", "tests": [{"default": ENTRY}]})
    assert [i.name for i in scan_folders(tmp_path).implementations] == ["one", "two"]


def test_duplicate_name_gets_the_name_of_its_tree(checkout: Path, tmp_path: Path) -> None:
    write(tmp_path / "mine" / "Go" / "gin", {"framework": "gin", "tests": [{"default": ENTRY}]})
    scan = scan_folders(tmp_path / "mine", checkout / "frameworks" / "Go" / "gin")
    assert [i.name for i in scan.implementations] == ["gin", "gin@FrameworkBenchmarks"]
