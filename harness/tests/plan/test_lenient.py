"""Folders of another tree, read as their own toolset reads them."""

import json
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.plan.benchmark_config import TestEntry
from harness.plan.discovery import scan_folders
from harness.plan.lenient import parse_leniently

ENTRY = {"language": "C", "json_url": "/json"}


def read(tests: object) -> tuple[dict[str, TestEntry], list[str], list[str]]:
    """Tests by their variants, warnings and problems."""
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
def test_what_we_do_not_take_is_set_aside_with_a_warning_and_the_test_stays(
    key: str, value: object, words: str
) -> None:
    tests, (warning,), problems = read([{"default": {**ENTRY, key: value}}])
    assert (list(tests), problems) == (["default"], [])
    assert words in warning


def test_several_objections_are_each_a_warning() -> None:
    entry = {**ENTRY, "cache": True, "classification": "None", "orm": "Some", "db_url": 7}
    tests, warnings, _ = read([{"default": entry}])
    assert (len(warnings), tests["default"].urls) == (4, {"json_url": "/json"})


def test_a_test_that_cannot_be_used_is_a_problem_of_its_own_and_a_local_block_is_read_strictly() -> None:
    strict = {**ENTRY, "local": {"run": ["x"], "builds": []}}
    tests, _, problems = read([{"default": {"language": "C"}, "other": ENTRY, "text": "?", "strict": strict}])
    assert (list(tests), len(problems)) == (["other"], 3)
    assert problems[0].startswith("tests.default: has no URL")
    assert any("local.builds" in problem for problem in problems)


@pytest.mark.parametrize("document", [[], {}, {"tests": []}, {"tests": ["x"]}, {"tests": 1}])
def test_a_file_without_tests_is_refused(document: object) -> None:
    with pytest.raises(ConfigError, match=r"tests|whole file"):
        parse_leniently(document, folder="x", language="C")


def test_a_file_without_a_name_takes_its_folder_s() -> None:
    document = {"tests": {"default": ENTRY}, "maintainers": "me", "extra": 1}
    config, warnings, _ = parse_leniently(document, folder="neat", language="C")
    assert (config.framework, len(warnings)) == ("neat", 2)
    with pytest.raises(ConfigError, match="should match pattern"):
        parse_leniently(document, folder="-rf", language="C")


def test_another_database_is_kept_by_name_and_said_to_be_missing(tmp_path: Path) -> None:
    databases = {"mysql": "MySQL", "other": "Redis", "ours": "Postgres", "none": "None"}
    tests = {variant: {**ENTRY, "database": name} for variant, name in databases.items()}
    (tmp_path / "C" / "x").mkdir(parents=True)
    (tmp_path / "C" / "x" / "benchmark_config.json").write_text(json.dumps({"framework": "x", "tests": [tests]}))
    found = scan_folders(tmp_path)
    lacking = {i.variant: i.unsupported_reason or "" for i in found.implementations}
    assert (found.warnings, lacking["ours"], lacking["none"]) == ((), "", "")
    assert "requires MySQL, but tfb provides only PostgreSQL" in lacking["mysql"]
    assert "requires redis" in lacking["other"]


def test_a_name_that_a_tree_before_has_taken_is_called_after_its_own_tree(tmp_path: Path) -> None:
    for tree in ("one", "two"):
        folder = tmp_path / tree / "frameworks" / "C" / "x"
        folder.mkdir(parents=True)
        text = json.dumps({"framework": "x", "tests": [{"default": ENTRY, "raw": ENTRY}]})
        (folder / "benchmark_config.json").write_text(text)
    found = scan_folders(tmp_path / "one" / "frameworks", tmp_path / "two" / "frameworks")
    assert [i.name for i in found.implementations] == ["x", "x-raw", "x-raw@two", "x@two"]
    assert found.problems == ()
    other = found.implementations[2]
    assert (other.dockerfile.name, other.rules, other.info().folder) == ("x-raw.dockerfile", "techempower", "C/x")


@pytest.mark.parametrize("name", ["../up", "a/b", "/etc", "", "x" * 200, "a\nb"])
def test_a_name_that_would_be_a_path_is_none_in_other_trees_either(name: str) -> None:
    document = {"framework": name, "tests": [{"default": {"json_url": "/json"}, name: {}}]}
    config, _, _ = parse_leniently(document, folder="here", language="C")
    assert config.framework == "here"
    assert name not in config.tests[0]
