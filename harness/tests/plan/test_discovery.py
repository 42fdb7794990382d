"""Tests for scanning frameworks/ and for selecting implementations by flags."""

import json
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.plan.discovery import ScanResult, Selection, read_config, scan_folders, select_implementations

ENTRY = {"language": "C", "json_url": "/json", "db_url": "/db"}


def write(frameworks: Path, folder: str, document: object) -> Path:
    path = frameworks / folder / "benchmark_config.json"
    path.parent.mkdir(parents=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def config(framework: str, **tests: object) -> dict[str, object]:
    return {"framework": framework, "tests": [tests or {"default": ENTRY}]}


@pytest.fixture
def some(tmp_path: Path) -> ScanResult:
    write(tmp_path, "C/alpha", config("alpha", default={**ENTRY, "tags": ["fast"]}, raw=ENTRY))
    write(tmp_path, "C/beta", config("beta", default={**ENTRY, "tags": ["Broken"]}))
    write(tmp_path, "Java/gamma", config("gamma"))
    return scan_folders(tmp_path)


def chosen(scan: ScanResult, **flags: tuple[str, ...]) -> list[str]:
    return [i.name for i in select_implementations(scan, Selection(**flags))]


def test_values_are_case_insensitive_and_normalised(tmp_path: Path) -> None:
    entry = {"language": "C", "query_url": "/queries?queries=", "approach": "realistic", "database": "Postgres"}
    entry["framework"] = "Of which it is"
    ((implementation,), *_) = read_config(
        write(tmp_path, "C/x", config("x", default={**entry, "orm": "RAW", "classification": "MICRO"}))
    )
    values = (
        implementation.entry.approach,
        implementation.entry.database,
        implementation.entry.orm,
        implementation.entry.classification,
    )
    assert values == ("Realistic", "postgres", "Raw", "Micro")
    assert implementation.ready_path == "/queries?queries=1"  # asks for a single row
    assert (implementation.info().project, implementation.info().framework) == ("x", "Of which it is")


def test_antipatterns_are_verified_by_techempower_rules(tmp_path: Path) -> None:
    tests = config("x", default=ENTRY, asleep={**ENTRY, "tags": ["antipattern"]})
    (ordinary, asleep), *_ = read_config(write(tmp_path, "C/x", tests))
    assert (ordinary.rules, asleep.rules) == ("tfb", "techempower")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            config("x", default={**ENTRY, "jsn_url": "/j"}),
            "tests.0.default.jsn_url: unknown key; did you mean json_url",
        ),
        ({**config("x"), "maintainer": []}, "maintainer: unknown key; did you mean maintainers?"),
        (
            config("x", default={**ENTRY, "local": {"run": ["x"], "builds": []}}),
            "tests.0.default.local.builds: unknown key; did you mean build?",
        ),
        # "run" belongs in the ``local`` block.
        (config("x", default={**ENTRY, "run": ["x"]}), "tests.0.default.run: unknown key; choose from"),
        (config("x", default={"language": "C"}), "has no URL: add at least one of json_url"),
        (config("x", default={**ENTRY, "port": 0}), "tests.0.default.port: Input should be greater than or equal to 1"),
        (config("x", default={**ENTRY, "approach": "Fast"}), "Input should be 'Realistic' or 'Stripped'"),
        (
            config("x", default={**ENTRY, "local": {"run": ["x"], "requires": {"java": "21"}}}),
            "should be a condition such as >=20",
        ),
        ([], "the whole file: must be an object in { }"),
        ({"framework": "x", "tests": [{}]}, "tests.0: must not be empty"),
    ],
)
def test_invalid_key_or_value_is_explained(tmp_path: Path, document: object, words: str) -> None:
    path = write(tmp_path, "C/x", document)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


def test_duplicate_name_is_reported_with_both_files(tmp_path: Path) -> None:
    first = write(tmp_path, "C/a", config("same"))
    second = write(tmp_path, "C/b", config("same"))
    scan = scan_folders(tmp_path)
    assert len(scan.implementations) == 1
    (problem,) = scan.problems
    assert problem.startswith(f"{second}: the name 'same' is already used by {first}; in one of these files, change")


def test_reserved_name_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path, "C/run", config("run", default=ENTRY, raw=ENTRY))
    scan = scan_folders(tmp_path)
    assert [i.name for i in scan.implementations] == ["run-raw"]
    assert scan.problems == (f"{path}: the name 'run' is reserved: choose a different name",)


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ({"test": ("run",)}, ["alpha", "alpha-raw", "gamma"]),
        ({}, ["alpha", "alpha-raw", "gamma"]),
        ({"test": ("gamma",)}, ["gamma"]),
        ({"test_lang": ("java",)}, ["gamma"]),
        ({"test_dir": ("frameworks/C/alpha/",)}, ["alpha", "alpha-raw"]),
        ({"test_dir": ("C",)}, ["alpha", "alpha-raw"]),
        ({"tag": ("FAST",)}, ["alpha"]),
        ({"test": ("run",), "exclude": ("alpha",)}, ["alpha-raw", "gamma"]),
        ({"test": ("gamma",), "tag": ("fast",)}, ["alpha", "gamma"]),
    ],
)
def test_flags_select_implementations_except_broken_ones(
    some: ScanResult, flags: dict[str, tuple[str, ...]], names: list[str]
) -> None:
    assert chosen(some, **flags) == names


def test_run_selects_core_and_all_selects_everything(tmp_path: Path) -> None:
    for name, tags in (("one", ["Core"]), ("two", []), ("three", ["core", "slow"]), ("four", ["broken"])):
        write(tmp_path, f"C/{name}", config(name, default={**ENTRY, "tags": tags}))
    known = scan_folders(tmp_path)
    assert chosen(known, test=("run",)) == chosen(known) == ["one", "three"]
    assert chosen(known, test=("run", "two")) == chosen(known, test=("all",)) == ["one", "three", "two"]
