"""Commands that name a broken implementation folder print the folder's error and exit with status 2."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.errors import Exit

ENTRY = {"language": "Go", "json_url": "/json", "local": {"run": ["./x"]}}


def document(**changes: Any) -> str:
    """Return a valid configuration with the given changes. The value None removes a key."""
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
    return json.dumps({"framework": "brittle", "tests": [{"default": entry, "raw": entry}]})


def write(text: str | bytes) -> Callable[[Path], object]:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda path: path.write_bytes(data)


GOOD = document()
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "syntax": (write(GOOD[:-2]), "not valid JSON"),
    "trailing comma": (write(GOOD.replace("}]", ",}]")), "not valid JSON: trailing comma at line 1"),
    "twice": (write(GOOD.replace('{"default"', '{"default": {}, "default"')), "duplicate key 'default'"),
    "unknown key": (write(document(json_ulr="/j")), "tests.default.json_ulr: unknown key; did you mean json_url or "),
    "version": (
        write(document(local={"run": ["x"], "requires": {"node": "^20"}})),
        "tests.default.local.requires.node: should be a condition such as >=20 or ==20.11 (found '^20')",
    ),
    "run": (write(document(local={"run": "./x"})), "tests.default.local.run: must be a list in square brackets"),
    "no run": (write(document(local={})), "tests.default.local.run: Field required"),
    "local": (write(document(local="./x")), "tests.default.local: must be an object in { }"),
    "url": (write(document(json_url="json")), "tests.default.json_url: should be a path that starts with /"),
    "port": (write(document(port="80x")), "tests.default.port: Input should be a valid integer"),
    "port true": (write(document(port=True)), "tests.default.port: Input should be a valid integer"),
    "foreign port": (write(document(port="80x", local=None)), "tests.default.port: Input should be a valid integer"),
    "foreign key": (write(document(sleep=5, local=None)), "tests.default.sleep: unknown key"),
    "foreign url": (write(document(json_url="json", local=None)), "json_url: should be a path that starts with /"),
    "database": (write(document(database="Postgress")), "tests.default.database: Input should be 'postgres', 'mysql'"),
    "language": (write(document(language=3)), "tests.default.language: Input should be a valid string"),
    "maintainers": (write(GOOD.replace('"tests"', '"maintainers": "me", "tests"')), "maintainers: must be a list"),
    "no tests": (write('{"framework": "brittle"}'), "tests: must be a list of objects"),
    "list": (write("[]"), "the whole file: must be an object"),
    "empty": (write(""), "is empty; expected an object with framework and tests"),
    "blank": (write(" \n"), "is empty; expected an object with framework and tests"),
    "utf-16": (write(GOOD.encode("utf-16")), "is not UTF-8 at byte 1; save it as UTF-8"),
    "latin-1": (write(GOOD.replace("Go", "G\u00f6").replace("\\u00f6", "\u00f6").encode("latin-1")), "is not UTF-8"),
    "mark": (write(b"\xef\xbb\xbf" + GOOD.encode()), "starts with a byte order mark: save it as UTF-8 without BOM"),
    "missing": (lambda _: None, "does not exist; create it, or create a new folder with ./tfb new"),
    "misspelt": (
        lambda path: path.with_name("benchmark-config.json").write_text(GOOD),
        "does not exist; rename benchmark-config.json",
    ),
    "folder": (Path.mkdir, "cannot read the file: is not a regular file"),
    "pipe": (os.mkfifo, "cannot read the file: is not a regular file"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "cannot read the file: No such file"),
    "reserved": (write(GOOD.replace("brittle", "run")), "the name 'run' is reserved"),
}
UNNAMED = {"missing", "misspelt", "folder", "pipe", "dangling", "no tests", "list", "empty", "blank", "reserved"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "Go" / "good").mkdir(parents=True)
    (tmp_path / "Go" / "bad").mkdir()
    (tmp_path / "Go" / "good" / "benchmark_config.json").write_text(GOOD.replace("brittle", "sound"))
    return tmp_path


def ended(tree: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.main([*words, "--frameworks", str(tree)])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("mistake", BROKEN)
def test_errors_of_a_named_folder_are_printed(mistake: str, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, words = BROKEN[mistake]
    path = tree / "Go" / "bad" / "benchmark_config.json"
    make(path)
    names = ["bad", "Go/bad", "frameworks/Go/bad/", "BAD"]
    names += [] if mistake in UNNAMED else ["brittle", "brittle-raw"]
    for name in names:
        code, stderr = ended(tree, capsys, "verify", name)
        assert (code, f"tfb: {path}: " in stderr, words in stderr) == (Exit.USAGE, True, True), (name, stderr)
        assert "unknown name" not in stderr


@pytest.mark.parametrize("name", ["bad", "sound", "good"])
def test_a_name_of_two_folders_is_ambiguous(name: str, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "Go" / "bad" / "benchmark_config.json").write_text(GOOD.replace("brittle", "sound"))
    code, stderr = ended(tree, capsys, "verify", name)
    assert (code, "the name 'sound' is already used by" in stderr, "/Go/bad/" in stderr, "/Go/good/" in stderr) == (
        2,
        *[True] * 3,
    )


@pytest.mark.parametrize(
    "command",
    [
        "verify bad",
        "verify sound bad",
        "verify --quiet bad",
        "verify --format github bad",
        "run bad",
        "run bad --dry-run",
        "run bad --quiet",
        "debug bad",
        "list bad",
        "list bad --json",
        "--test bad",
        "--test run bad",
        "--test-dir Go/bad",
        "verify --test-dir frameworks/Go/bad",
        "--mode verify --test bad",
        "-m debug --test bad",
        "compare --copy --test bad",
        "new mine --from bad",
    ],
)
def test_every_command_with_names_reports_broken_folders(
    command: str, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tree / "Go" / "bad" / "benchmark_config.json"
    path.write_text(document(json_url="json"))
    code, stderr = ended(tree, capsys, *command.split())
    assert (code, f"{path}: tests.default.json_url: should be a path" in stderr) == (Exit.USAGE, True), stderr


def test_an_implementation_s_folder_is_not_a_tree(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "Go" / "bad" / "benchmark_config.json").write_text(document(port="80x", local=None))
    code, stderr = ended(tree / "Go" / "bad", capsys, "run", "--dry-run")
    assert (code, "tests.default.port: " in stderr) == (Exit.USAGE, True), stderr


def test_broken_folders_without_a_name_do_not_fail(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "Go" / "bad" / "benchmark_config.json").write_text(document(port="80x"))
    # ``./tfb list`` reports every broken folder, selected or not.
    assert ended(tree, capsys, "list", "sound")[0] == Exit.FAILED
    assert ended(tree, capsys, "run", "sound", "--dry-run") == (Exit.OK, "")
    code, stderr = ended(tree, capsys, "run", "--exclude", "bad", "--dry-run")
    assert (code, "80x" in stderr) == (Exit.OK, False)
    code, stderr = ended(tree, capsys, "run", "--dry-run")
    assert (code, "80x" in stderr) == (Exit.OK, True)


def test_unknown_keys_of_unnamed_folders_only_warn(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "Go" / "bad" / "benchmark_config.json").write_text(document(port="80x", local=None))
    code, stderr = ended(tree, capsys, "list")
    assert (code, "warning: " in stderr, "ignored" in stderr) == (Exit.OK, True, True)


def test_unknown_names_list_unreadable_folders(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tree / "Go" / "bad" / "benchmark_config.json"
    path.write_text("{")
    code, stderr = ended(tree, capsys, "verify", "other")
    assert (code, "unknown name 'other'; choose from sound" in stderr, f"{path}: not valid" in stderr) == (
        2,
        True,
        True,
    )


def test_an_empty_tree_says_what_belongs_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, stderr = ended(tmp_path, capsys, "verify", "bad")
    assert (code, f"{tmp_path} contains no implementations; expected <Language>/<name>/" in stderr) == (2, True)


def test_a_misplaced_folder_is_told_its_place(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "lost").mkdir()
    (tree / "lost" / "benchmark_config.json").write_text(GOOD)
    code, stderr = ended(tree, capsys, "verify", "lost")
    assert (code, "move the folder to <Language>/<name>/" in stderr) == (2, True)


def test_a_language_is_not_an_implementation(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, stderr = ended(tree, capsys, "verify", "Go")
    assert (code, "--test-lang Go" in stderr) == (2, True)


def test_new_refuses_the_name_of_broken_folders(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "Go" / "bad" / "benchmark_config.json").write_text(GOOD[:-2])
    code, stderr = ended(tree, capsys, "new", "brittle", "--blank", "--language", "Java")
    assert (code, "'brittle' already exists, and its configuration is broken" in stderr) == (2, True)


@pytest.mark.parametrize("name", ["bad", "Go/bad", "deep", "bad/deep", "brittle", "brittle-raw"])
def test_a_folder_too_deep_is_an_error(name: str, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tree / "Go" / "bad" / "deep" / "benchmark_config.json"
    path.parent.mkdir()
    path.write_text(GOOD)
    code, stderr = ended(tree, capsys, "verify", name)
    assert (code, f"{path}: is one level too deep; move the folder to <Language>/<name>/" in stderr) == (2, True), (
        stderr
    )
