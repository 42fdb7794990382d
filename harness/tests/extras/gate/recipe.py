"""Small services as their frameworks' tutorials and generators create them, and the tfb.toml that each should get."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A service, a change that slows it down, and the expected keys of its tfb.toml."""

    stack: str
    files: Mapping[str, str]
    slow_file: str
    slow: tuple[str, str]  # text in ``slow_file``, and its replacement in the second commit
    path: str  # path of the measured request
    start: str
    build: str = ""  # part of the expected build command
    env: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # tools for the build

    def write(self, folder: Path) -> None:
        """Write the service's files into ``folder``."""
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

    def slow_down(self, folder: Path) -> None:
        """Change the code so that each request needs clearly more CPU time."""
        file = folder / self.slow_file
        old, new = self.slow
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
