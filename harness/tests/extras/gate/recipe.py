"""A small service as its framework's tutorial or generator creates it, and the expected tfb.toml."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A service, a change that makes it slower, and the expected keys of its tfb.toml."""

    stack: str
    files: Mapping[str, str]
    slow_file: str
    slow: tuple[str, str]  # a string in ``slow_file``, and its replacement in the second commit
    path: str  # the measured path
    start: str
    build: str = ""  # a part of the expected build command
    env: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # tools that the build needs

    def write(self, folder: Path) -> None:
        """Write the files of the service into a folder."""
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

    def slow_down(self, folder: Path) -> None:
        """Replace code so that each request needs clearly more CPU time."""
        file = folder / self.slow_file
        old, new = self.slow
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
