"""The project's own folders of frameworks/: ``verify`` judges what a contributor adds beside them, not the tests."""

from pathlib import Path

from harness.paths import CONFIG_FILE, FRAMEWORKS
from harness.plan.discovery import Implementation, scan_folders

MAINTAINED = '"maintainers": ["tfb"]'


def own_folders() -> set[Path]:
    """Folders that the project maintains, those with a broken configuration among them."""
    files = FRAMEWORKS.glob(f"*/*/{CONFIG_FILE}")
    return {path.parent for path in files if MAINTAINED in path.read_bytes().decode(errors="replace")}


def own_implementations() -> tuple[Implementation, ...]:
    """Implementations that the project maintains."""
    folders = own_folders()
    return tuple(each for each in scan_folders().implementations if each.folder in folders)
