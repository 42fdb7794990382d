"""Folders in frameworks/ that the project itself maintains, as opposed to contributed folders."""

from pathlib import Path

from harness.paths import CONFIG_FILE, FRAMEWORKS
from harness.plan.discovery import scan_folders
from harness.plan.implementation import Implementation

MAINTAINERS = '"maintainers"'  # the key is absent from the project's own folders


def own_folders() -> set[Path]:
    """Return the folders that the project maintains, even those with an invalid configuration."""
    files = FRAMEWORKS.glob(f"*/*/{CONFIG_FILE}")
    return {path.parent for path in files if MAINTAINERS not in path.read_bytes().decode(errors="replace")}


def own_implementations() -> tuple[Implementation, ...]:
    """Return the implementations that the project maintains."""
    folders = own_folders()
    return tuple(each for each in scan_folders().implementations if each.folder in folders)
