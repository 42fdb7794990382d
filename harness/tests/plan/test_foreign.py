"""Folders of another tree, read as their own toolset reads them."""

import json
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.plan.discovery import Selection, scan, select
from harness.plan.foreign import Foreign, lacking, tolerate

ENTRY = {"language": "C", "json_url": "/json"}


def read(tests: object, **more: object) -> Foreign:
    return tolerate({"framework": "x", "tests": tests, **more}, folder="x", language="C")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("sleep", 5, "tests.default.sleep: unknown key, set aside"),
        ("tag", [], "tests.default.tag: unknown key, set aside; did you mean tags?"),
        ("classification", "None", "(found 'None'); taken as 'Micro'"),
        ("database_os", None, "(found None); taken as 'Linux'"),
        ("port", "8080 or so", "(found '8080 or so'); taken as 8080"),
        ("db_url", "db", "(found 'db'); taken as no URL: the test type is not run"),
        ("tags", "fast", "(found 'fast'); taken as not given"),
        ("urls", {}, "urls: unknown key"),
        ("language", None, "language: no name (found None), taken to be 'C'"),
    ],
)
def test_what_we_do_not_take_is_set_aside_with_a_warning_and_the_test_stays(
    key: str, value: object, words: str
) -> None:
    found = read([{"default": {**ENTRY, key: value}}])
    assert [variant for variant, _ in found.tests] == ["default"]
    assert found.problems == ()
    (warning,) = found.warnings
    assert words in warning


def test_several_objections_are_each_a_warning() -> None:
    entry = {**ENTRY, "cache": True, "classification": "None", "orm": "Some", "db_url": 7}
    found = read([{"default": entry}])
    assert len(found.warnings) == 4
    assert found.tests[0][1].urls == {"json_url": "/json"}


def test_a_test_that_cannot_be_used_is_a_problem_of_its_own() -> None:
    found = read([{"default": {"language": "C"}, "other": ENTRY, "text": "?"}])
    assert [variant for variant, _ in found.tests] == ["other"]
    assert len(found.problems) == 2
    assert found.problems[0].startswith("tests.default: names no URL")


def test_a_local_block_is_read_strictly() -> None:
    found = read([{"default": {**ENTRY, "local": {"run": ["x"], "builds": []}}}])
    assert found.tests == ()
    assert "local.builds" in found.problems[0]


@pytest.mark.parametrize("document", [[], {}, {"tests": []}, {"tests": ["x"]}, {"tests": 1}])
def test_a_file_without_tests_is_refused(document: object) -> None:
    with pytest.raises(ConfigError, match=r"tests|whole file"):
        tolerate(document, folder="x", language="C")


def test_a_file_without_a_name_takes_its_folder_s() -> None:
    found = tolerate({"tests": {"default": ENTRY}, "maintainers": "me", "extra": 1}, folder="neat", language="C")
    assert found.framework == "neat"
    assert len(found.warnings) == 3


def test_another_database_is_kept_by_name_and_said_to_be_missing() -> None:
    found = read([{"default": {**ENTRY, "database": "MySQL"}, "other": {**ENTRY, "database": "Redis"}}])
    assert [entry.database for _, entry in found.tests] == ["mysql", "redis"]
    assert found.warnings == ()
    assert "asks for MySQL, and only PostgreSQL is served" in (lacking("mysql", {"json": "/json"}) or "")
    assert "asks for redis" in (lacking("redis", {}) or "")
    assert lacking("postgres", {}) is None
    assert lacking("none", {}) is None


def test_a_name_that_a_tree_before_has_taken_is_called_after_its_own_tree(tmp_path: Path) -> None:
    for tree in ("one", "two"):
        folder = tmp_path / tree / "frameworks" / "C" / "x"
        folder.mkdir(parents=True)
        text = json.dumps({"framework": "x", "tests": [{"default": ENTRY, "raw": ENTRY}]})
        (folder / "benchmark_config.json").write_text(text)
    found = scan(tmp_path / "one" / "frameworks", tmp_path / "two" / "frameworks")
    assert [i.name for i in found.implementations] == ["x", "x-raw", "x-raw@two", "x@two"]
    assert found.problems == ()
    other = found.implementations[2]
    assert (other.dockerfile.name, other.rules, other.info().folder) == ("x-raw.dockerfile", "techempower", "C/x")


@pytest.mark.parametrize("name", ["../up", "a/b", "/etc", "", "x" * 200, "a\nb"])
def test_a_name_that_would_be_a_path_is_none_in_other_trees_either(name: str) -> None:
    found = tolerate({"framework": name, "tests": [{"default": {}, name: {}}]}, folder="here", language="C")
    assert found.framework == "here"
    assert name not in [variant for variant, _ in found.tests]


def tree_with(folder: Path, **entry: object) -> Path:
    """A tree of somebody's own with one implementation, ``mine``."""
    (folder / "C" / "mine").mkdir(parents=True)
    text = json.dumps({"framework": "mine", "tests": [{"default": {**ENTRY, **entry}}]})
    (folder / "C" / "mine" / "benchmark_config.json").write_text(text)
    return folder


WRONG = [
    ({"port": "80x"}, "port: must be a whole number (found '80x')"),
    ({"json_url": 5}, "json_url: must be a text in quotes (found 5)"),
    ({"tags": "fast"}, "tags: must be a list in [ ] (found 'fast')"),
]


@pytest.mark.parametrize(("entry", "told"), WRONG)
@pytest.mark.parametrize("wanted", [Selection(test=("mine",)), Selection(test_dir=("C/mine",))])
def test_a_value_of_a_wrong_type_is_an_error_where_the_folder_was_asked_for_by_name(
    entry: dict[str, object], told: str, wanted: Selection, tmp_path: Path
) -> None:
    found = scan(tree_with(tmp_path, db_url="/db", **entry)).implementations
    with pytest.raises(ConfigError) as error:
        select(found, wanted)
    assert str(error.value) == f"{tmp_path}/C/mine/benchmark_config.json: tests.default.{told}"
    assert [i.name for i in select(found, Selection(test=("all",)))] == ["mine"]  # others' folders, taken all together


@pytest.mark.parametrize(("entry", "told"), WRONG)
def test_a_value_of_a_wrong_type_beside_a_local_block_is_an_error_and_nothing_of_it_runs(
    entry: dict[str, object], told: str, tmp_path: Path
) -> None:
    found = scan(tree_with(tmp_path, db_url="/db", local={"run": ["x"]}, **entry))
    assert found.implementations == ()
    assert found.problems == (f"{tmp_path}/C/mine/benchmark_config.json: tests.default: {told}",)
