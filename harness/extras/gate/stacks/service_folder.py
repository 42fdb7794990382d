"""Defines ``Stack``, the description of a recognised stack, and reads files in a service's folder."""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.records import safe_read

SOURCE_SUFFIXES = (
    *(".java", ".kt", ".scala", ".groovy", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".py", ".go", ".rs"),
    *(".rb", ".ru", ".php", ".cs", ".pl", ".pm", ".sh"),
)
CONFIGURATION_SUFFIXES = (".properties", ".yml", ".yaml", ".toml", ".json", ".conf")
SKIPPED_FOLDERS = (  # folders that contain dependencies, build output or tests
    *("node_modules", "venv", "env", "target", "vendor", "build", "dist", "out", "bin", "obj", "test", "tests", "spec"),
    *("e2e", "__pycache__", "migrations", "log", "tmp", "coverage", "docs", "examples"),
)
ENTRY_SCRIPT_FOLDERS = ("bin",)  # may contain the start script of Node.js, Ruby and Perl services
MAX_SOURCES = 2000


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A recognised stack, with values for [service] in tfb.toml that build and start the service in production mode."""

    name: str
    file: str  # file that identifies the stack
    build: str = ""
    start: str = ""
    container: Mapping[str, str | int] = field(default_factory=dict)  # keys that replace build and start
    env: Mapping[str, str] = field(default_factory=dict)
    language: str = ""  # set only for languages with a just-in-time compiler
    path: str = ""  # path of the request to measure; if empty, tfb uses the first route in the source code
    path_prefix: str = ""  # prefix for a Procfile's command: adds installed programs to PATH
    reads_port: bool = False  # whether the framework itself reads the PORT variable
    is_guess: bool = False  # whether the stack is uncertain; any other recognised stack is preferred
    advice: tuple[str, ...] = ()  # instructions for the user, to check or change a setting


@dataclass(frozen=True)
class ServiceFolder:
    """A folder of untrusted files. Missing, unreadable and very large files count as empty."""

    path: Path

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all entries in the folder."""
        return frozenset(entry.name for entry in self.path.iterdir())

    def first(self, *names: str) -> str:
        """Return the first of these paths that is a regular file, or an empty string."""
        return next((name for name in names if (self.path / name).is_file()), "")

    def glob(self, pattern: str) -> list[str]:
        """Return the sorted paths that match a pattern, relative to the folder."""
        return sorted(path.relative_to(self.path).as_posix() for path in self.path.glob(pattern))

    def text(self, name: str) -> str:
        """Return a file's text, or an empty string if it is missing, too large or not a regular file."""
        try:
            return safe_read.read(self.path / name, safe_read.MAX_TEXT_BYTES).decode("utf-8-sig", "replace")
        except OSError:
            return ""

    def json(self, name: str) -> dict[str, object]:
        """Return the object in a JSON file, or an empty dictionary."""
        try:
            document = json.loads(self.text(name))
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def toml(self, name: str) -> dict[str, object]:
        """Return the content of a TOML file, or an empty dictionary."""
        try:
            return tomllib.loads(self.text(name))
        except (ValueError, RecursionError):
            return {}

    def in_parents(self, *names: str) -> str:
        """Search this folder, then its parents up to the repository's root. Return the first existing name, or ""."""
        for folder in (self.path, *self.path.parents):
            if existing := next((name for name in names if (folder / name).is_file()), ""):
                return existing
            if (folder / ".git").exists():
                break
        return ""

    def sources(self, suffixes: tuple[str, ...] = SOURCE_SUFFIXES) -> Iterator[str]:
        """Yield the paths of source files. Skip tests, build output and dependencies.

        The files in a folder precede the files in subfolders.
        """
        count = 0
        for path, folders, names in os.walk(self.path):
            is_root = Path(path) == self.path
            folders[:] = sorted(name for name in folders if _is_searched(name, is_root=is_root))
            for name in sorted(names):
                is_script = Path(path).name in ENTRY_SCRIPT_FOLDERS and "." not in name
                if (name.endswith(suffixes) or is_script) and count < MAX_SOURCES:
                    count += 1
                    yield (Path(path) / name).relative_to(self.path).as_posix()

    def search(self, pattern: re.Pattern[str], *files: str) -> re.Match[str] | None:
        """Return the first match in ``files``, or in all source files if none are given."""
        return next((match for file in files or self.sources() if (match := pattern.search(self.text(file)))), None)


def _is_searched(name: str, *, is_root: bool) -> bool:
    return not name.startswith(".") and (name not in SKIPPED_FOLDERS or (is_root and name in ENTRY_SCRIPT_FOLDERS))


def has_word(text: str, word: str) -> bool:
    """Return whether a text, such as a list of dependencies, contains a package's name. Ignore case."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None
