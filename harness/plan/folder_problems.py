"""Problems with folders of implementations, and the names by which users may refer to the folders."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.paths import CONFIG_FILE, PROGRAM
from harness.records import safe_read

MAX_CONFIG_BYTES = 1 << 20  # bytes; TechEmpower's longest configuration has 30 KiB
TOO_DEEP = "is one level too deep; move the folder to <Language>/<name>/"
FolderProblemKind = Literal["problem", "warning", "misplaced"]


@dataclass(frozen=True, kw_only=True)
class FolderProblem:
    """A problem with a folder: a broken configuration, an ignored key, or a missing configuration.

    A command that names the folder fails with the message. Other commands list problems, print warnings, and ignore
    misplaced folders.
    """

    kind: FolderProblemKind
    path: Path  # path of the configuration
    message: str
    names: frozenset[str] = frozenset()  # names of the folder's implementations, in lower case
    folders: frozenset[Path] = frozenset()  # affected folders

    @property
    def has_names(self) -> bool:
        """True if the folder has a configuration file that names implementations."""
        return self.kind == "problem" or (self.kind == "misplaced" and self.path.is_file())

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def folder_problem(kind: FolderProblemKind, folder: Path, message: str, other: Path | None = None) -> FolderProblem:
    """Return a problem with a folder. ``other`` is a second affected folder."""
    path = folder / CONFIG_FILE
    names = _names(path) if kind != "warning" else frozenset[str]()
    folders = frozenset({folder} if other is None else {folder, other})
    return FolderProblem(kind=kind, path=path, message=message, names=names, folders=folders)


def missing_config_problems(folder: Path) -> Iterator[FolderProblem]:
    """Yield the problems of a folder that has no configuration, such as a misplaced or misspelt file."""
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob(f"*/{CONFIG_FILE}")):
            yield folder_problem("misplaced", path.parent, TOO_DEEP, folder)
    similar = [path.name for path in sorted(folder.glob("*.json")) if _letters(path.name) == _letters(CONFIG_FILE)]
    advice = f"rename {similar[0]}" if similar else f"create it ({PROGRAM} new creates a folder with one)"
    yield folder_problem("misplaced", folder, f"does not exist; {advice}")


def _letters(name: str) -> str:
    """Return only the letters of a file name, in lower case."""
    return "".join(filter(str.isalpha, name.lower()))


def _names(path: Path) -> frozenset[str]:
    """Return the lower-case names by which a user may refer to a broken configuration."""
    names = {path.parent.name, "/".join(path.parts[-3:-1])}
    with contextlib.suppress(OSError):
        # Invalid UTF-8, such as UTF-16, contains NUL.
        text = safe_read.read(path, MAX_CONFIG_BYTES).decode("utf-8", "replace").replace("\0", "")
        if match := re.search(r'"framework"\s*:\s*"([^"\n]{1,100})"', text):
            names.add(match[1])
    return frozenset(name.lower() for name in names)
