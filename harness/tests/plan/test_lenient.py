"""Tests for reading folders of other repositories leniently."""

import json
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.plan.benchmark_config import TestEntry
from harness.plan.discovery import scan_folders
from harness.plan.lenient import parse_leniently

ENTRY = {"language": "C", "json_url": "/json"}


def read(tests: object) -> tuple[dict[str, TestEntry], list[str], list[str]]:
    """Return the entries by variant, the warnings and the problems."""
    config, warnings, problems = parse_leniently({"framework": "x", "tests": tests}, folder="x", language="C")
    return config.tests[0], warnings, problems


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("sleep", 5, "tests.default.sleep: unknown key, ignored"),
        ("tag", [], "tests.default.tag: unknown key, ignored; did you mean tags?"),
        ("classification", "None", "(found 'None'), ignored"),
        ("database_os", None, "(found None), ignored"),
        (
            "port",
            "8080 or so",
            "Input should be a valid integer, unable to parse string as an integer (found '8080 or so'), ignored",
        ),
        ("db_url", "db", "(found 'db'), ignored"),
        ("tags", "fast", "(found 'fast'), ignored"),
        ("urls", {}, "urls: unknown key"),
        ("language", None, "language: Input should be a valid string (found None), replaced by 'C'"),
    ],
)
def test_invalid_key_is_ignored_with_a_warning(key: str, value: object, words: str) -> None:
    tests, (warning,), problems = read([{"default": {**ENTRY, key: value}}])
    assert (list(tests), problems) == (["default"], [])
    assert words in warning


def test_each_invalid_key_has_a_warning() -> None:
    entry = {**ENTRY, "cache": True, "classification": "None", "orm": "Some", "db_url": 7}
    tests, warnings, _ = read([{"default": entry}])
    assert (len(warnings), tests["default"].urls) == (4, {"json_url": "/json"})


def test_local_block_makes_invalid_keys_errors() -> None:
    strict = {**ENTRY, "local": {"run": ["x"], "builds": []}}
    tests, _, problems = read([{"default": {"language": "C"}, "other": ENTRY, "text": "?", "strict": strict}])
    assert (list(tests), len(problems)) == (["other"], 3)
    assert problems[0].startswith("tests.default: has no URL")
    assert any("local.builds" in problem for problem in problems)


@pytest.mark.parametrize("document", [[], {}, {"tests": []}, {"tests": ["x"]}, {"tests": 1}])
def test_file_without_tests_is_rejected(document: object) -> None:
    with pytest.raises(ConfigError, match=r"tests|whole file"):
        parse_leniently(document, folder="x", language="C")


def test_missing_framework_defaults_to_the_folder() -> None:
    document = {"tests": {"default": ENTRY}, "maintainers": "me", "extra": 1}
    config, warnings, _ = parse_leniently(document, folder="neat", language="C")
    assert (config.framework, len(warnings)) == ("neat", 2)
    with pytest.raises(ConfigError, match="should match pattern"):
        parse_leniently(document, folder="-rf", language="C")


def test_unsupported_database_is_accepted_and_reported(tmp_path: Path) -> None:
    databases = {"mysql": "MySQL", "other": "Redis", "ours": "Postgres", "none": "None"}
    tests = {variant: {**ENTRY, "database": name} for variant, name in databases.items()}
    (tmp_path / "C" / "x").mkdir(parents=True)
    (tmp_path / "C" / "x" / "benchmark_config.json").write_text(json.dumps({"framework": "x", "tests": [tests]}))
    scan = scan_folders(tmp_path)
    lacking = {i.variant: i.unsupported_reason or "" for i in scan.implementations}
    assert (scan.warnings, lacking["ours"], lacking["none"]) == ((), "", "")
    assert "requires MySQL, but tfb provides only PostgreSQL" in lacking["mysql"]
    assert "requires redis" in lacking["other"]


def test_name_of_an_earlier_tree_gets_a_suffix(tmp_path: Path) -> None:
    for tree in ("one", "two"):
        folder = tmp_path / tree / "frameworks" / "C" / "x"
        folder.mkdir(parents=True)
        text = json.dumps({"framework": "x", "tests": [{"default": ENTRY, "raw": ENTRY}]})
        (folder / "benchmark_config.json").write_text(text)
    scan = scan_folders(tmp_path / "one" / "frameworks", tmp_path / "two" / "frameworks")
    assert [i.name for i in scan.implementations] == ["x", "x-raw", "x-raw@two", "x@two"]
    assert scan.problems == ()
    other = scan.implementations[2]
    assert (other.dockerfile.name, other.rules, other.info().folder) == ("x-raw.dockerfile", "techempower", "C/x")


@pytest.mark.parametrize("name", ["../up", "a/b", "/etc", "", "x" * 200, "a\nb"])
def test_path_as_name_is_rejected_in_other_trees(name: str) -> None:
    document = {"framework": name, "tests": [{"default": {"json_url": "/json"}, name: {}}]}
    config, _, _ = parse_leniently(document, folder="here", language="C")
    assert config.framework == "here"
    assert name not in config.tests[0]
