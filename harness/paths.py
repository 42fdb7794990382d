"""Paths of the project's files, in a clone or in an installed wheel."""

import os
from pathlib import Path

_PACKAGED = Path(__file__).resolve().parent / "_tree"  # the part of the repository that a wheel contains
INSTALLED = _PACKAGED.is_dir()
PROGRAM = "tfb" if INSTALLED else "./tfb"  # command by which users call tfb
REPOSITORY = _PACKAGED if INSTALLED else Path(__file__).resolve().parent.parent
CONFIG = REPOSITORY / "config"
DOCKER = REPOSITORY / "docker"
FRAMEWORKS = REPOSITORY / "frameworks"
PROFILES = CONFIG / "profiles"
CLAIMS = REPOSITORY / "config" / "claims"
RESULTS = Path.cwd() / "tfb-results" if INSTALLED else REPOSITORY / "results"
TOOLSET = REPOSITORY / "toolset"
CONFIG_FILE = "benchmark_config.json"  # name of the configuration file in an implementation's folder
PREBUILT = "built"  # name of the folder with compiled programs in a wheel's toolset


def state_folder() -> Path:
    """Return the folder for builds and caches: TFB_STATE, .tfb in a clone, or the user's XDG state folder."""
    if chosen := os.environ.get("TFB_STATE"):
        return Path(chosen).resolve()
    if not INSTALLED:
        return REPOSITORY / ".tfb"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state").resolve() / "tfb"
