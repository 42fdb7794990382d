"""Tests for finding installed tools, detecting their versions, and choosing the newest suitable one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.provisioning import toolchain
from harness.provisioning.toolchain import Tool
from harness.tests.scene import script


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty folder and let tfb search for tools only there."""
    for name in ("JVM_FOLDERS", "POSTGRES_FOLDERS", "PHP_FPM_FOLDERS"):
        monkeypatch.setattr(toolchain, name, ())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    toolchain.forget_tools()
    yield tmp_path
    toolchain.forget_tools()


def program(path: Path, prints: str, *, body: str | None = None) -> None:
    script(path, body or f"echo '{prints}'")


@pytest.mark.parametrize(
    ("version", "condition", "met"),
    [
        ((21, 0, 2), ">=21", True),
        ((17,), ">=21", False),
        ((21,), ">=21.0.1", False),
        ((17, 0, 9), "==17", True),
        ((18,), "==17", False),
        ((4, 10), ">=4.9", True),
    ],
)
def test_only_parts_in_the_condition_are_compared(version: tuple[int, ...], condition: str, met: bool) -> None:
    assert toolchain.satisfies(version, condition) is met


def test_tool_is_found_on_path_with_its_version(folder: Path) -> None:
    program(folder / "node", "v22.3.0")
    assert toolchain.find_tool("node") == Tool(kind="node", version=(22, 3, 0), program=folder / "node")
    assert toolchain.find_tool("node", ">=24") is None
    assert toolchain.find_tool("wrk") is None
    assert toolchain.find_tool("never-heard-of-it") is None


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("mvn", "\x1b[1mApache Maven 3.8.7\x1b[m", (3, 8, 7)),
        ("postgres", "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)", (15, 14)),
        ("java", 'openjdk version "25.0.1" 2025-10-21', (25, 0, 1)),
        ("odd", "unknown", None),
        ("go", "go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("cargo", "cargo 1.95.0 (f2d3ce0bd 2026-03-21)", (1, 95, 0)),
        ("ruby", "ruby 3.3.8 (2025-04-09 revision b200bad6cd) [x86_64-linux-gnu]", (3, 3, 8)),
        ("php", "PHP 8.4.11 (cli) (built: Aug  3 2025)\nZend Engine v4.4.11", (8, 4, 11)),
        ("elixir", "Erlang/OTP 27 [erts-15.2.7] [64-bit]\n\nElixir 1.18.3 (compiled with Erlang/OTP 27)", (1, 18, 3)),
        ("g++", "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", (12, 2, 0)),
        ("perl", "This is perl 5, version 36, subversion 0 (v5.36.0) built for x86_64", (5, 36, 0)),
        ("node", "v24", (24,)),
    ],
)
def test_version_follows_the_name_or_comes_first(name: str, text: str, version: tuple[int, ...] | None) -> None:
    assert toolchain.parse_version(text, name) == version


@pytest.mark.parametrize("form", ["--version", "version", "-V", "-version"])
def test_usual_version_arguments_are_tried(folder: Path, form: str) -> None:
    body = f'[ "$1" = {form} ] && echo go version go1.26.8 && exit 0; echo "unknown word, see section 9.9"; exit 2'
    program(folder / "go", "", body=body)
    assert toolchain.find_tool("go", ">=1.24") == Tool(kind="go", version=(1, 26, 8), program=folder / "go")


def test_newest_suitable_jdk_is_chosen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "JVM_FOLDERS", (str(folder / "jvm"),))
    for name, version in (("old", "17.0.9"), ("new", "25"), ("jre", "26")):
        home = folder / "jvm" / name
        program(home / "bin/java", "x")
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
        if name != "jre":
            program(home / "bin/javac", "x")
    newest, seventeen = toolchain.find_tool("java"), toolchain.find_tool("java", "==17")
    assert seventeen is not None
    assert (newest.version, seventeen.version) == ((25,), (17, 0, 9))
    environment = toolchain.tool_environment([seventeen], os.environ)
    assert environment["JAVA_HOME"] == str(folder / "jvm" / "old")
    assert environment["PATH"] == f"{folder}/jvm/old/bin{os.pathsep}{folder}"


def test_postgres_requires_initdb(folder: Path) -> None:
    program(folder / "postgres", "postgres (PostgreSQL) 15.1")
    assert toolchain.find_tool("postgres") is None
    toolchain.forget_tools()
    program(folder / "initdb", "")
    tool = toolchain.find_tool("postgres")
    assert tool.version == (15, 1)


def test_library_has_the_interpreter_as_program(folder: Path) -> None:
    program(folder / "ruby", "", body='case "$2" in *sinatra*) echo 4.1.1 ;; *) exit 1 ;; esac')
    assert toolchain.find_tool("ruby-sinatra") == Tool(kind="ruby-sinatra", version=(4, 1, 1), program=folder / "ruby")
    assert toolchain.find_tool("ruby-sequel-pg") is None  # Ruby lacks this library
    assert toolchain.find_tool("php-pgsql") is None  # PHP itself is missing
    assert toolchain.debian_packages("ruby-sinatra", ">=3") == ("ruby-sinatra",)


def test_php_fpm_has_the_version_in_its_name(folder: Path) -> None:
    assert toolchain.find_tool("php-fpm") is None
    toolchain.forget_tools()
    program(folder / "php-fpm8.4", "PHP 8.4.11 (fpm-fcgi)")
    assert toolchain.find_tool("php-fpm", ">=8.1") == Tool(
        kind="php-fpm", version=(8, 4, 11), program=folder / "php-fpm8.4"
    )
